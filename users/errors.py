"""How a request can fail. Foreign exceptions stop here: each becomes one ErrorKind."""

import errno
import re
import socket
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from types import MappingProxyType
from urllib.parse import urljoin

import gevent
import grpc
from geventhttpclient.response import HTTPConnectionClosed, HTTPParseError
from google.protobuf.message import DecodeError

from users.redact import quoted

NO_HEADERS: Mapping[str, str] = MappingProxyType({})


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
    """A request that failed, with its kind; the text holds no request ids, so equal failures group.

    `code`: the HTTP status or gRPC code of the server's answer, or the system's name of the error where this
    machine had nothing left; empty where there is none. `retry_after`: the answer's own words on when to ask
    again, None without any. `refused_for`: what the answer says is full, one of REFUSED_FOR's names; empty
    where it does not say, or is no refusal.
    """

    def __init__(
        self,
        kind: ErrorKind,
        detail: str,
        code: str = "",
        retry_after: str | None = None,
        refused_for: str = "",
    ) -> None:
        super().__init__(f"{kind}: {detail}" if detail else str(kind))
        self.kind = kind
        self.detail = detail
        self.code = code
        self.retry_after = retry_after
        self.refused_for = refused_for

    @property
    def whole(self) -> str:
        """An answer's status and the server's words: `HTTP 502 <html> …`; without an answer what happened."""
        if not self.code:
            return str(self)
        return self.detail if self.code.isdecimal() else f"{self.code} {self.detail}"

    @property
    def retry_after_s(self) -> int:
        """The seconds to wait before asking again; 0 where it is a date, or not said."""
        said = self.retry_after or ""
        return min(int(said), MOST_RETRY_S) if said.isdecimal() and len(said) <= MOST_DIGITS else 0


class StatusError(Exception):
    """A gRPC server's answer with a status other than OK: `code` is its name, `details` the server's words.

    `pushback`: in how many milliseconds it wants to be asked again, in its own words; None where it does not
    say.
    """

    def __init__(self, code: str, details: str, pushback: str | None = None) -> None:
        super().__init__(details)
        self.code, self.details, self.pushback = code, details, pushback


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

NO_TLS = "does not speak TLS"
TLS_WORDS = {
    "WRONG_VERSION": NO_TLS,
    "RECORD_LAYER_FAILURE": NO_TLS,
    "CERTIFICATE_REQUIRED": "demands a client certificate",
    "UNRECOGNIZED_NAME": "has no server of the name that TLS asked for (alert: unrecognized name)",
    "UNEXPECTED_EOF": "hung up in the handshake",
    "VERIFY_FAILED": "its certificate is not accepted",
    "Hostname Verification": "its certificate is not accepted: it is for another name",
}
"""By parts of OpenSSL's and grpcio's reasons, whose names differ between versions."""
ALERT = re.compile(r"(?:SSLV3_ALERT|TLSV1(?:_ALERT)?|TLSV1[1-3]_ALERT)_([A-Z_]+)")
"""In OpenSSL's reason: the server has ended the handshake by TLS, with this word."""
EXPIRED, NOT_YET, WRONG_NAME, WRONG_ADDRESS = 10, 9, 62, 64
"""OpenSSL's codes of failed verifications."""
CUT_OFF = "UNEXPECTED_EOF_WHILE_READING"
"""OpenSSL's reason for what Python calls an SSLEOFError only since 3.11.4."""
BEYOND = (RecursionError, OverflowError)
"""What huge numbers and deep nesting raise."""
BEYOND_WORDS = ("CLIENT: Received message larger than max", "Compression algorithm")
"""Of grpcio's own texts on answers beyond our limits (users/transport/size_limits.py)."""
MOST_READ = 16_384
"""Characters of an error's body in which is looked for what is full."""
BROKEN_WORDS = ("closed", "reset", "broken", "goaway", "connect", "stream removed", "recvmsg", "sendmsg",
                "keepalive", "transport")  # fmt: skip
"""Of grpcio's own texts on broken connections."""
ERRNOS = {
    ErrorKind.RESET: (errno.ECONNRESET, errno.EPIPE, errno.ECONNABORTED, errno.ENOTCONN),
    ErrorKind.EXHAUSTED: (errno.EADDRNOTAVAIL, errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM),
    ErrorKind.UNREACHABLE: (errno.EHOSTUNREACH, errno.ENETUNREACH, errno.ENETDOWN, errno.EHOSTDOWN),
}


REDIRECTS = (301, 302, 303, 307, 308)
SIDE_BY_SIDE = re.compile(rb"\d\s*,\s*-?\d")
"""Two numbers, as vectors have them."""
REFUSALS = ("429", "503", "RESOURCE_EXHAUSTED", "UNAVAILABLE")
"""Codes by which a server refuses a request that it might take at another time."""
REFUSED_FOR = {
    "size": ("larger than max", "too large", "message length", "message size"),
    "rate": ("rate limit", "rate_limit", "rate-limit", "ratelimit", "quota", "throttl"),
    "queue": ("queue", "in flight", "in-flight", "concurren", "overload", "overflow", "at capacity",
              "busy", "timeout expired"),
}  # fmt: skip
"""Parts of servers' own words, by what is full: nothing (the request itself is too large), a rate, a queue.

Triton: "Exceeds maximum queue size", "Request timeout expired" in its queue. Text Embeddings Inference:
"Model is overloaded". Envoy: "reset reason: overflow", "local_rate_limited". BentoML: "Service Busy". "Too
many requests" is only HTTP's own name of 429, and "capacity problems" are in Apache's page for any 503."""
MOST_RETRY_S, MOST_DIGITS = 86_400, 9
"""A day; a longer wait is no advice on when to ask again."""
PUSHBACK = "grpc-retry-pushback-ms"
"""gRPC's own Retry-After, in what follows an answer."""


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
    """What a client library raised, as a RequestError, which it may be already."""
    if isinstance(error, RequestError):
        return error
    kind = kind_of(error)
    code = code_of(error, kind)
    return RequestError(kind, short(error), code, pushback_of(error), refused_for(code, words_of(error)))


def words_of(error: BaseException) -> str:
    """What a gRPC server, or the library, says of it; empty of other errors."""
    if isinstance(error, StatusError):
        return error.details
    return str(error.details() or "") if isinstance(error, grpc.Call) else ""


def code_of(error: BaseException, kind: ErrorKind) -> str:
    """What the server's answer was by gRPC's name of it, or what this machine lacked by the system's."""
    if kind in (ErrorKind.REJECTED, ErrorKind.SERVER_ERROR) and isinstance(error, (StatusError, grpc.Call)):
        return error.code if isinstance(error, StatusError) else str(error.code().name)
    if kind is not ErrorKind.EXHAUSTED:
        return ""
    if isinstance(error, grpc.Call):
        text = (error.details() or "").lower()
        return "EADDRNOTAVAIL" if "cannot assign requested address" in text else "EMFILE"
    return errno.errorcode.get(getattr(error, "errno", None) or 0, "")


def refused_for(code: str, said: str) -> str:
    """What is full, by the words of an answer that refuses a request; empty where they do not say.

    >>> refused_for("UNAVAILABLE", "Exceeds maximum queue size"), refused_for("429", "Too Many Requests")
    ('queue', '')
    """
    if code not in REFUSALS:
        return ""
    words = said.lower()
    return next((name for name, parts in REFUSED_FOR.items() if any(part in words for part in parts)), "")


def pushback_of(error: BaseException) -> str | None:
    """In how many whole seconds a gRPC server wants to be asked again; None where it does not say."""
    said = error.pushback if isinstance(error, StatusError) else pushback_said(error)
    if not isinstance(said, str) or not said.isdecimal() or len(said) > MOST_DIGITS:
        return None
    return str(-(-int(said) // 1_000))


def pushback_said(error: BaseException) -> str | bytes:
    """What a call of the library brought of it; empty without."""
    try:
        told = error.trailing_metadata() if isinstance(error, grpc.Call) else ()
    except Exception:  # a call that is not over has none
        return ""
    return next((value for name, value in told or () if name == PUSHBACK), "")


def kind_of(error: BaseException) -> ErrorKind:
    """The ErrorKind of a foreign exception; the most specific wins."""
    if isinstance(error, StatusError):  # what of it is the connection's has another exception
        return GRPC_KINDS.get(Code[error.code], ErrorKind.SERVER_ERROR)
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
    return isinstance(error, (ssl.SSLEOFError, ssl.SSLZeroReturnError)) or reason_of(error) == CUT_OFF


def reason_of(error: ssl.SSLError) -> str:
    """OpenSSL's own word for what was wrong; empty where it was not OpenSSL that found it."""
    reason: str = getattr(error, "reason", None) or ""
    return reason


def grpc_kind(error: grpc.RpcError) -> ErrorKind:
    """grpcio says UNAVAILABLE for a refused, an unresolved and a broken connection, and servers do: its text
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
    # What none of grpcio's own words is in, a server has said: Triton does of a full queue.
    return next((kind for word, kind in told.items() if word in text), ErrorKind.SERVER_ERROR)


def status_error(
    status: int, body: bytes, headers: Mapping[str, str] = NO_HEADERS, url: str = ""
) -> RequestError:
    """The failure an HTTP status other than 200 stands for, with the server's words.

    `headers`: of the answer, names in lower case. `url`: what was asked. A redirect is not followed: that
    would be another server's time, or two requests' for one.
    """
    kind = ErrorKind.REJECTED if 400 <= status < 500 else ErrorKind.SERVER_ERROR
    if not 400 <= status < 600:
        kind = ErrorKind.BAD_REPLY
    text = body.decode("utf-8", "replace")
    detail = f"HTTP {status} {quoted(text)}".strip()
    if status in REDIRECTS:
        to = quoted(urljoin(url, headers.get("location", "")))
        known = f"to {to}; give that URL" if "location" in headers else "without saying where (no Location)"
        detail += f"; it redirects {known}"
    code, again = str(status), headers.get("retry-after")
    return RequestError(kind, detail, code, again, refused_for(code, text[:MOST_READ]))


def reading_error(error: Exception, status: int, body: bytes) -> RequestError:
    """What a codec raised on an answer, as a RequestError with the answer's own words where it has some.

    Vectors are no words: they would keep equal failures apart.
    """
    made = request_error(error)
    if not body:
        return RequestError(made.kind, f"HTTP {status} with an empty body")
    has_reason = isinstance(error, (RequestError, ValueError))
    fault = made.detail if has_reason else "an answer of another form than expected"
    start = body[:MOST_READ]
    if b"\0" in start or SIDE_BY_SIDE.search(start):
        return RequestError(made.kind, fault if has_reason else f"{fault} ({made.detail})")
    return RequestError(made.kind, f"HTTP {status} {quoted(body.decode('utf-8', 'replace'))}; {fault}")


def short(error: BaseException) -> str:
    """What a client library says of it, on one line, without our token."""
    if isinstance(error, ssl.SSLError):
        return tls_fault(error)
    details = error.details() if isinstance(error, grpc.Call) else str(error)
    if isinstance(error, KeyError):
        details = f"an answer without {details}"
    if isinstance(error, grpc.Call) and grpc_kind(error) is ErrorKind.TLS:
        details = in_words(details or "")
    return quoted(details or type(error).__name__)


def tls_fault(error: ssl.SSLError) -> str:
    """What was wrong with TLS, in words; OpenSSL's own where they are not known."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not accepted: {error.verify_message.rstrip('.')}"
    return in_words(reason_of(error) or str(error))


def in_words(reason: str) -> str:
    """A library's reason why there is no TLS, in words where they are known, and else the alert's own."""
    if known := next((words for part, words in TLS_WORDS.items() if part in reason), ""):
        return known
    alert = ALERT.search(reason)
    return f"refuses the handshake (TLS alert: {alert[1].replace('_', ' ').lower()})" if alert else reason


def is_alert(error: ssl.SSLError) -> bool:
    """Whether the server has ended the handshake by TLS' own means."""
    return ALERT.search(reason_of(error)) is not None


def tls_advice(error: ssl.SSLError, certified: bool, plain: str) -> str:
    """What to do about a handshake that failed, where that is certain; empty otherwise.

    `certified`: a client certificate was given. `plain`: the endpoint's URL without TLS.
    """
    if isinstance(error, ssl.SSLCertVerificationError):
        if error.verify_code in (EXPIRED, NOT_YET):
            return "renew it there, or correct this host's clock"
        if error.verify_code in (WRONG_NAME, WRONG_ADDRESS):
            return "use the name in it, as the address or as host in the endpoint's file"
        return "give its authority's with --tls-ca"
    words, own = tls_fault(error), "one that it knows by " if certified else ""
    return {
        NO_TLS: f"give {plain}, or the port that does",
        TLS_WORDS["CERTIFICATE_REQUIRED"]: f"give {own}--tls-client-cert and --tls-client-key",
        TLS_WORDS["UNRECOGNIZED_NAME"]: "give the name that it knows, as the address or as host in the"
        " endpoint's file",
    }.get(words, "")
