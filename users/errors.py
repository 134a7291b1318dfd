"""How a request can fail. Foreign exceptions stop here: each becomes one ErrorKind."""

import errno
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum

import gevent
import grpc
from geventhttpclient.response import HTTPConnectionClosed, HTTPParseError
from google.protobuf.message import DecodeError

from users.redact import quoted


class ErrorKind(StrEnum):
    """Why a request failed; the values are what ledgers and reports show."""

    REFUSED = "refused"  # nobody listens at the address
    UNREACHABLE = "unreachable"  # there is no way to the address: a link or a route is down
    DNS = "dns"  # the host name has no address
    TIMEOUT = "timeout"  # no complete answer in time
    RESET = "reset"  # the connection broke before the answer was complete
    TLS = "tls"  # no TLS with the server: its certificate, its name, ours, or that it speaks none
    REJECTED = "rejected"  # the server says the request is at fault (HTTP 4xx and its gRPC likes)
    SERVER_ERROR = "server-error"  # the server says it is at fault (HTTP 5xx and its gRPC likes)
    BAD_REPLY = "bad-reply"  # an answer that is not what was asked for: shape, norm, not finite, not parsed
    WRONG_EMBEDDING = "wrong-embedding"  # a well-formed embedding, but not that of the image sent
    EXHAUSTED = "exhausted"  # the client's own machine has no port, open file or memory left for a connection
    OTHER = "other"  # anything else


class RequestError(Exception):
    """A request that failed, with its kind; the text holds no request ids, so equal failures group."""

    def __init__(self, kind: ErrorKind, detail: str) -> None:
        super().__init__(f"{kind}: {detail}" if detail else str(kind))
        self.kind = kind
        self.detail = detail


class TargetError(Exception):
    """A target is not what was expected, or does not work; the text is the reason and the fix."""


Code = grpc.StatusCode
OF_REQUEST = (Code.INVALID_ARGUMENT, Code.NOT_FOUND, Code.ALREADY_EXISTS, Code.PERMISSION_DENIED,
              Code.UNAUTHENTICATED, Code.RESOURCE_EXHAUSTED, Code.FAILED_PRECONDITION, Code.OUT_OF_RANGE,
              Code.UNIMPLEMENTED)  # fmt: skip
GRPC_KINDS = {
    Code.DEADLINE_EXCEEDED: ErrorKind.TIMEOUT,
    Code.CANCELLED: ErrorKind.RESET,
    **dict.fromkeys(OF_REQUEST, ErrorKind.REJECTED),
    **dict.fromkeys((Code.ABORTED, Code.DATA_LOSS, Code.INTERNAL, Code.UNKNOWN), ErrorKind.SERVER_ERROR),
}

TLS_WORDS = {
    "WRONG_VERSION": "does not speak TLS",
    "RECORD_LAYER_FAILURE": "does not speak TLS",
    "CERTIFICATE_REQUIRED": "demands a client certificate",
    "HANDSHAKE_FAILURE": "refuses the handshake, as one that demands a client certificate may",
    "BAD_CERTIFICATE": "does not accept the client certificate",
    "ALERT_UNKNOWN_CA": "does not know who signed the client certificate",
    "UNEXPECTED_EOF": "hung up in the handshake",
    "VERIFY_FAILED": "its certificate is not accepted",
    "Hostname Verification": "its certificate is not accepted: it is for another name",
}
"""By parts of OpenSSL's and gRPC's reasons, whose names differ between versions."""
CUT_OFF = "UNEXPECTED_EOF_WHILE_READING"
"""OpenSSL's reason for what Python calls an SSLEOFError only since 3.11.4."""
BEYOND = (RecursionError, OverflowError)
"""What huge numbers and deep nesting raise."""
BEYOND_WORDS = ("CLIENT: Received message larger than max", "Compression algorithm")
"""Of gRPC's own texts on answers beyond our limits (users/transport/size_limits.py)."""
MOST_READ = 16_384
"""Bytes of an error's body that are read: more than the longest token takes in JSON."""
BROKEN_WORDS = ("closed", "reset", "broken", "goaway", "connect", "stream removed", "recvmsg", "sendmsg",
                "keepalive", "transport")  # fmt: skip
"""Of gRPC's own texts on broken connections."""
ERRNOS = {
    ErrorKind.RESET: (errno.ECONNRESET, errno.EPIPE, errno.ECONNABORTED, errno.ENOTCONN),
    ErrorKind.EXHAUSTED: (errno.EADDRNOTAVAIL, errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM),
    ErrorKind.UNREACHABLE: (errno.EHOSTUNREACH, errno.ENETUNREACH, errno.ENETDOWN, errno.EHOSTDOWN),
}


@contextmanager
def translated() -> Iterator[None]:
    """Turn whatever a client library raises inside the block into a RequestError."""
    try:
        yield
    except RequestError:
        raise
    except (Exception, gevent.Timeout) as error:
        raise request_error(error) from error


def request_error(error: BaseException) -> RequestError:
    """What a client library raised, as a RequestError."""
    return RequestError(kind_of(error), short(error))


def kind_of(error: BaseException) -> ErrorKind:
    """The ErrorKind of a foreign exception; the most specific wins."""
    if isinstance(error, grpc.RpcError):
        return grpc_kind(error)
    if isinstance(error, (TimeoutError, gevent.Timeout)):
        return ErrorKind.TIMEOUT
    if isinstance(error, socket.gaierror):
        return ErrorKind.DNS
    if isinstance(error, ConnectionRefusedError):
        return ErrorKind.REFUSED
    if isinstance(error, ssl.SSLError):
        return ErrorKind.RESET if is_cut_off(error) else ErrorKind.TLS
    if isinstance(error, HTTPConnectionClosed) or "Incomplete response" in str(error):
        return ErrorKind.RESET
    if isinstance(error, OSError):
        return next((kind for kind, known in ERRNOS.items() if error.errno in known), ErrorKind.OTHER)
    if isinstance(error, (HTTPParseError, DecodeError, ValueError, LookupError, TypeError, *BEYOND)):
        return ErrorKind.BAD_REPLY
    return ErrorKind.OTHER


def is_cut_off(error: ssl.SSLError) -> bool:
    """Whether the other end has hung up."""
    return isinstance(error, (ssl.SSLEOFError, ssl.SSLZeroReturnError)) or error.reason == CUT_OFF


def grpc_kind(error: grpc.RpcError) -> ErrorKind:
    """gRPC says UNAVAILABLE for a refused, an unresolved and a broken connection, and servers do: its text
    tells which.
    """
    code = error.code() if isinstance(error, grpc.Call) else None
    if isinstance(error, grpc.Call) and any(words in (error.details() or "") for words in BEYOND_WORDS):
        return ErrorKind.BAD_REPLY
    if code is not grpc.StatusCode.UNAVAILABLE:
        return GRPC_KINDS.get(code, ErrorKind.OTHER)
    text = (error.details() or "").lower()
    told = {"dns": ErrorKind.DNS, "resolution": ErrorKind.DNS, "refused": ErrorKind.REFUSED}
    told |= {"timed out": ErrorKind.TIMEOUT, "handshake failed": ErrorKind.TLS, "verification": ErrorKind.TLS}
    told |= dict.fromkeys(("cannot assign requested address", "too many open files"), ErrorKind.EXHAUSTED)
    told |= dict.fromkeys(("no route to host", "unreachable"), ErrorKind.UNREACHABLE)
    told |= dict.fromkeys(BROKEN_WORDS, ErrorKind.RESET)
    # What none of gRPC's own words is in, a server has said: Triton does of a full queue.
    return next((kind for word, kind in told.items() if word in text), ErrorKind.SERVER_ERROR)


def status_error(status: int, body: bytes) -> RequestError:
    """The failure an HTTP status other than 200 stands for, with the start of the server's words."""
    kind = ErrorKind.REJECTED if 400 <= status < 500 else ErrorKind.SERVER_ERROR
    if not 400 <= status < 600:
        kind = ErrorKind.BAD_REPLY
    said = quoted(body[:MOST_READ].decode("utf-8", "replace"), 120)
    return RequestError(kind, f"HTTP {status} {said}".strip())


def short(error: BaseException) -> str:
    """One line of at most 160 characters, without our token."""
    if isinstance(error, ssl.SSLError):
        return tls_fault(error)
    details = error.details() if isinstance(error, grpc.Call) else str(error)
    if isinstance(error, grpc.Call) and grpc_kind(error) is ErrorKind.TLS:
        details = in_words(details or "")
    return quoted(details or type(error).__name__, 160)


def tls_fault(error: ssl.SSLError) -> str:
    """What was wrong with TLS, in words; OpenSSL's own where they are not known."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not accepted: {error.verify_message.rstrip('.')}"
    return in_words(error.reason or str(error))


def in_words(reason: str) -> str:
    """A library's reason why there is no TLS, in words where they are known."""
    return next((words for part, words in TLS_WORDS.items() if part in reason), reason)
