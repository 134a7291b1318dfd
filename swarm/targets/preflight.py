"""Is each target what it should be? Asked once, before any load, with one sentence where it is not."""

import socket
import ssl
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

import gevent
import grpc
import numpy as np
from numpy.typing import NDArray
from tritonclient.grpc import service_pb2

from swarm.backends.admin_client import PATIENCE_S, Told, get, triton_stub
from swarm.backends.registry import GATEWAY, PYTORCH
from swarm.errors import UsageError
from swarm.targets.cold_start import ANNOUNCE_S, LONGEST_S
from swarm.targets.endpoints import flag_of
from users.endpoint import NULL, Endpoint
from users.errors import RequestError, is_cut_off, tls_fault
from users.inputs.images import ImageSet
from users.load.check import check_form
from users.redact import quoted
from users.tls import OPEN, TOKEN
from users.transport.base import Reply, Transport
from users.transport.sockets import connect

TENSORS = "triton_repo/tensors.py"
"""What every model.py of triton_repo imports."""
STEPS = {"jpeg": "decode_jpeg", "uint8": "normalise_uint8"}
"""What stands before a Triton's model, by payload."""
HELLO = {
    "http": b"HEAD / HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n",
    "grpc": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0)),
}
"""What each protocol begins with, without the token: of HTTP/2 its preface, and settings that are empty."""
EXPIRED, NOT_YET, WRONG_NAME, WRONG_ADDRESS = 10, 9, 62, 64
"""OpenSSL's codes of a verification that failed."""


@dataclass(frozen=True)
class First:
    """The first picture's embedding, float32 of shape [512], and how long the request for it took."""

    embedding: NDArray[np.float32]
    took_ns: int


def verdict(
    endpoint: Endpoint, transport: type[Transport], images: ImageSet, say: Callable[[str], None]
) -> First:
    """What an endpoint answered to its first request. Raises UsageError where anything is wrong with it.

    What a stranger's answer leads to becomes a sentence, too.
    """
    try:
        return check_target(endpoint, transport, images, say)
    except (RequestError, grpc.RpcError, ValueError, KeyError, TypeError) as error:
        raise UsageError(
            f"{flag_of(endpoint)} {endpoint.shown}: answers, but not as it should ({type(error).__name__})"
        ) from error


def check_target(
    endpoint: Endpoint, transport: type[Transport], images: ImageSet, say: Callable[[str], None]
) -> First:
    """One endpoint: reachable, of the right kind, its model there, and able to embed a picture."""
    name = f"{flag_of(endpoint)} {endpoint.shown}"
    check_reachable(name, endpoint)
    if endpoint.tls:
        check_tls(name, endpoint)
    try:
        check_kind(name, endpoint)
    except UsageError:
        if not endpoint.tls and speaks_tls(endpoint):
            raise UsageError(f"{name}: speaks TLS; give {replace(endpoint, tls=True).shown}") from None
        raise
    try:
        reply, took_ns = first_reply(endpoint, transport, images, 1, say)
        check_form(reply, 1)
    except RequestError as error:
        if refuses_token(error):
            raise UsageError(f"{name}: {no_token(endpoint)}") from error
        raise UsageError(f"{name}: {no_embedding(endpoint, error)} ({error})") from error
    return First(reply.embeddings[0], took_ns)


def check_kind(name: str, endpoint: Endpoint) -> None:
    """What the URL's option says that it is. Raises UsageError."""
    if not endpoint.model:
        check_service(name, endpoint)
    elif endpoint.protocol == "http":
        check_triton_http(name, endpoint)
    else:
        check_triton_grpc(name, endpoint)


def refuses_token(error: BaseException | None) -> bool:
    """Whether a failure says that the token is missing, or is not the right one."""
    if isinstance(error, grpc.Call):
        return error.code() in (grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED)
    if isinstance(error, RequestError):
        return error.detail.startswith(("HTTP 401", "HTTP 403")) or refuses_token(error.__cause__)
    return False


def no_token(endpoint: Endpoint) -> str:
    """What is wrong where the token is not taken, or none is sent."""
    if endpoint.security.token:
        return f"does not take the token of {endpoint.security.token}; export the one that it takes"
    own = f"INFERSWARM_{endpoint.server.upper()}_TOKEN"
    return f"demands a token; export it as {TOKEN}, or for this server alone as {own}"


def no_embedding(endpoint: Endpoint, error: RequestError) -> str:
    """What is wrong with an endpoint that answers, but not its first request."""
    if endpoint.floor_of and not endpoint.model:
        return "has no floor to ask, which is POST /null; leave --floor out"
    if not endpoint.model and error.detail.startswith("HTTP 404"):
        return "has no POST /embed; give the service's URL, or a Triton's by --onnx-http-url"
    return "answers, but does not embed a picture"


def first_reply(
    endpoint: Endpoint, transport: type[Transport], images: ImageSet, size: int, say: Callable[[str], None]
) -> tuple[Reply, int]:
    """The answer to one request of `size` pictures, however long it takes, and its nanoseconds.

    Raises RequestError.
    """
    prepared = transport.prepare(images, tuple(index % len(images) for index in range(size)), endpoint)
    text = f"{endpoint.name}: still waiting for its first answer at batch {size}" + (
        "" if endpoint.payload == "json" else "; an engine may be being built"
    )
    announcement = gevent.spawn_later(ANNOUNCE_S, say, text)
    try:
        with transport(endpoint, LONGEST_S) as client:
            began_ns = time.perf_counter_ns()
            return client.send(prepared), time.perf_counter_ns() - began_ns
    finally:
        announcement.kill()


def check_reachable(name: str, endpoint: Endpoint) -> None:
    """Somebody listens. Raises UsageError with the reason."""
    try:
        socket.create_connection((endpoint.host, endpoint.port), PATIENCE_S).close()
    except OSError as error:
        reasons = {TimeoutError: f"no answer within {PATIENCE_S:g} s", socket.gaierror: "unknown host name"}
        reason = reasons.get(type(error), error.strerror or str(error)).lower()
        raise UsageError(
            f"{name}: cannot be reached ({reason}); check host and port, and that it runs"
        ) from error


def check_service(name: str, endpoint: Endpoint) -> None:
    """Speaks HTTP; and where it has a `/readyz`, says it is ready."""
    try:
        reply = get(endpoint, "/readyz")
    except RequestError as error:
        raise UsageError(f"{name}: answers, but not over HTTP; give the service's HTTP port") from error
    check_taken(name, endpoint, reply)
    if reply.status == 503:
        raise UsageError(f"{name}: the service is not ready, look at its /readyz ({quoted(reply.text, 160)})")
    check_role(name, endpoint, told_by(reply))


def check_taken(name: str, endpoint: Endpoint, reply: Told) -> None:
    """Raises UsageError where an answer over HTTP says that the token is missing or wrong."""
    if reply.status in (401, 403):
        raise UsageError(f"{name}: {no_token(endpoint)}")


def told_by(reply: Told) -> Mapping[str, Any]:
    """What a service of ours says of itself; nothing from one of another make."""
    try:
        told = reply.json()
    except ValueError:
        return {}
    return told if isinstance(told, dict) and "weights_sha256" in told else {}


def check_role(name: str, endpoint: Endpoint, told: Mapping[str, Any]) -> None:
    """A gateway is not measured as a service that computes, nor the other way round. Raises UsageError."""
    if told and endpoint.server == GATEWAY and "upstream" not in told:
        raise UsageError(f"{name}: is a service that computes itself; give a gateway's URL, or --pytorch-url")
    if endpoint.server == PYTORCH and "upstream" in told:
        upstream = f"{told['upstream']['model']} at {told['upstream']['address']}"
        raise UsageError(f"{name}: is a gateway to {upstream}; give the service's URL, or --gateway-url")


def check_triton_http(name: str, endpoint: Endpoint) -> None:
    """A Triton, and with the model ready."""
    try:
        reply = get(endpoint, "/v2")
        check_taken(name, endpoint, reply)
        extensions = reply.json()["extensions"]
    except (RequestError, ValueError, KeyError, TypeError):
        extensions = []
    if "binary_tensor_data" not in extensions:
        raise UsageError(f"{name}: answers, but not as a Triton server; give Triton's HTTP port")
    if not get(endpoint, f"/v2/models/{endpoint.model}/ready").ok:
        # Its index of models may be for those who may load them.
        told = get(endpoint, "/v2/models/stats")
        models = {row["name"] for row in told.json()["model_stats"]} if told.ok else None
        raise UsageError(missing_model(name, endpoint, models))


def check_triton_grpc(name: str, endpoint: Endpoint) -> None:
    """A Triton, and with the model ready."""
    with triton_stub(endpoint) as stub:
        try:
            stub.ServerMetadata(service_pb2.ServerMetadataRequest(), timeout=PATIENCE_S)
        except grpc.RpcError as error:
            if refuses_token(error):
                raise UsageError(f"{name}: {no_token(endpoint)}") from error
            sentence = f"{name}: answers, but not as a Triton server; give Triton's gRPC port"
            raise UsageError(sentence) from error
        ready = stub.ModelReady(service_pb2.ModelReadyRequest(name=endpoint.model), timeout=PATIENCE_S)
        if not ready.ready:
            try:
                told = stub.ModelStatistics(service_pb2.ModelStatisticsRequest(), timeout=PATIENCE_S)
                models = {model.name for model in told.model_stats}
            except grpc.RpcError:
                models = None
            raise UsageError(missing_model(name, endpoint, models))


def missing_model(name: str, endpoint: Endpoint, models: Collection[str] | None) -> str:
    """The sentence for a Triton without the model; None: it does not tell us which ones it has."""
    mends = {"onnx": "name another by --onnx-model", "trt": "name another by --trt-model"}
    own = f"triton_repo/{endpoint.backend}/{endpoint.model}"
    copy = f"copy {own} into its repository, and {TENSORS} into its folder 1"
    mend = mends.get(endpoint.backend, f"{copy}, or leave --floor out" if endpoint.backend == NULL else copy)
    if step := STEPS.get(endpoint.payload):
        mend = (
            f"copy {step} and {endpoint.payload} of triton_repo/payloads into its repository, {TENSORS} "
            f"into the folder 1 of the former, the latter as {endpoint.model} with an empty folder 1, "
            "or leave the endpoint out by --endpoints"
        )
    held = f"it holds {', '.join(sorted(models))}" if models else "it holds none"
    held = "it does not say which it holds" if models is None else held
    return f"{name}: has no model {endpoint.model!r} that is ready ({held}); {mend}"


def check_tls(name: str, endpoint: Endpoint) -> None:
    """Raises UsageError where TLS fails, or the server demands a certificate of ours that we have not.

    By TLS 1.3 it says so only once the handshake is done, so it is greeted.
    """
    try:
        answered = greet(endpoint)
    except ssl.SSLCertVerificationError as error:
        raise UsageError(f"{name}: {untrusted(error)}") from error
    except (ssl.SSLError, ConnectionError) as error:
        if isinstance(error, ssl.SSLError) and not is_cut_off(error):
            raise UsageError(f"{name}: {tls_fault(error)}; {mend(error, endpoint)}") from error
        raise UsageError(f"{name}: hangs up in the handshake of TLS; {plain(endpoint)}") from error
    except OSError as error:
        raise UsageError(f"{name}: no TLS within {PATIENCE_S:g} s; {plain(endpoint)}") from error
    if not answered and endpoint.protocol == "grpc":
        # gRPC's own servers keep to themselves what they miss.
        own = "another" if endpoint.security.cert else "a"
        raise UsageError(
            f"{name}: hangs up behind the handshake of TLS; give {own} client certificate by"
            " --tls-client-cert and --tls-client-key if it demands one, or Triton's gRPC port"
        )


def greet(endpoint: Endpoint) -> bool:
    """Whether a connection that hears the protocol's first words is not closed for them. Raises OSError.

    Once there is TLS, only TLS' own faults are raised: what it is after all, the next question tells.
    """
    hello = HELLO[endpoint.protocol].replace(b"{address}", endpoint.address.encode())
    with gevent.Timeout(PATIENCE_S, TimeoutError()), closing(connect(endpoint)) as wire:
        try:
            wire.send_all((hello,))
            return bool(wire.recv(1))
        except TimeoutError:
            return True
        except OSError as error:
            if isinstance(error, ssl.SSLError) and not is_cut_off(error):
                raise
            return False


def untrusted(error: ssl.SSLCertVerificationError) -> str:
    """What is wrong with the server's certificate, and the mend."""
    told = error.verify_message.rstrip(".")
    if error.verify_code in (EXPIRED, NOT_YET):
        return f"its certificate is not valid now ({told}); renew it there, or set this host's clock"
    if error.verify_code in (WRONG_NAME, WRONG_ADDRESS):
        return f"its certificate is for another name ({told}); give the name that stands in it"
    return f"its certificate is not trusted ({told}); give its authority's by --tls-ca"


def mend(error: ssl.SSLError, endpoint: Endpoint) -> str:
    """What to do about a handshake that failed."""
    reason = error.reason or ""
    if "WRONG_VERSION" in reason or "RECORD_LAYER" in reason:
        return plain(endpoint)
    own = "one that it knows by " if endpoint.security.cert else ""
    return f"give {own}--tls-client-cert and --tls-client-key"


def plain(endpoint: Endpoint) -> str:
    """The mend where there is no TLS."""
    return f"give {endpoint.protocol}://{endpoint.address}, or the port that does"


def speaks_tls(endpoint: Endpoint) -> bool:
    """Whether it is TLS that an endpoint without it has met. It is asked without token and proof."""
    try:
        greet(replace(endpoint, tls=True, security=replace(OPEN, verify=False)))
    except ssl.SSLError as error:
        # One that wants more of us has said so by TLS.
        return "ALERT" in (error.reason or "")
    except OSError:
        return False
    return True


def check_agreement(firsts: Mapping[str, NDArray[np.float32]], min_cosine: float) -> dict[str, float]:
    """Cosine of each endpoint's embedding of the first picture with the first one's. Raises UsageError."""
    reference = next(iter(firsts), "")
    cosines = {name: float(firsts[reference] @ first) for name, first in firsts.items()}
    worst = min(cosines, key=lambda name: cosines[name], default="")
    if worst and cosines[worst] < min_cosine:
        raise UsageError(
            f"{worst} gives another embedding than {reference} for the same picture "
            f"(cosine {cosines[worst]:.4f}): serve the same weights on both, or lower --min-cosine"
        )
    return cosines
