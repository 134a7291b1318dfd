"""One unary call on its stream: what of it is to be sent, what has come back, and when each happened."""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter_ns
from typing import NamedTuple

from gevent.hub import Waiter

from users.http2.header_blocks import decoded
from users.http2.status import fault_of
from users.result import NONE

PREFIX_BYTES = 5
"""Before a message: whether it is compressed, and its length."""


class GrpcAnswer(NamedTuple):
    """A message, the headers and trailers around it, and whether it is compressed, as its headers say."""

    body: bytes
    headers: Mapping[str, str] = NONE  # type: ignore[assignment]
    trailers: Mapping[str, str] = NONE  # type: ignore[assignment]
    packed: bool = False


class Call:
    """A call with one message each way; `largest` bytes at most in the answer's.

    `block` is the header block that it begins with; `packed`: its message is compressed, and `unpacks`: an
    answer may be. `stream` is 0 until it has one. `flow_ns`: for how long a window was closed while it had
    something to send. Moments are of `perf_counter_ns`, 0 where it has not come so far; `in_turn_ns` is when
    it may begin to send.
    """

    __slots__ = (
        *("block", "body", "packed", "unpacks", "size", "largest"),
        *("stream", "sent", "window", "closed_ns", "flow_ns", "waiter"),
        *("connect_ns", "resolve_ns", "begun_ns", "stream_wait_ns", "in_turn_ns", "sent_ns", "first_ns"),
        *("headers", "trailers", "parts", "came", "error", "ended"),
    )

    def __init__(
        self,
        block: bytes,
        body: bytes | memoryview,
        largest: int,
        packed: bool = False,
        unpacks: bool = False,
    ) -> None:
        self.block, self.largest = block, largest
        self.packed, self.unpacks = packed, unpacks
        self.body = memoryview(body)
        self.size = PREFIX_BYTES + len(body)
        self.connect_ns = self.resolve_ns = 0
        self.begun_ns = perf_counter_ns()
        self.stream_wait_ns = self.flow_ns = 0
        self.begin_again()

    def begin_again(self) -> None:
        """As if nothing had been sent; when it began stays, and for how long it has waited for what."""
        self.stream = self.sent = self.window = self.closed_ns = 0
        self.in_turn_ns = self.sent_ns = self.first_ns = self.came = 0
        self.headers: Mapping[str, str] | None = None
        self.trailers: Mapping[str, str] | None = None
        self.parts: list[bytes] = []
        self.error: Exception | None = None
        self.waiter: Waiter | None = None
        self.ended = False

    @property
    def left(self) -> int:
        """Bytes that are still to be sent, the prefix included."""
        return self.size - self.sent

    def next_bytes(self, size: int) -> list[bytes | memoryview]:
        """The next bytes to be sent, copied nowhere; there must be so many."""
        begun, self.sent = self.sent, self.sent + size
        if begun >= PREFIX_BYTES:
            return [self.body[begun - PREFIX_BYTES : self.sent - PREFIX_BYTES]]
        told = self.packed << 32 | self.size - PREFIX_BYTES
        prefix = told.to_bytes(PREFIX_BYTES, "big")[begun : self.sent]
        return [prefix, self.body[: max(0, self.sent - PREFIX_BYTES)]]

    def add_headers(self, block: bytes, last: bool) -> None:
        """Headers, or trailers where they are the stream's last. Raises ValueError."""
        fields = decoded(block)
        status = fields.get(":status", "")
        if self.headers is None and len(status) == 3 and status.startswith("1") and not last:
            return
        if self.headers is None:
            self.headers = fields
        elif not last:
            raise ValueError("headers in the middle of an answer")
        if last:
            self.trailers = fields

    def add_data(self, data: bytes) -> None:
        """Some of the message. Raises ValueError where it comes before headers, or is too long."""
        if self.headers is None:
            raise ValueError("an answer's data before its headers")
        self.came += len(data)
        if self.came > self.largest + PREFIX_BYTES:
            raise ValueError(f"an answer of more than {self.largest:,} bytes")
        self.parts.append(data)

    def answer(self) -> GrpcAnswer:
        """What came back. Raises StatusError, ValueError, or what ended it before."""
        if self.error is not None:
            raise self.error
        headers, trailers = self.headers or {}, self.trailers or {}
        fault = fault_of(headers, trailers)
        if fault is not None:
            raise fault
        packed, message = message_of(b"".join(self.parts))
        if packed and not self.unpacks:
            raise ValueError("a compressed answer, which was not asked for")
        return GrpcAnswer(message, headers, trailers, packed)

    def phases_ns(self, received_ns: int) -> dict[str, int]:
        """The parts of its time until it was received: as `users.transport.base.Reply` has them.

        `send` has all until the last byte was handed to the kernel that is not `connect`, `stream_wait` or
        `flow_wait`: others' turns, and a full socket. An answer before that ends it.
        """
        first_ns = self.first_ns or received_ns
        apart_ns = self.connect_ns + self.stream_wait_ns + self.flow_ns
        # A window may stay closed behind the beginning of an answer.
        sent_ns = min(self.sent_ns or max(first_ns, self.begun_ns + apart_ns), received_ns)
        found = {
            "stream_wait": self.stream_wait_ns,
            "flow_wait": self.flow_ns,
            "send": max(0, sent_ns - self.begun_ns - apart_ns),
            "wait": max(0, first_ns - sent_ns),
            "receive": received_ns - max(first_ns, sent_ns),
        }
        if self.connect_ns:
            found["connect"] = self.connect_ns
        if self.resolve_ns:
            found["resolve"] = self.resolve_ns
        return found


def message_of(data: bytes) -> tuple[bool, bytes]:
    """Whether the one message of an answer is compressed, and what follows its prefix. Raises ValueError."""
    size = int.from_bytes(data[1:PREFIX_BYTES], "big")
    if len(data) < PREFIX_BYTES or len(data) != PREFIX_BYTES + size:
        raise ValueError("an answer that is not one whole message")
    return bool(data[0]), data[PREFIX_BYTES:]
