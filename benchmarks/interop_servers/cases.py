"""gRPC's interoperability cases that concern unary calls, each a function that raises Wrong.

Source: grpc/grpc, doc/interop-test-descriptions.md. A deadline is tried on a stream of one answer, which is a
unary call to whoever sends it; what is not of the description is named so.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from gevent.pool import Pool

from benchmarks.interop_servers.callers import NO_METADATA, Caller
from benchmarks.interop_servers.messages import message, path_of
from benchmarks.interop_servers.programs.rules import INITIAL, TRAILING
from users.errors import StatusError
from users.http2.call import GrpcAnswer

Case = Callable[[Caller], None]

LONG_S, SHORT_S, SLEEP_S = 120.0, 0.05, 1.0
"""Patience where an answer is due; a deadline, and for how long the server sleeps then."""
UP_BYTES, DOWN_BYTES, FP32_BYTES = 271_828, 314_159, 602_112
CALLS, FP32_CALLS, FP32_ROUNDS, SOAK_CALLS = 1000, 16, 4, 2500
STATUS_TEXT = "test status message"
SPECIAL_TEXT = "\t\ntest with whitespace\r\nand Unicode BMP ☺ and non-BMP 😈\t\n"
METADATA = {INITIAL: "test_initial_metadata_value", TRAILING: "q6ur"}
"""The second is the bytes ab ab ab."""


class Wrong(Exception):
    """A case that does not hold, and what came instead."""


def expect(name: str, found: object, right: object) -> None:
    """Raises Wrong where they differ."""
    if found != right:
        raise Wrong(f"{name} is {found!r:.200}, not {right!r:.200}")


def called(
    caller: Caller, method: str, body: bytes = b"", metadata: Mapping[str, str] = NO_METADATA
) -> GrpcAnswer:
    """The answer of a method of the test service."""
    return caller.call(path_of(method), body, LONG_S, metadata)


def status_of(call: Callable[[], GrpcAnswer]) -> StatusError:
    """The status that a call ends with. Raises Wrong where it is OK."""
    try:
        answer = call()
    except StatusError as error:
        return error
    raise Wrong(f"an answer of {len(answer.body):,} bytes in place of an error")


def simple(up: int, down: int) -> bytes:
    """A SimpleRequest of so many bytes for so many."""
    written: bytes = message("SimpleRequest")(
        payload={"body": bytes(up)}, response_size=down
    ).SerializeToString()
    return written


def payload_of(answer: GrpcAnswer) -> bytes:
    """What a SimpleResponse holds."""
    held: bytes = message("SimpleResponse").FromString(answer.body).payload.body
    return held


def empty_unary(caller: Caller) -> None:
    """Nothing for nothing."""
    expect("the answer", called(caller, "EmptyCall").body, b"")


def large_unary(caller: Caller) -> None:
    """271,828 bytes for 314,159."""
    expect(
        "the payload",
        payload_of(called(caller, "UnaryCall", simple(UP_BYTES, DOWN_BYTES))),
        bytes(DOWN_BYTES),
    )


def custom_metadata(caller: Caller) -> None:
    """What is sent before the message comes back before, and what is to come behind it does."""
    answer = called(caller, "UnaryCall", simple(UP_BYTES, DOWN_BYTES), METADATA)
    expect(INITIAL, answer.headers.get(INITIAL), METADATA[INITIAL])
    expect(TRAILING, answer.trailers.get(TRAILING, "").rstrip("="), METADATA[TRAILING])
    expect("the payload", payload_of(answer), bytes(DOWN_BYTES))


def status_said(caller: Caller, text: str) -> None:
    """A status with that text, when it is asked for."""
    asked = message("SimpleRequest")(response_status={"code": 2, "message": text}).SerializeToString()
    found = status_of(lambda: called(caller, "UnaryCall", asked))
    expect("the status", (found.code, found.details), ("UNKNOWN", text))


def status_code_and_message(caller: Caller) -> None:
    """A status and its text."""
    status_said(caller, STATUS_TEXT)


def special_status_message(caller: Caller) -> None:
    """A text that must be encoded."""
    status_said(caller, SPECIAL_TEXT)


def timeout_on_sleeping_server(caller: Caller) -> None:
    """The deadline ends a call in time, and the channel goes on."""
    parts = [{"size": 1, "interval_us": round(SLEEP_S * 1e6)}]
    asked = message("StreamingOutputCallRequest")(response_parameters=parts).SerializeToString()
    ended_in_time(lambda: caller.call(path_of("StreamingOutputCall"), asked, SHORT_S))
    empty_unary(caller)


def ended_in_time(call: Callable[[], GrpcAnswer]) -> None:
    """By DEADLINE_EXCEEDED, well before the server would have answered."""
    began = time.monotonic()
    expect("the status", status_of(call).code, "DEADLINE_EXCEEDED")
    took_s = time.monotonic() - began
    if not SHORT_S * 0.9 <= took_s < SLEEP_S / 2:
        raise Wrong(f"the deadline of {SHORT_S} s ended the call after {took_s:.3f} s")


def unimplemented_method(caller: Caller) -> None:
    """One that the service lacks."""
    expect("the status", status_of(lambda: called(caller, "UnimplementedCall")).code, "UNIMPLEMENTED")


def unimplemented_service(caller: Caller) -> None:
    """One that the server lacks."""
    path = path_of("UnimplementedCall", "grpc.testing.UnimplementedService")
    expect("the status", status_of(lambda: caller.call(path, b"", LONG_S)).code, "UNIMPLEMENTED")


def at_once(
    count: int, call: Callable[[], GrpcAnswer], right: Callable[[GrpcAnswer], bool], abreast: int = 0
) -> None:
    """So many calls side by side, or `abreast` at a time.

    Raises Wrong with how many were not right, and the first of those.
    """

    def one(_: int) -> str:
        try:
            return "" if right(call()) else "another answer"
        except (StatusError, OSError, ValueError) as error:
            return f"{type(error).__name__}: {error}"

    wrong = [said for said in Pool(abreast or count).imap_unordered(one, range(count)) if said]
    if wrong:
        raise Wrong(f"{len(wrong)} of {count} calls: {wrong[0]:.200}")


def concurrent_large_unary(caller: Caller) -> None:
    """A thousand of large_unary at once."""
    body = simple(UP_BYTES, DOWN_BYTES)
    at_once(
        CALLS,
        lambda: called(caller, "UnaryCall", body),
        lambda answer: len(payload_of(answer)) == DOWN_BYTES,
    )


def concurrent_fp32(caller: Caller) -> None:
    """16 pictures' tensors at once for vectors, four times over; not of the description."""
    body = simple(FP32_BYTES, 2048)
    for _ in range(FP32_ROUNDS):
        at_once(
            FP32_CALLS,
            lambda: called(caller, "UnaryCall", body),
            lambda answer: len(payload_of(answer)) == 2048,
        )


def rpc_soak(caller: Caller) -> None:
    """Call after call, 16 at a time: more than some servers and proxies allow on one connection."""
    at_once(
        SOAK_CALLS, lambda: called(caller, "EmptyCall"), lambda answer: not answer.body, abreast=FP32_CALLS
    )


def upstream_down(caller: Caller) -> None:
    """A proxy whose server is not there says so by HTTP's status, 502 or 503; not of the description."""
    expect(
        "the status", status_of(lambda: caller.call("/down.Service/Call", b"", LONG_S)).code, "UNAVAILABLE"
    )


TEST_CASES: Mapping[str, Case] = {
    case.__name__: case
    for case in (
        *(empty_unary, large_unary, custom_metadata, status_code_and_message, special_status_message),
        *(timeout_on_sleeping_server, unimplemented_method, unimplemented_service),
        *(concurrent_large_unary, concurrent_fp32, rpc_soak),
    )
}
"""Of a server of the test service."""
PROXY_CASES = {**TEST_CASES, "no_grpc_status": upstream_down}
"""Of a proxy before such a server."""


def file_without_status(caller: Caller) -> None:
    """A server of files answers 200 and a file, or 404: HTTP's status stands for gRPC's."""
    expect("the status", status_of(lambda: called(caller, "EmptyCall")).code, "UNKNOWN")
    expect(
        "the status",
        status_of(lambda: called(caller, "UnaryCall", simple(UP_BYTES, 0))).code,
        "UNIMPLEMENTED",
    )


FILE_CASES: Mapping[str, Case] = {"no_grpc_status": file_without_status}
"""Of an HTTP/2 server that knows no gRPC."""
ROWS = (*TEST_CASES, "no_grpc_status")
