"""Is each target what it should be? Asked once, before any load, with one sentence where it is not."""

import socket
import ssl
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace

import gevent
import grpc
import numpy as np
from numpy.typing import NDArray

from swarm.errors import UsageError
from swarm.targets.cold_start import ANNOUNCE_S, LONGEST_S
from swarm.targets.endpoints import flag_of
from users.backends.registry import backend_of, codec_of, facts_of
from users.endpoint import Endpoint, Protocol
from users.errors import RequestError, TargetError, is_alert, is_cut_off, request_error, tls_advice, tls_fault
from users.inputs.images import ImageSet
from users.inputs.pictures import oddity
from users.load.check import check_form, describe_difference, has_unit_rows, similarity
from users.refusals import ABSENT, ask_again, explain_refusal, limits_size
from users.tls import OPEN
from users.transport.admin_connection import PATIENCE_S
from users.transport.base import Reply
from users.transport.sockets import connect
from users.transport.transports import client

HELLO = {
    "http": b"HEAD / HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n",
    "grpc": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0)),
}
"""What each protocol begins with, without the token: for HTTP/2 its preface and empty settings."""
FIRST_BYTES, SETTINGS = 9, bytes((4,))
"""The size of a frame's head in HTTP/2; the type of the first one, behind its length of 3 bytes."""
APART = "give them different spaces (space in a file, or --space {here}=NAME)"


@dataclass(frozen=True)
class First:
    """The first item's embedding, float32 of shape [dimension], and how long the request for it took.

    `endpoint` is as it was, with what the answer shows of its vectors.
    """

    endpoint: Endpoint
    embedding: NDArray[np.float32]
    took_ns: int


def verdict(endpoint: Endpoint, images: ImageSet, say: Callable[[str], None]) -> First:
    """What an endpoint answered to its first request. Raises UsageError where anything is wrong with it.

    What a stranger's answer leads to becomes a sentence, too.
    """
    try:
        return check_target(endpoint, images, say)
    except (RequestError, grpc.RpcError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise UsageError(
            f"{flag_of(endpoint)} {endpoint.shown}: answers, but not as expected ({type(error).__name__})"
        ) from error


def check_target(endpoint: Endpoint, images: ImageSet, say: Callable[[str], None]) -> First:
    """One endpoint: reachable, of the right kind, its model there, and able to embed an item."""
    name = f"{flag_of(endpoint)} {endpoint.shown}"
    check_kind(name, endpoint)
    try:
        reply, took_ns = first_reply(endpoint, images, 1, say)
        check_form(reply, 1, codec_of(endpoint).endpoint.contract)
        # The score of a pair may be 0.
        if facts_of(endpoint).computes and reply.embeddings.size > 1 and not reply.embeddings.any():
            raise UsageError(f"{name}: answers with an all-zero vector; fix what it serves")
        return First(learned(endpoint, reply), reply.embeddings[0], took_ns)
    except RequestError as error:
        raise UsageError(f"{name}: {no_embedding(endpoint, error)}{guessed(endpoint)}") from error


def check_kind(name: str, endpoint: Endpoint) -> None:
    """Reachable, over TLS where it should be, and of the right kind. Raises UsageError."""
    check_reachable(name, endpoint)
    if endpoint.tls:
        check_tls(name, endpoint)
    try:
        backend_of(endpoint).check(endpoint)
    except TargetError as error:
        cause = error.__cause__
        if cause is not None and not request_error(cause).code and (other := spoken_instead(endpoint)):
            raise UsageError(f"{name}: {other}") from None
        raise UsageError(f"{name}: {error}") from error


def learned(endpoint: Endpoint, reply: Reply) -> Endpoint:
    """The endpoint with the dimension and the length of its vectors, where only an answer tells them.

    A single number that happens to be 1 is no vector of that length.
    """
    contract, dimension = codec_of(endpoint).endpoint.contract, int(reply.embeddings.shape[1])
    unit = dimension > 1 and has_unit_rows(reply.embeddings) if contract.unit is None else contract.unit
    made = replace(contract, dimension=dimension, unit=unit)
    return replace(endpoint, contract=made) if endpoint.codec else endpoint


def check_pair(first: First, images: ImageSet, say: Callable[[str], None], min_cosine: float) -> int:
    """Two items in one request are two rows, in their order; the request's nanoseconds. Raises UsageError.

    `first` is of the first item alone.
    """
    endpoint = first.endpoint
    name = f"{flag_of(endpoint)} {endpoint.shown}"
    try:
        reply, took_ns = first_reply(endpoint, images, 2, say)
    except RequestError as error:
        raise UsageError(f"{name}: {refused_pair(endpoint, images, say, error)}") from error
    if len(reply.embeddings) != 2:
        raise UsageError(
            f"{name}: gives {plural_rows(reply)} for two items in one request; set max_batch = 1, or fix"
            " how its file declares a batch"
        )
    try:
        check_form(reply, 2, endpoint.contract)
    except RequestError as error:
        raise UsageError(f"{name}: two items in one request fail ({error})") from error
    alike = similarity(reply.embeddings[0], first.embedding) >= min_cosine
    if facts_of(endpoint).computes and not alike:
        raise UsageError(
            f"{name}: the first of two rows is not the first item's"
            f" ({describe_difference(reply.embeddings[0], first.embedding)}): rows come in another order;"
            " give answer.order, or set max_batch = 1"
        )
    return took_ns


def plural_rows(reply: Reply) -> str:
    """`1 row`."""
    count = len(reply.embeddings)
    return f"{count} row{'s' * (count != 1)}"


def no_embedding(endpoint: Endpoint, error: RequestError) -> str:
    """What is wrong with an endpoint that answers, but not its first request."""
    path = codec_of(endpoint).path
    question = f"POST {path}" if endpoint.protocol == "http" else f"its first request, to {path},"
    fix = "compare what is sent with what it takes" if error.code else ""
    if error.code in ABSENT:
        fix = (
            "leave --floor out"
            if endpoint.floor_of
            else "it is another server, or lacks the path or the model"
        )
    return explain_refusal(endpoint, question, error, fix)


def refused_pair(
    endpoint: Endpoint, images: ImageSet, say: Callable[[str], None], error: RequestError
) -> str:
    """What is wrong with an endpoint that answers the first item, but not the first two in one request."""
    try:
        first_reply(endpoint, images, 1, say, start=1)
    except RequestError as alone:
        if alone.code and alone.code == error.code:
            return f"answers the first item, but refuses the second ({alone.whole}); remove that item"
    if limits_size(error):
        return f"takes one item a request, and refuses two ({error.whole}); set max_batch = 1"
    # What it says is not about size, so that a smaller limit might only hide it.
    return (
        f"answers one item a request, but not two ({error.whole}); look at its log, or at how a batch is sent"
    )


def guessed(endpoint: Endpoint) -> str:
    """What of its first request nobody has declared, as sentences behind a refusal; often empty."""
    guesses = codec_of(endpoint).endpoint.contract.guesses
    return f". Guessed: {' '.join(guesses)}" if guesses else ""


def first_reply(
    endpoint: Endpoint, images: ImageSet, size: int, say: Callable[[str], None], start: int = 0
) -> tuple[Reply, int]:
    """The answer to one request of `size` items from `start` on, however long it takes, and its nanoseconds.

    Raises RequestError, or UsageError where no such request can be made.
    """
    codec = codec_of(endpoint)
    count = images.count(codec.endpoint.contract)
    try:
        prepared = codec.prepare(images, tuple((start + index) % count for index in range(size)))
    except ValueError as error:
        raise UsageError(f"{flag_of(endpoint)}: {error}") from error
    except Exception as error:  # a custom codec
        told = f"{type(error).__name__}: {error}"
        raise UsageError(f"{flag_of(endpoint)}: its codec cannot prepare a request ({told})") from error
    text = f"{endpoint.name}: still waiting for its first answer at batch {size}" + (
        "" if endpoint.payload == "json" else "; it may be building an engine"
    )
    with client(codec, LONGEST_S) as asking:

        def ask() -> tuple[Reply, int]:
            announcement = gevent.spawn_later(ANNOUNCE_S, say, text)
            began_ns = time.perf_counter_ns()
            try:
                return asking.send(prepared), time.perf_counter_ns() - began_ns
            finally:
                announcement.kill()

        return ask_again(endpoint.address, ask)


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
    """Raises UsageError where TLS fails, or the server requires a client certificate that is not given.

    By TLS 1.3 it says so only once the handshake is done, so it is greeted.
    """
    try:
        answered = hear(endpoint)
    except (ssl.SSLError, ConnectionError) as error:
        if isinstance(error, ssl.SSLError) and not is_cut_off(error):
            advice = tls_advice(error, bool(endpoint.security.cert), without_tls(endpoint))
            told = "; ".join(filter(None, (tls_fault(error), advice)))
            raise UsageError(f"{name}: {told}") from error
        fix = f"give {without_tls(endpoint)}, or the port that does"
        raise UsageError(f"{name}: hangs up in the TLS handshake; if it does not speak TLS, {fix}") from error
    except OSError as error:
        fix = f"give {without_tls(endpoint)}, or the port that does"
        raise UsageError(f"{name}: no TLS within {PATIENCE_S:g} s; {fix}") from error
    if answered == b"" and endpoint.protocol == "grpc":
        # gRPC's own servers keep to themselves what they miss.
        own = "another" if endpoint.security.cert else "a"
        raise UsageError(
            f"{name}: hangs up after the TLS handshake; give {own} client certificate by"
            " --tls-client-cert and --tls-client-key if it demands one, or Triton's gRPC port"
        )


def hear(endpoint: Endpoint) -> bytes | None:
    """What a connection first answers to its protocol's first words, empty where it is closed for them.

    None where it says nothing. Once there is TLS, only TLS' own faults are raised: what it is after all, the
    next question tells. Raises OSError.
    """
    hello = HELLO[endpoint.protocol].replace(b"{address}", (endpoint.authority or endpoint.address).encode())
    with gevent.Timeout(PATIENCE_S, TimeoutError()), closing(connect(endpoint)) as wire:
        try:
            wire.send_all((hello,))
            return wire.recv(FIRST_BYTES)
        except TimeoutError:
            return None
        except OSError as error:
            if isinstance(error, ssl.SSLError) and not is_cut_off(error):
                raise
            return b""


def without_tls(endpoint: Endpoint) -> str:
    """The URL of the same place without TLS."""
    return f"{endpoint.protocol}://{endpoint.address}"


def spoken_instead(endpoint: Endpoint) -> str:
    """What an endpoint speaks in place of its own protocol, and the fix; empty where that is not seen."""
    if not endpoint.tls and speaks_tls(endpoint):
        return f"speaks TLS; give {replace(endpoint, tls=True).shown}"
    other: Protocol = "grpc" if endpoint.protocol == "http" else "http"
    try:
        begun = hear(replace(endpoint, protocol=other)) or b""
    except OSError:
        return ""
    if other == "http" and begun.startswith(b"HTTP/1."):
        return "speaks HTTP/1.1, and gRPC needs HTTP/2; give its gRPC port, or ask it over HTTP"
    if other == "grpc" and begun[3:4] == SETTINGS:
        return "speaks HTTP/2, as gRPC does; give its HTTP port, or ask it over gRPC"
    return ""


def speaks_tls(endpoint: Endpoint) -> bool:
    """Whether it is TLS that an endpoint without it has met. It is asked without token and proof."""
    try:
        hear(replace(endpoint, tls=True, security=replace(OPEN, verify=False)))
    except ssl.SSLError as error:
        # One that wants more of us has said so by TLS.
        return is_alert(error)
    except OSError:
        return False
    return True


def check_agreement(firsts: Sequence[First], min_cosine: float, odd: str = "") -> None:
    """Endpoints of one space give the same embedding for the same item. Raises UsageError.

    `odd`: what is special in that item where it is a picture, and the fix.
    """
    references: dict[str, First] = {}
    for first in firsts:
        known = codec_of(first.endpoint).endpoint
        reference = references.setdefault(known.space, first)
        here, there = first.endpoint.name, reference.endpoint.name
        if len(first.embedding) != len(reference.embedding):
            raise UsageError(
                f"{here} gives {len(first.embedding)} numbers and {there} {len(reference.embedding)}, but"
                f" both belong to the space {known.space!r}: {APART.format(here=here)}"
            )
        if not similarity(first.embedding, reference.embedding) >= min_cosine:
            fix = f"serve the same weights on both, lower --min-cosine, or {APART.format(here=here)}"
            fix = odd if odd and not known.contract.of_text else fix
            raise UsageError(
                f"{here} gives another embedding than {there} for the same item"
                f" ({describe_difference(first.embedding, reference.embedding)}): {fix}"
            )


def check_odd_picture(
    firsts: Sequence[First], images: ImageSet, say: Callable[[str], None], min_cosine: float
) -> None:
    """Endpoints of one space, which agree on the first picture, do so on one that servers may read otherwise.

    Raises UsageError.
    """
    known = {first.endpoint.name: codec_of(first.endpoint).endpoint for first in firsts}
    of_pictures = {name: one for name, one in known.items() if not one.contract.of_text}
    spaces = Counter(one.space for one in of_pictures.values())
    several = [first.endpoint for first in firsts if spaces[known[first.endpoint.name].space] > 1]
    at = images.odd() if several else -1
    if at < 1:
        return
    odd, replies = odd_picture(images, at), []
    for endpoint in several:
        if at < images.count(known[endpoint.name].contract):
            try:
                reply, took_ns = first_reply(endpoint, images, 1, say, start=at)
            except RequestError as error:
                raise UsageError(f"{flag_of(endpoint)} {endpoint.shown}: {odd} ({error})") from error
            replies.append(First(endpoint, reply.embeddings[0], took_ns))
    check_agreement(replies, min_cosine, odd)


def odd_picture(images: ImageSet, at: int) -> str:
    """What is special in a picture that servers may read in different ways, and the fix; mostly nothing."""
    why = oddity(images.jpegs[at])
    name = images.names[at] if at < len(images.names) else f"picture {at + 1}"
    fix = "which servers treat differently; save it upright in sRGB, or leave it out"
    return f"{name} {why}, {fix}" if why else ""
