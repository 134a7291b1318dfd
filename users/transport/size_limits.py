"""How large an answer may be: what a server sends beyond that is no answer, and is not kept.

A server under test is a third-party program. It may promise a gigabyte, send headers or interim answers for
ever, or pack gigabytes into a message of a few kilobytes.
"""

import functools
from typing import Any

import gevent
from geventhttpclient import client
from geventhttpclient.response import HTTPSocketPoolResponse, HTTPSocketResponse

LARGEST_BYTES = 1 << 24
"""Of an answer of unknown size: a server's metrics, its models."""
LONGEST_HEAD_BYTES = 1 << 18
"""Of status lines and headers, including those of interim answers."""
MOST_HEADERS = 1 << 12
"""Including trailers after a chunked body."""
TURN_BYTES = 1 << 20
"""After this many, other greenlets get a turn, timeouts included."""


class Bounded:
    """Before a class of geventhttpclient's responses: an answer beyond all bounds is none."""

    largest_bytes = LARGEST_BYTES
    _fed = _head = _since = 0

    def feed(self, data: str | bytes) -> None:
        """Take the next bytes. Raises ValueError."""
        self._fed += len(data)
        self._since += len(data)
        if not self.headers_complete or self.get_code() < 200:  # type: ignore[attr-defined]
            self._head += len(data)
        if self._fed > self.largest_bytes or self._head > LONGEST_HEAD_BYTES:
            raise ValueError(f"an answer that goes on after {self._fed:,} bytes")
        if self._since > TURN_BYTES:
            self._since = 0
            gevent.sleep(0)
        super().feed(data)  # type: ignore[misc]
        if self._header_position > MOST_HEADERS:  # type: ignore[attr-defined]
            raise ValueError("an answer with endless headers")


class BoundedResponse(Bounded, HTTPSocketResponse):
    """An answer read off a connection."""

    def __init__(self, socket: Any, begun: bytes, largest_bytes: int) -> None:
        self.largest_bytes = largest_bytes
        super().__init__(socket, method="POST", pre_buffered=begun)


class BoundedPoolResponse(Bounded, HTTPSocketPoolResponse):
    """An answer read off a pool's connection."""


@functools.cache
def bound_library() -> None:
    """From here on for all of this process' clients: the library has no other place for it."""
    client.HTTPSocketPoolResponse = BoundedPoolResponse  # type: ignore[attr-defined]
