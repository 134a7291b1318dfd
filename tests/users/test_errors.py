"""Every foreign exception becomes one kind."""

import socket

import gevent
import geventhttpclient.response
import grpc
import pytest
from geventhttpclient.response import HTTPConnectionClosed, HTTPParseError, HTTPProtocolViolationError
from google.protobuf.message import DecodeError

from reports.fold import windows
from tests.processes import free_port
from tests.users.ways import codec_at
from users.codecs.base import Codec, PreparedRequest
from users.codecs.embed import Embed
from users.codecs.v2_grpc import V2Grpc
from users.errors import (
    GRPC_KINDS,
    REFUSALS,
    ErrorKind,
    RequestError,
    kind_of,
    request_error,
    status_error,
    translated,
)
from users.transport.transports import client


class FakeRpcError(grpc.RpcError, grpc.Call):
    """A gRPC failure with a code and a text."""

    def __init__(self, code: grpc.StatusCode, text: str, **trailers: str) -> None:
        self._code, self._text = code, text
        self.trailers = tuple((name.replace("_", "-"), value) for name, value in trailers.items())

    def code(self) -> grpc.StatusCode:
        return self._code

    def details(self) -> str:
        return self._text

    def trailing_metadata(self) -> tuple[tuple[str, str], ...]:
        return self.trailers


FakeRpcError.__abstractmethods__ = frozenset()
Code = grpc.StatusCode


def test_reports_know_the_same_refusals() -> None:
    assert set(REFUSALS) == set(windows.REFUSALS)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ConnectionRefusedError(111, "no"), ErrorKind.REFUSED),
        (socket.gaierror(-2, "unknown"), ErrorKind.DNS),
        (TimeoutError("timed out"), ErrorKind.TIMEOUT),
        (gevent.Timeout(1), ErrorKind.TIMEOUT),
        (ConnectionResetError(104, "reset"), ErrorKind.RESET),
        (BrokenPipeError(32, "pipe"), ErrorKind.RESET),
        (OSError(28, "no space"), ErrorKind.OTHER),
        (OSError(99, "Cannot assign requested address"), ErrorKind.EXHAUSTED),
        (OSError(24, "Too many open files"), ErrorKind.EXHAUSTED),
        (OSError(113, "No route to host"), ErrorKind.UNREACHABLE),
        (FakeRpcError(grpc.StatusCode.UNAVAILABLE, "connect: No route to host"), ErrorKind.UNREACHABLE),
        (FakeRpcError(grpc.StatusCode.UNAVAILABLE, "socket: Too many open files"), ErrorKind.EXHAUSTED),
        (HTTPConnectionClosed("closed"), ErrorKind.RESET),
        (HTTPParseError("bad"), ErrorKind.BAD_REPLY),
        (HTTPProtocolViolationError("bad"), ErrorKind.BAD_REPLY),
        (ValueError("not JSON"), ErrorKind.BAD_REPLY),
        (KeyError("embeddings"), ErrorKind.BAD_REPLY),
        (IndexError("no output"), ErrorKind.BAD_REPLY),
        (DecodeError("not a message"), ErrorKind.BAD_REPLY),
        (ZeroDivisionError(), ErrorKind.OTHER),
        (FakeRpcError(grpc.StatusCode.DEADLINE_EXCEEDED, ""), ErrorKind.TIMEOUT),
        (FakeRpcError(grpc.StatusCode.INTERNAL, "boom"), ErrorKind.SERVER_ERROR),
        (FakeRpcError(grpc.StatusCode.UNAVAILABLE, "Connection refused"), ErrorKind.REFUSED),
        (FakeRpcError(grpc.StatusCode.UNAVAILABLE, "DNS resolution failed"), ErrorKind.DNS),
        (FakeRpcError(grpc.StatusCode.UNAVAILABLE, "Socket closed"), ErrorKind.RESET),
        (FakeRpcError(grpc.StatusCode.UNAVAILABLE, "recvmsg:Connection reset by peer"), ErrorKind.RESET),
        (FakeRpcError(grpc.StatusCode.UNAVAILABLE, "Exceeds maximum queue size"), ErrorKind.SERVER_ERROR),
        (FakeRpcError(grpc.StatusCode.UNAVAILABLE, "GOAWAY received; connection closed"), ErrorKind.RESET),
        (FakeRpcError(grpc.StatusCode.UNAVAILABLE, "connect: Connection timed out"), ErrorKind.TIMEOUT),
        (
            FakeRpcError(
                grpc.StatusCode.RESOURCE_EXHAUSTED, "CLIENT: Received message larger than max (9 vs. 8)"
            ),
            ErrorKind.BAD_REPLY,
        ),
        (FakeRpcError(grpc.StatusCode.RESOURCE_EXHAUSTED, "too busy"), ErrorKind.REJECTED),
        (HTTPParseError("Incomplete response"), ErrorKind.RESET),
    ],
)
def test_kinds(error: BaseException, kind: ErrorKind) -> None:
    assert kind_of(error) is kind


def test_no_grpc_status_is_unmapped() -> None:
    mapped = {*GRPC_KINDS, grpc.StatusCode.OK, grpc.StatusCode.UNAVAILABLE}
    assert set(grpc.StatusCode) - mapped == set()


def test_no_exception_of_the_http_library_is_unmapped() -> None:
    own = [
        value
        for value in vars(geventhttpclient.response).values()
        if isinstance(value, type) and issubclass(value, Exception) and "geventhttpclient" in value.__module__
    ]
    assert len(own) >= 2
    assert all(kind_of(made("text")) is not ErrorKind.OTHER for made in own)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (404, ErrorKind.REJECTED),
        (429, ErrorKind.REJECTED),
        (503, ErrorKind.SERVER_ERROR),
        (302, ErrorKind.BAD_REPLY),
    ],
)
def test_http_status(status: int, kind: ErrorKind) -> None:
    error = status_error(status, b"\xffwhy\n" * 100)
    assert error.kind is kind
    assert len(str(error)) < 200


@pytest.mark.parametrize(
    ("status", "body", "refused_for"),
    [
        (429, "<title>429 Too Many Requests</title>", ""),  # nginx: it only names the status
        (429, '{"error":"Model is overloaded"}', "queue"),  # Text Embeddings Inference
        (429, "local_rate_limited", "rate"),  # Envoy
        (429, '{"detail": "the limit of requests in flight (5) is reached: try again in 1 s"}', "queue"),
        (503, '{"error":"Exceeds maximum queue size"}', "queue"),  # Triton
        (503, "upstream connect error or disconnect/reset before headers. reset reason: overflow", "queue"),
        (503, "Service Busy", "queue"),  # BentoML
        (
            503,
            "unable to service your request due to maintenance downtime or capacity problems",
            "",
        ),  # Apache
        (503, "the model is still loading: try again when GET /readyz answers 200", ""),
        (500, "Exceeds maximum queue size", ""),  # no refusal
    ],
)
def test_what_a_refusal_says_is_full(status: int, body: str, refused_for: str) -> None:
    error = status_error(status, body.encode())
    assert (error.code, error.refused_for, error.retry_after) == (str(status), refused_for, None)


@pytest.mark.parametrize(
    ("told", "seconds"),
    [
        ("120", 120),
        ("0", 0),
        ("Fri, 31 Dec 1999 23:59:59 GMT", 0),
        ("9" * 5_000, 0),
        ("-1", 0),
        ("\u00b2", 0),
        ("999999", 86_400),
    ],
)
def test_when_to_ask_again(told: str, seconds: int) -> None:
    error = status_error(503, b"", {"retry-after": told})
    assert (error.retry_after, error.retry_after_s) == (told, seconds)


@pytest.mark.parametrize(
    ("error", "code", "refused_for"),
    [
        (FakeRpcError(Code.UNAVAILABLE, "Exceeds maximum queue size"), "UNAVAILABLE", "queue"),
        (FakeRpcError(Code.UNAVAILABLE, "Request timeout expired"), "UNAVAILABLE", "queue"),
        (FakeRpcError(Code.UNAVAILABLE, "no healthy upstream"), "UNAVAILABLE", ""),
        (FakeRpcError(Code.RESOURCE_EXHAUSTED, "quota exceeded"), "RESOURCE_EXHAUSTED", "rate"),
        (
            FakeRpcError(Code.RESOURCE_EXHAUSTED, "SERVER: Received message larger than max (9 vs. 8)"),
            *("RESOURCE_EXHAUSTED", "size"),
        ),
        (FakeRpcError(Code.RESOURCE_EXHAUSTED, "CLIENT: Received message larger than max"), "", ""),
        (FakeRpcError(Code.UNAVAILABLE, "Connection refused"), "", ""),  # no server has said it
        (FakeRpcError(Code.INTERNAL, "the queue broke"), "INTERNAL", ""),
        (FakeRpcError(Code.DEADLINE_EXCEEDED, ""), "", ""),
        (FakeRpcError(Code.UNAVAILABLE, "connect: Cannot assign requested address"), "EADDRNOTAVAIL", ""),
        (FakeRpcError(Code.UNAVAILABLE, "socket: Too many open files"), "EMFILE", ""),
        (OSError(99, "Cannot assign requested address"), "EADDRNOTAVAIL", ""),
        (OSError(24, "Too many open files"), "EMFILE", ""),
        (ConnectionRefusedError(111, "no"), "", ""),
    ],
)
def test_codes_of_what_a_server_has_said_and_of_what_this_machine_lacks(
    error: BaseException, code: str, refused_for: str
) -> None:
    found = request_error(error)
    assert (found.code, found.refused_for, found.retry_after) == (code, refused_for, None)


@pytest.mark.parametrize(("told", "seconds"), [("1500", "2"), ("0", "0"), ("-1", None), ("x", None)])
def test_grpcs_own_retry_after(told: str, seconds: str | None) -> None:
    error = request_error(FakeRpcError(Code.UNAVAILABLE, "overloaded", grpc_retry_pushback_ms=told))
    assert error.retry_after == seconds


def test_a_request_error_passes_unchanged() -> None:
    with pytest.raises(RequestError) as caught, translated():
        raise RequestError(ErrorKind.REJECTED, "as it was")
    assert str(caught.value) == "rejected: as it was"


@pytest.fixture
def closed_port() -> int:
    return free_port()


@pytest.mark.parametrize("form", [Embed, V2Grpc])
def test_refused_for_real(form: type[Codec], closed_port: int) -> None:
    codec = codec_at(form, f"127.0.0.1:{closed_port}")
    with client(codec, timeout_s=5) as user, pytest.raises(RequestError) as caught:
        user.send(PreparedRequest(b"{}", (0,)))
    assert caught.value.kind is ErrorKind.REFUSED


@pytest.mark.parametrize("form", [Embed, V2Grpc])
def test_a_silent_server_is_a_timeout(form: type[Codec]) -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        codec = codec_at(form, f"127.0.0.1:{server.getsockname()[1]}")
        with client(codec, timeout_s=0.2) as user, pytest.raises(RequestError) as caught:
            user.send(PreparedRequest(b"{}", (0,)))
    assert caught.value.kind is ErrorKind.TIMEOUT
