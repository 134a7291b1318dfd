"""One connection to a gRPC server: what its socket does, and what the server's frames mean (RFC 9113).

It has no greenlet of its own: gevent's loop calls it when something has come, or the socket takes more. So it
always reads, whether users wait or not, and answers a PING at once.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Mapping
from contextlib import suppress
from time import perf_counter_ns

from gevent.event import Event

from users.errors import ErrorKind, kind_of
from users.http2 import frames
from users.http2.call import Call, GrpcAnswer
from users.http2.event_socket import EventSocket
from users.http2.figures import FIGURES
from users.http2.frames import (
    ACK,
    DEFAULT_WINDOW,
    END_HEADERS,
    END_STREAM,
    FRAME_SIZE_ERROR,
    MAX_WINDOW,
    NO_ERROR,
    PADDED,
    PROTOCOL_ERROR,
    ProtocolError,
    frame,
    number_frame,
    number_in,
    unpadded,
)
from users.http2.header_blocks import LARGEST_LIST
from users.http2.sender import SCHEDULING, FrameSender
from users.http2.status import Unprocessed, reset_fault
from users.http2.streams import Streams

CHUNK_BYTES = 1 << 16
CREDIT_BYTES = 1 << 24
"""Received before the peer's window, of 2 GiB, is filled up again: answers are never held back by it."""
IDLE_NS = 100_000_000
"""Without a frame: no usual server closes a connection sooner for being idle."""
PING_EVERY_NS = 1_000_000_000
"""Only behind an answer: then servers that punish idle pings (gRPC's do) count from nothing again."""
GREETING = b"".join(
    (
        frames.PREFACE,
        frames.settings_frame(
            {frames.HEADER_TABLE_SIZE: 0, frames.ENABLE_PUSH: 0, frames.INITIAL_WINDOW_SIZE: MAX_WINDOW}
        ),
        number_frame(frames.WINDOW_UPDATE, 0, MAX_WINDOW - DEFAULT_WINDOW),
    )
)


class Http2Connection:
    """Calls over a connected socket, which is closed with it. `first_stream` is odd.

    Each call waits in the greenlet that makes it.
    """

    def __init__(self, socket: EventSocket, scheduling: str = SCHEDULING, first_stream: int = 1) -> None:
        self._socket = socket
        self._sender = FrameSender(scheduling, lambda: socket.unsent_bytes)
        self.streams = Streams(self._sender, first_stream)
        self._reader = frames.FrameReader()
        self._begun: tuple[int, int, bytes] | None = None
        """Of headers that are not whole: their stream, flags and block so far."""
        self._settled = Event()
        self._broken: Exception | None = None
        self._refused: OSError | None = None
        self._closed = False
        self._unreturned = 0
        self._heard_ns = 0
        self._unheard = False
        """Calls have begun after an idle time, and nothing has come since."""
        self._pings = self._last_ping_ns = self._ping_sent_ns = 0

    @property
    def initial_window(self) -> int:
        """Bytes, as the peer has set it."""
        return self._sender.initial_window

    @property
    def usable(self) -> bool:
        """Whether calls may begin: it is open, the server is not leaving, and stream ids are left."""
        return not self._closed and not self._refused and not self.streams.leaving

    def open(self) -> None:
        """Greet, and wait for the server's settings. Raises ProtocolError and OSError."""
        self._sender.control(GREETING)
        self._socket.when_readable(self._on_readable)
        self._push()
        self._settled.wait()
        if self._broken is not None:
            raise self._broken
        if not self._closed:  # before, its windows and limits were not the server's
            FIGURES.connections.add(self)

    def exchange(self, call: Call) -> GrpcAnswer:
        """Send a call and wait for its answer.

        Raises Unprocessed where it may be sent again elsewhere, and StatusError, ValueError, OSError.
        """
        if not len(self.streams) and self._socket.readable:
            self._read()  # a server that has hung up meanwhile is found out before it is asked
            self.streams.tell_ended()
        is_idle = not len(self.streams)
        if is_idle:
            self._unheard = perf_counter_ns() - self._heard_ns >= IDLE_NS
        if not self.usable:
            raise Unprocessed("the connection is closed", sent=False)
        self.streams.add(call)
        self._push()
        if is_idle:
            self._socket.note_start(call.size)
        self.streams.wait_for(call, self._push)
        return call.answer()

    def close(self) -> None:
        """End it; calls under way fail. Safe to call twice."""
        self._fail(ConnectionAbortedError(errno.ECONNABORTED, "connection closed by this client"))

    def _on_readable(self) -> None:
        self._read()
        self.streams.tell_ended()

    def _on_writable(self) -> None:
        self._push()
        self.streams.tell_ended()

    def _read(self) -> None:
        """Take in what has come, and send what follows from it."""
        try:
            data = self._socket.recv_now(CHUNK_BYTES)
            if data is None:
                return
            if not data:
                raise self._refused or hung_up()
            self._heard_ns, self._unheard = perf_counter_ns(), False
            came = self._reader.read(data)
            FIGURES.counts["frames_received"] += len(came)
            for kind, flags, stream, payload in came:
                if self._begun is not None and (kind != frames.CONTINUATION or stream != self._begun[0]):
                    raise ProtocolError("a frame in the middle of headers")
                handler = HANDLERS.get(kind)
                if handler is not None:
                    handler(self, flags, stream, payload)
        except (OSError, ValueError) as error:
            self._fail(error)
        self._push()

    def _push(self) -> None:
        """Send what may go now, and the rest when the socket takes more."""
        if (self.streams.leaving or self._refused) and not len(self.streams):
            self._close()
        if self._closed or self._refused or self._sender.idle:
            return
        try:
            done = self._sender.push(self._socket.send_now)
        except OSError as error:
            # A server may answer and hang up before it has all: that answer counts, too, and is read first.
            self._refused, done = error, True
        self._socket.when_writable(None if done else self._on_writable)

    def _fail(self, error: Exception) -> None:
        """It is of no more use: all calls end."""
        if self._closed:
            return
        self._broken = error
        if self._unheard and kind_of(error) is ErrorKind.RESET:
            error = Unprocessed("the connection was closed while it was idle")
        if isinstance(error, ProtocolError):
            with suppress(OSError, ProtocolError):
                self._sender.control(frame(frames.GOAWAY, 0, 0, b"\0" * 4 + error.code.to_bytes(4, "big")))
                self._sender.push(self._socket.send_now)
        self._close()
        self.streams.fail(error)
        self._settled.set()
        self.streams.tell_ended()

    def _close(self) -> None:
        if not self._closed:
            self._closed = True
            FIGURES.connections.discard(self)
            self._socket.close()

    # What the server's frames mean.

    def _on_data(self, flags: int, stream: int, payload: bytes) -> None:
        call = self.streams.find(stream)
        self._return_window(len(payload))
        data = unpadded(payload) if flags & PADDED else payload
        if call is None:
            if not self.streams.was_reset(stream):
                raise ProtocolError("an answer's data behind its end", frames.STREAM_CLOSED)
            return
        call.first_ns = call.first_ns or perf_counter_ns()
        try:
            call.add_data(data)
        except ValueError as error:
            self.streams.drop(call, error, PROTOCOL_ERROR)
            return
        if flags & END_STREAM:
            self._on_last(call)

    def _return_window(self, size: int) -> None:
        """Let the server send as much again as has come."""
        self._unreturned += size
        if self._unreturned >= CREDIT_BYTES:
            self._sender.control(number_frame(frames.WINDOW_UPDATE, 0, self._unreturned))
            self._unreturned = 0

    def _on_headers(self, flags: int, stream: int, payload: bytes) -> None:
        block = unpadded(payload) if flags & PADDED else payload
        if flags & frames.PRIORITISED:
            if len(block) < frames.PRIORITY_BYTES:
                raise ProtocolError("headers that are too short", FRAME_SIZE_ERROR)
            block = block[frames.PRIORITY_BYTES :]
        self._on_block(stream, flags, block)

    def _on_continuation(self, flags: int, stream: int, payload: bytes) -> None:
        if self._begun is None:
            raise ProtocolError("a CONTINUATION of nothing")
        (_, first_flags, begun), self._begun = self._begun, None
        self._on_block(stream, first_flags | flags & END_HEADERS, begun + payload)

    def _on_block(self, stream: int, flags: int, block: bytes) -> None:
        if len(block) > LARGEST_LIST:
            raise ProtocolError("headers of more than 64 KiB", frames.ENHANCE_YOUR_CALM)
        if not flags & END_HEADERS:
            self._begun = stream, flags, block
            return
        call, last = self.streams.find(stream), bool(flags & END_STREAM)
        if call is None:
            return
        call.first_ns = call.first_ns or perf_counter_ns()
        try:
            call.add_headers(block, last)
        except ProtocolError:
            raise
        except ValueError as error:
            self.streams.drop(call, error, PROTOCOL_ERROR)
            return
        if last:
            self._on_last(call)

    def _on_last(self, call: Call) -> None:
        """An answer's end. What is left to be sent of the request is of no use any more."""
        if call.left:
            self.streams.drop(call, None, NO_ERROR)
        else:
            self.streams.end(call, None)
        self._ping()

    def _on_reset(self, flags: int, stream: int, payload: bytes) -> None:
        code, call = number_in(payload), self.streams.find(stream)
        if call is not None:
            self.streams.end(call, reset_fault(code))

    def _on_settings(self, flags: int, stream: int, payload: bytes) -> None:
        if stream or (flags & ACK and payload):
            raise ProtocolError("SETTINGS that are not valid", PROTOCOL_ERROR if stream else FRAME_SIZE_ERROR)
        if flags & ACK:
            return
        for name, value in frames.settings_in(payload):
            if name == frames.INITIAL_WINDOW_SIZE:
                self._sender.resize(value)
            elif name == frames.MAX_CONCURRENT_STREAMS:
                self.streams.allowed = value
            elif name == frames.MAX_FRAME_SIZE:
                self._sender.largest_frame = frames.checked_size(value)
        self._sender.control(frame(frames.SETTINGS, ACK, 0))
        self._settled.set()
        self.streams.let_in()

    def _on_push(self, flags: int, stream: int, payload: bytes) -> None:
        raise ProtocolError("a PUSH_PROMISE, which was forbidden")

    def _on_ping(self, flags: int, stream: int, payload: bytes) -> None:
        if stream or len(payload) != frames.PING_BYTES:
            raise ProtocolError("a PING that is not valid", PROTOCOL_ERROR if stream else FRAME_SIZE_ERROR)
        if not flags & ACK:
            self._sender.control(frame(frames.PING, ACK, 0, payload))
        elif self._ping_sent_ns and int.from_bytes(payload, "big") == self._pings:
            FIGURES.pinged(perf_counter_ns() - self._ping_sent_ns)
            self._ping_sent_ns = 0

    def _ping(self) -> None:
        """Ask for an echo, if that was not done within the last second."""
        now_ns = perf_counter_ns()
        if not self._ping_sent_ns and now_ns - self._last_ping_ns >= PING_EVERY_NS:
            self._pings += 1
            self._last_ping_ns = self._ping_sent_ns = now_ns
            self._sender.control(frame(frames.PING, 0, 0, self._pings.to_bytes(frames.PING_BYTES, "big")))

    def _on_goaway(self, flags: int, stream: int, payload: bytes) -> None:
        """The server ends it: streams above its last one were not begun, the others go on."""
        last, code = frames.goaway_in(stream, payload)
        FIGURES.counts["goaways"] += 1
        self.streams.leave(last, f"the server ended the connection (GOAWAY, HTTP/2 error {code})")

    def _on_window(self, flags: int, stream: int, payload: bytes) -> None:
        by = number_in(payload) & MAX_WINDOW
        if not stream:
            self._sender.widen_connection(frames.checked_increment(by))
            return
        call = self.streams.find(stream)
        if call is None:
            return
        try:
            self._sender.widen(call, frames.checked_increment(by))
        except ProtocolError as error:
            self.streams.drop(call, error, error.code)


HANDLERS: Mapping[int, Callable[[Http2Connection, int, int, bytes], None]] = {
    frames.DATA: Http2Connection._on_data,
    frames.HEADERS: Http2Connection._on_headers,
    frames.RST_STREAM: Http2Connection._on_reset,
    frames.SETTINGS: Http2Connection._on_settings,
    frames.PUSH_PROMISE: Http2Connection._on_push,
    frames.PING: Http2Connection._on_ping,
    frames.GOAWAY: Http2Connection._on_goaway,
    frames.WINDOW_UPDATE: Http2Connection._on_window,
    frames.CONTINUATION: Http2Connection._on_continuation,
}
"""What is done with frames; those of other types are none of ours (RFC 9113, 4.1)."""


def hung_up() -> ConnectionResetError:
    """The other side has hung up."""
    return ConnectionResetError(errno.ECONNRESET, "connection closed before the whole answer had come")
