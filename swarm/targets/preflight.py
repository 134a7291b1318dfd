"""Is each target what it should be? Asked once, before any load, with one sentence where it is not."""

import socket
import ssl
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, replace

import gevent
import grpc
import numpy as np
from numpy.typing import NDArray

from swarm.errors import UsageError
from swarm.targets.cold_start import ANNOUNCE_S, LONGEST_S
from swarm.targets.endpoints import flag_of
from users.backends.registry import backend_of, transport_of
from users.endpoint import Endpoint
from users.errors import RequestError, TargetError, is_cut_off, tls_fault
from users.inputs.images import ImageSet
from users.load.check import check_form
from users.tls import OPEN
from users.transport.admin_connection import PATIENCE_S, no_token, refuses_token
from users.transport.base import Reply
from users.transport.http import HttpTransport
from users.transport.sockets import connect

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


def verdict(endpoint: Endpoint, images: ImageSet, say: Callable[[str], None]) -> First:
    """What an endpoint answered to its first request. Raises UsageError where anything is wrong with it.

    What a stranger's answer leads to becomes a sentence, too.
    """
    try:
        return check_target(endpoint, images, say)
    except (RequestError, grpc.RpcError, ValueError, KeyError, TypeError) as error:
        raise UsageError(
            f"{flag_of(endpoint)} {endpoint.shown}: answers, but not as it should ({type(error).__name__})"
        ) from error


def check_target(endpoint: Endpoint, images: ImageSet, say: Callable[[str], None]) -> First:
    """One endpoint: reachable, of the right kind, its model there, and able to embed a picture."""
    name = f"{flag_of(endpoint)} {endpoint.shown}"
    check_reachable(name, endpoint)
    if endpoint.tls:
        check_tls(name, endpoint)
    try:
        backend_of(endpoint).check(endpoint)
    except TargetError as error:
        if not endpoint.tls and speaks_tls(endpoint):
            raise UsageError(f"{name}: speaks TLS; give {replace(endpoint, tls=True).shown}") from None
        raise UsageError(f"{name}: {error}") from error
    try:
        reply, took_ns = first_reply(endpoint, images, 1, say)
        check_form(reply, 1)
    except RequestError as error:
        if refuses_token(error):
            raise UsageError(f"{name}: {no_token(endpoint)}") from error
        raise UsageError(f"{name}: {no_embedding(endpoint, error)} ({error})") from error
    return First(reply.embeddings[0], took_ns)


def no_embedding(endpoint: Endpoint, error: RequestError) -> str:
    """What is wrong with an endpoint that answers, but not its first request."""
    transport = transport_of(endpoint)
    if not issubclass(transport, HttpTransport) or not error.detail.startswith("HTTP 404"):
        return "answers, but does not embed a picture"
    mend = "leave --floor out" if endpoint.floor_of else "is it the URL of another server?"
    return f"has no POST {transport(endpoint, PATIENCE_S).path}; {mend}"


def first_reply(
    endpoint: Endpoint, images: ImageSet, size: int, say: Callable[[str], None]
) -> tuple[Reply, int]:
    """The answer to one request of `size` pictures, however long it takes, and its nanoseconds.

    Raises RequestError.
    """
    transport = transport_of(endpoint)
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
