"""What the Python servers of gRPC's test service answer; no socket in here."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, TypeVar

from benchmarks.interop_servers.messages import TEST_SERVICE, message

Value = TypeVar("Value", str, bytes)

INITIAL, TRAILING = "x-grpc-test-echo-initial", "x-grpc-test-echo-trailing-bin"
"""Metadata that comes back: before the answer's message, and after it."""
OK, UNIMPLEMENTED = 0, 12


class Answer(NamedTuple):
    """A message's bytes after so many seconds, or a status other than 0 with its text."""

    body: bytes = b""
    code: int = OK
    text: str = ""
    after_s: float = 0.0


def empty(_: bytes) -> Answer:
    """EmptyCall."""
    return Answer()


def unary(body: bytes) -> Answer:
    """UnaryCall: as many zero bytes as are asked for, or the status that is."""
    asked = message("SimpleRequest").FromString(body)
    if asked.response_status.code:
        return Answer(b"", asked.response_status.code, asked.response_status.message)
    answer = message("SimpleResponse")(payload={"body": bytes(asked.response_size)})
    return Answer(answer.SerializeToString())


def output(body: bytes) -> Answer:
    """StreamingOutputCall, of one message."""
    (part,) = message("StreamingOutputCallRequest").FromString(body).response_parameters
    answer = message("StreamingOutputCallResponse")(payload={"body": bytes(part.size)})
    return Answer(answer.SerializeToString(), after_s=part.interval_us / 1e6)


METHODS = {"EmptyCall": empty, "UnaryCall": unary, "StreamingOutputCall": output}


def echoed(name: str, metadata: Iterable[tuple[str, Value]]) -> list[tuple[str, Value]]:
    """The fields of that name, to be sent back."""
    return [(key, value) for key, value in metadata if key == name]


def answer_to(path: str, body: bytes) -> Answer:
    """By `:path`; a method or service that is not there is UNIMPLEMENTED."""
    service, _, method = path.removeprefix("/").partition("/")
    if service != TEST_SERVICE:
        return Answer(code=UNIMPLEMENTED, text=f"unknown service {service}")
    if method not in METHODS:
        return Answer(code=UNIMPLEMENTED, text=f"unknown method {method} of service {service}")
    return METHODS[method](body)
