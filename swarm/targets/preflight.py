"""Is each target what it should be? Asked once, before any load, with one sentence where it is not."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Collection, Mapping, Sequence
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
from swarm.targets.targets import flag_of
from swarm.targets.tls_check import check_tls, speaks_tls
from users.endpoint import NULL, Endpoint
from users.errors import RequestError
from users.inputs.images import ImageSet
from users.load.check import check_form
from users.redact import quoted
from users.tls import TOKEN
from users.transport.base import Reply, Transport

TENSORS = "triton_repo/tensors.py"
"""What every model.py of triton_repo imports."""
STEPS = {"jpeg": "decode_jpeg", "uint8": "normalise_uint8"}
"""What stands before a Triton's model, by payload."""


@dataclass(frozen=True)
class First:
    """The first picture's embedding, float32 of shape [512], and how long the request for it took."""

    embedding: NDArray[np.float32]
    took_ns: int


def check_targets(
    endpoints: Sequence[Endpoint],
    transports: Sequence[type[Transport]],
    images: ImageSet,
    say: Callable[[str], None],
) -> dict[str, First]:
    """What each endpoint answered to its first request, by its name, one asked after the other.

    Raises UsageError with the sentence of the first that is not right.
    """
    return {e.name: verdict(e, t, images, say) for e, t in zip(endpoints, transports, strict=True)}


def verdict(
    endpoint: Endpoint, transport: type[Transport], images: ImageSet, say: Callable[[str], None]
) -> First:
    """One endpoint, checked; what a stranger's answer leads to becomes a sentence, too. Raises UsageError."""
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
