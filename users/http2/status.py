"""What an answer's status means, in gRPC's names: of its trailers, of HTTP, of a stream that was reset.

Source: gRPC's PROTOCOL-HTTP2.md and http-grpc-status-mapping.md.
"""

import re
from collections.abc import Mapping
from urllib.parse import unquote

import grpc

from users.errors import PUSHBACK, StatusError
from users.http2.frames import CANCEL, ENHANCE_YOUR_CALM, REFUSED_STREAM

OK, UNKNOWN, INTERNAL = "OK", "UNKNOWN", "INTERNAL"
NAMES: Mapping[int, str] = {code.value[0]: code.name for code in grpc.StatusCode}
OF_HTTP = {
    "400": INTERNAL, "401": "UNAUTHENTICATED", "403": "PERMISSION_DENIED", "404": "UNIMPLEMENTED",
    "429": "UNAVAILABLE", "502": "UNAVAILABLE", "503": "UNAVAILABLE", "504": "UNAVAILABLE",
}  # fmt: skip
OF_RESET = {
    REFUSED_STREAM: "UNAVAILABLE",
    CANCEL: "CANCELLED",
    ENHANCE_YOUR_CALM: "RESOURCE_EXHAUSTED",
    0xC: "PERMISSION_DENIED",  # INADEQUATE_SECURITY
}


class Unprocessed(StatusError):
    """The server has not processed a call, so that it may be sent again. `sent`: the call had a stream."""

    def __init__(self, details: str, sent: bool = True) -> None:
        super().__init__("UNAVAILABLE", details)
        self.sent = sent


def fault_of(headers: Mapping[str, str], trailers: Mapping[str, str]) -> StatusError | None:
    """What is wrong by an answer's headers and trailers; None where its status is OK.

    Without a status of gRPC's own, that of HTTP stands for it.
    """
    if trailers.get("grpc-status") == "0":
        return None
    status = trailers.get("grpc-status") or headers.get("grpc-status", "")
    pushback = trailers.get(PUSHBACK)
    if re.fullmatch("[0-9]{1,9}", status):
        name = NAMES.get(int(status), UNKNOWN)
        said = unquote(trailers.get("grpc-message") or headers.get("grpc-message", ""), errors="replace")
        return None if name == OK else StatusError(name, said or f"gRPC status {status}", pushback)
    http = headers.get(":status", "")
    kind = headers.get("content-type", "no content type")
    if http == "200":
        said = f"an answer without a gRPC status ({kind})"
    else:
        said = f"HTTP {http:.10} ({kind}) and no gRPC status"
    return StatusError(OF_HTTP.get(http, UNKNOWN), said, pushback)


def reset_fault(code: int) -> StatusError:
    """What RST_STREAM with this error code stands for."""
    if code == REFUSED_STREAM:
        return Unprocessed("the server refused the stream (REFUSED_STREAM)")
    return StatusError(OF_RESET.get(code, INTERNAL), f"the server reset the stream (HTTP/2 error {code})")
