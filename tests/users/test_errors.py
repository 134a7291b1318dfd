"""Every foreign exception becomes one kind."""

import errno
import socket
import ssl
import time

import gevent
import geventhttpclient.response
import grpc
import pytest
from geventhttpclient.response import HTTPConnectionClosed, HTTPParseError
from google.protobuf.message import DecodeError

from reports.fold import windows
from tests.processes import free_port
from tests.users.ways import GRPC, GRPC_LIBRARY, LIBRARY, OWN, Way, ask, endpoint_of, user_of
from users.codecs.base import PreparedRequest
from users.errors import (
    REFUSALS,
    ErrorKind,
    RequestError,
    StatusError,
    kind_of,
    reading_error,
    request_error,
    status_error,
    translated,
)
from users.redact import MOST_QUOTED


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
TOO_LARGE = "CLIENT: Received message larger than max (9 vs. 8)"


def test_reports_know_the_same_refusals() -> None:
    assert set(REFUSALS) == set(windows.REFUSALS)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (socket.gaierror(-2, "unknown"), ErrorKind.DNS),
        (TimeoutError("timed out"), ErrorKind.TIMEOUT),
        (gevent.Timeout(1), ErrorKind.TIMEOUT),
        (ssl.SSLEOFError(8, "EOF occurred"), ErrorKind.RESET),
        (ssl.SSLZeroReturnError(6, "closed"), ErrorKind.RESET),
        (ssl.SSLCertVerificationError(1, "self-signed certificate"), ErrorKind.TLS),
        (ssl.SSLError(1, "WRONG_VERSION_NUMBER"), ErrorKind.TLS),
        (HTTPConnectionClosed("closed"), ErrorKind.RESET),
        (HTTPParseError("bad"), ErrorKind.BAD_REPLY),
        (ValueError("not JSON"), ErrorKind.BAD_REPLY),
        (KeyError("embeddings"), ErrorKind.BAD_REPLY),
        (IndexError("no output"), ErrorKind.BAD_REPLY),
        (DecodeError("not a message"), ErrorKind.BAD_REPLY),
        (ZeroDivisionError(), ErrorKind.OTHER),
        (RecursionError(), ErrorKind.BAD_REPLY),
        (OverflowError(), ErrorKind.BAD_REPLY),
        (TypeError("a text"), ErrorKind.BAD_REPLY),
        (grpc.RpcError("no call"), ErrorKind.OTHER),
        (FakeRpcError(Code.RESOURCE_EXHAUSTED, TOO_LARGE), ErrorKind.BAD_REPLY),
        (FakeRpcError(Code.INTERNAL, "Compression algorithm 'gzip' is disabled"), ErrorKind.BAD_REPLY),
        (HTTPParseError("Incomplete response"), ErrorKind.RESET),
    ],
)
def test_kinds(error: BaseException, kind: ErrorKind) -> None:
    assert kind_of(error) is kind


@pytest.mark.parametrize(
    ("names", "kind"),
    [
        ("ECONNRESET EPIPE ECONNABORTED ENOTCONN", ErrorKind.RESET),
        ("EADDRNOTAVAIL EMFILE ENFILE ENOBUFS ENOMEM", ErrorKind.EXHAUSTED),
        ("EHOSTUNREACH ENETUNREACH ENETDOWN EHOSTDOWN", ErrorKind.UNREACHABLE),
        ("ETIMEDOUT", ErrorKind.TIMEOUT),
        ("ECONNREFUSED", ErrorKind.REFUSED),
        ("ENOSPC EINVAL", ErrorKind.OTHER),
    ],
)
def test_kinds_of_the_systems_errors(names: str, kind: ErrorKind) -> None:
    for name in names.split():
        error = request_error(OSError(getattr(errno, name), "so"))
        assert (error.kind, error.code) == (kind, name if kind is ErrorKind.EXHAUSTED else "")


def test_kinds_of_each_grpc_status() -> None:
    kinds = {
        ErrorKind.TIMEOUT: "DEADLINE_EXCEEDED",
        ErrorKind.RESET: "CANCELLED",
        ErrorKind.REJECTED: (
            "INVALID_ARGUMENT NOT_FOUND ALREADY_EXISTS PERMISSION_DENIED UNAUTHENTICATED RESOURCE_EXHAUSTED"
            " FAILED_PRECONDITION OUT_OF_RANGE UNIMPLEMENTED"
        ),
        ErrorKind.SERVER_ERROR: "ABORTED DATA_LOSS INTERNAL UNKNOWN UNAVAILABLE",
    }
    said = {name: kind for kind, names in kinds.items() for name in names.split()}
    assert said.keys() == {code.name for code in Code} - {"OK"}
    for name, kind in said.items():
        of_answer = kind in (ErrorKind.REJECTED, ErrorKind.SERVER_ERROR)
        for error in (FakeRpcError(Code[name], "why"), StatusError(name, "why")):
            found = request_error(error)
            assert (found.kind, found.detail, found.code) == (kind, "why", name if of_answer else "")


@pytest.mark.parametrize(
    ("texts", "kind"),
    [
        (["connect: Connection refused"], ErrorKind.REFUSED),
        (["DNS resolution failed", "Domain name: resolution"], ErrorKind.DNS),
        (["connect: Connection timed out"], ErrorKind.TIMEOUT),
        (["Ssl handshake failed: WRONG_VERSION", "Hostname Verification Check failed."], ErrorKind.TLS),
        (["Cannot assign requested address", "socket: Too many open files"], ErrorKind.EXHAUSTED),
        (["connect: No route to host", "Network is unreachable"], ErrorKind.UNREACHABLE),
        (
            ["Socket closed", "Connection reset by peer", "Broken pipe", "GOAWAY received", "cannot connect",
             "Stream removed", "recvmsg", "sendmsg", "keepalive watchdog", "transport is closing"],
            ErrorKind.RESET,
        ),
        (["Exceeds maximum queue size", ""], ErrorKind.SERVER_ERROR),
    ],
)  # fmt: skip
def test_unavailable_is_what_grpcio_says_of_it(texts: list[str], kind: ErrorKind) -> None:
    assert {kind_of(FakeRpcError(Code.UNAVAILABLE, text)) for text in texts} == {kind}
    assert {kind_of(StatusError("UNAVAILABLE", text)) for text in texts} == {ErrorKind.SERVER_ERROR}


def test_no_exception_of_the_http_library_is_unmapped() -> None:
    classes = [value for value in vars(geventhttpclient.response).values() if isinstance(value, type)]
    own = [one for one in classes if issubclass(one, Exception) and "geventhttpclient" in one.__module__]
    assert len(own) >= 2
    assert all(kind_of(made("text")) is not ErrorKind.OTHER for made in own)


@pytest.mark.parametrize(
    ("status", "kind"),
    [(status, ErrorKind.BAD_REPLY) for status in (302, 399, 600)]
    + [(status, ErrorKind.REJECTED) for status in (400, 499)]
    + [(status, ErrorKind.SERVER_ERROR) for status in (500, 599)],
)
def test_http_status(status: int, kind: ErrorKind) -> None:
    error = status_error(status, b"\xffwhy\n" * 100)
    assert (error.kind, error.code) == (kind, str(status))
    assert error.detail.partition(";")[0] == f"HTTP {status}" + " \ufffdwhy" * 100


def test_of_a_page_the_beginning_and_the_end_are_shown() -> None:
    said = status_error(500, b"why \x1b[31m\xe2\x80\xae" + b" ? " * 100_000 + b"because").detail
    assert said.startswith("HTTP 500 why \\x1b[31m\\u202e ? ?")
    assert said.endswith("? because")
    assert len(said) < MOST_QUOTED + 100


def test_what_is_full_may_be_said_late_in_a_page() -> None:
    said = [status_error(503, b" " * before + b"queue").refused_for for before in (16_000, 16_384)]
    assert said == ["queue", ""]


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
        (503, "due to maintenance downtime or capacity problems", ""),  # Apache
        (500, "Exceeds maximum queue size", ""),  # no refusal
    ],
)
def test_what_a_refusal_says_is_full(status: int, body: str, refused_for: str) -> None:
    error = status_error(status, body.encode())
    assert (error.code, error.refused_for, error.retry_after) == (str(status), refused_for, None)


@pytest.mark.parametrize(
    ("told", "seconds"),
    [("120", 120), ("999999", 86_400)]
    + [(none, 0) for none in ("0", "-1", "\u00b2", "9" * 5_000, "Fri, 31 Dec 1999 23:59:59 GMT")],
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
        (FakeRpcError(Code.RESOURCE_EXHAUSTED, f"SERVER{TOO_LARGE[6:]}"), "RESOURCE_EXHAUSTED", "size"),
        (FakeRpcError(Code.RESOURCE_EXHAUSTED, TOO_LARGE), "", ""),
        (FakeRpcError(Code.UNAVAILABLE, "Connection refused"), "", ""),  # no server has said it
        (FakeRpcError(Code.INTERNAL, "the queue broke"), "INTERNAL", ""),
        (FakeRpcError(Code.UNAVAILABLE, "connect: Cannot assign requested address"), "EADDRNOTAVAIL", ""),
        (FakeRpcError(Code.UNAVAILABLE, "socket: Too many open files"), "EMFILE", ""),
    ],
)
def test_codes_of_servers_and_of_this_machine(error: BaseException, code: str, refused_for: str) -> None:
    found = request_error(error)
    assert (found.code, found.refused_for, found.retry_after) == (code, refused_for, None)


@pytest.mark.parametrize(
    ("told", "seconds"),
    [("1500", "2"), ("1000", "1"), ("1001", "2"), ("0", "0"), ("-1", None), ("x", None), ("9" * 10, None)],
)
def test_grpcs_own_retry_after(told: str, seconds: str | None) -> None:
    by_grpcio = FakeRpcError(Code.UNAVAILABLE, "overloaded", other="7", grpc_retry_pushback_ms=told)
    for error in (by_grpcio, StatusError("UNAVAILABLE", "overloaded", told)):
        found = request_error(error)
        assert (found.retry_after, found.refused_for) == (seconds, "queue")


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (RequestError(ErrorKind.BAD_REPLY, "output emb is empty"), ErrorKind.BAD_REPLY),
        (ValueError("output emb is empty"), ErrorKind.BAD_REPLY),
        (MemoryError("output emb is empty"), ErrorKind.OTHER),
    ],
)
@pytest.mark.parametrize("body", [b'{"outputs": []}', b"[1.0, 2.0]"])
def test_what_a_codec_finds_in_an_answer_keeps_its_kind(
    error: Exception, kind: ErrorKind, body: bytes
) -> None:
    told = reading_error(error, 200, body)
    assert told.kind is kind
    assert told.detail.startswith("HTTP 200") is (b"outputs" in body)
    assert told.detail.endswith("output emb is empty") is (kind is ErrorKind.BAD_REPLY)
    assert str(told).count("bad-reply") == (kind is ErrorKind.BAD_REPLY)


def test_a_request_error_passes_unchanged() -> None:
    with pytest.raises(RequestError) as caught, translated():
        raise RequestError(ErrorKind.REJECTED, "as it was")
    assert str(caught.value) == "rejected: as it was"


WAYS = pytest.mark.parametrize("way", [OWN, LIBRARY, GRPC, GRPC_LIBRARY])


@WAYS
def test_refused_for_real(way: Way) -> None:
    with pytest.raises(RequestError) as caught:
        ask(way, f"127.0.0.1:{free_port()}", tls=False)
    assert caught.value.kind is ErrorKind.REFUSED


@WAYS
def test_a_silent_server_is_a_timeout(way: Way) -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        endpoint = endpoint_of(way, f"127.0.0.1:{server.getsockname()[1]}", tls=False)
        began = time.monotonic()
        with user_of(way, endpoint, timeout_s=0.2) as user, pytest.raises(RequestError) as caught:
            user.send(PreparedRequest(b"{}", (0,)))
        assert 0.2 <= time.monotonic() - began < 5
    assert caught.value.kind is ErrorKind.TIMEOUT
