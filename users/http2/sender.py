"""What goes onto a connection: whose turn it is, and no more than the peer's windows allow (RFC 9113, 5.2).

No socket and no clock but the monotonic one. Only DATA counts against windows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from time import perf_counter_ns

from users.http2.call import Call
from users.http2.event_socket import Buffers
from users.http2.figures import FIGURES
from users.http2.frames import (
    CONTINUATION,
    DATA,
    DEFAULT_FRAME_BYTES,
    DEFAULT_WINDOW,
    END_HEADERS,
    END_STREAM,
    FLOW_CONTROL_ERROR,
    HEAD_BYTES,
    HEADERS,
    MAX_WINDOW,
    RST_STREAM,
    ProtocolError,
    frame,
    frame_head,
    number_frame,
)

SCHEDULINGS = FIFO, FAIR = "fifo", "fair"
"""Whose turn it is on a connection: the oldest call's, as far as the server's windows let it, or each's, for
a frame of 16 KiB.

The first is what grpcio does (tests/users/transport/test_grpcio_scheduling.py): a call that is cut short, by
the end of a burst or of the connection's window, is the last in the row then.
"""
SCHEDULING = FIFO
"""Unless it is said otherwise."""
BURST_BYTES = 1 << 20
"""Laid out at once, and the most of one call: what comes after, such as the echo of a PING, waits for it."""
MOST_BUFFERS = 1_000
"""Of one sendmsg; Linux takes 1,024."""
MOST_CONTROL = 10_000
"""Frames that a peer has caused and does not read."""


class FrameSender:
    """Orders calls' frames by `scheduling` and the peer's windows; `push` hands them to the socket.

    `unsent_bytes` tells how many bytes the kernel has that are not on the wire yet. If there are any when a
    closed window opens again, TCP and not the window has held the call up.
    """

    def __init__(self, scheduling: str, unsent_bytes: Callable[[], int]) -> None:
        self.window = self.initial_window = DEFAULT_WINDOW
        self.largest_frame = DEFAULT_FRAME_BYTES
        self._fair, self._unsent_bytes = scheduling == FAIR, unsent_bytes
        self._control: Buffers = []
        self._induced = 0
        self._ready: deque[Call] = deque()
        self._blocked: dict[Call, None] = {}
        """Whose own window is closed."""
        self._closed_ns = 0
        """Since when the connection's window has been closed with something to send."""
        self._out: Buffers = []
        self._queued = self._sent = 0
        self._ends: deque[tuple[int, Call]] = deque()
        """How much has been laid out at the end of each call."""

    @property
    def idle(self) -> bool:
        """Whether there is nothing to send."""
        return not (self._out or self._control or self._ready)

    def control(self, made: bytes) -> None:
        """A frame, or several, that goes before calls' data. Raises ProtocolError where too many wait."""
        self._control.append(made)
        self._induced += 1
        if self._induced > MOST_CONTROL:
            raise ProtocolError("a peer that asks for ever and does not read")

    def reset(self, stream: int, code: int) -> None:
        """RST_STREAM, which no peer has caused: however many wait."""
        self._control.append(number_frame(RST_STREAM, stream, code))

    def begin(self, call: Call) -> None:
        """A call that has its stream: its headers go next, its data in its turn."""
        self._add_headers(call)
        call.window, call.in_turn_ns = self.initial_window, perf_counter_ns()
        self._ready.append(call)

    def _add_headers(self, call: Call) -> None:
        kind, left = HEADERS, call.block
        while len(left) > self.largest_frame:
            self._control.append(frame(kind, 0, call.stream, left[: self.largest_frame]))
            FIGURES.counts["frames_sent"] += 1
            kind, left = CONTINUATION, left[self.largest_frame :]
        self._control.append(frame(kind, END_HEADERS, call.stream, left))
        FIGURES.counts["frames_sent"] += 1

    def drop(self, call: Call) -> None:
        """Send no more of a call; what is laid out of it already goes."""
        if call in self._blocked:
            self._unblock(call, perf_counter_ns())
        elif call.left and call in self._ready:
            if self._closed_ns and not self._unsent_bytes():
                self._add_wait(call, perf_counter_ns())
            self._ready.remove(call)
            self._closed_ns = self._closed_ns if self._ready else 0
        elif not call.left and not call.sent_ns:  # when its end goes matters no more: it may go elsewhere
            self._ends = deque(one for one in self._ends if one[1] is not call)

    def widen(self, call: Call, by: int) -> None:
        """A call's own window is larger by so much. Raises ProtocolError."""
        call.window += by
        if call.window > MAX_WINDOW:
            raise ProtocolError("a stream's window above 2^31-1", FLOW_CONTROL_ERROR)
        if call.window > 0 and call in self._blocked:
            now_ns = perf_counter_ns()
            self._unblock(call, now_ns)
            call.in_turn_ns = now_ns
            self._ready.append(call)

    def widen_connection(self, by: int) -> None:
        """The connection's window is larger by so much. Raises ProtocolError."""
        self.window += by
        if self.window > MAX_WINDOW:
            raise ProtocolError("a connection's window above 2^31-1", FLOW_CONTROL_ERROR)
        if self._closed_ns and self.window > 0:
            self._reopen(perf_counter_ns())

    def resize(self, initial: int) -> None:
        """Streams begin with this window, and those that are open have as much more or less."""
        if initial > MAX_WINDOW:
            raise ProtocolError("an initial window above 2^31-1", FLOW_CONTROL_ERROR)
        by, self.initial_window = initial - self.initial_window, initial
        for call in (*self._ready, *self._blocked):
            self.widen(call, by)

    def push(self, send_now: Callable[[Buffers], int]) -> bool:
        """Hand over all that may go now; False where the socket has taken what it can, and more is left."""
        while self._out or (not self.idle and self._fill()):
            taken = send_now(self._out[:MOST_BUFFERS])
            offered = len(self._out)
            self._mark_sent(taken)
            if not taken or (self._out and offered <= MOST_BUFFERS):
                return False
        return True

    def _mark_sent(self, taken: int) -> None:
        """So many bytes were taken by the socket."""
        self._sent += taken
        now_ns = perf_counter_ns()
        while self._ends and self._ends[0][0] <= self._sent:
            self._ends.popleft()[1].sent_ns = now_ns
        if self._sent == self._queued:
            self._out = []
            return
        for number, buffer in enumerate(self._out):
            if taken < len(buffer):
                self._out = [memoryview(buffer)[taken:], *self._out[number + 1 :]]
                return
            taken -= len(buffer)

    def _fill(self) -> Buffers:
        """Put out what goes next; nothing where there is nothing, or windows are closed."""
        self._out, self._control, self._induced = self._control, [], 0
        self._queued += sum(map(len, self._out))
        until = self._queued + BURST_BYTES
        while self._ready and self._queued < until:
            call = self._ready[0]
            if call.window <= 0:  # also where the connection's is closed, which then is not what holds it up
                self._block(call)
                continue
            if self.window <= 0:
                break
            most = DEFAULT_FRAME_BYTES if self._fair else BURST_BYTES
            self._add_data(call, min(call.left, call.window, self.window, most))
            if not call.left:
                self._ends.append((self._queued, self._ready.popleft()))
            elif self._fair or self._queued >= until or self.window <= 0:
                self._ready.rotate(-1)
        if self._ready and self.window <= 0:
            self._closed_ns = self._closed_ns or perf_counter_ns()
        return self._out

    def _add_data(self, call: Call, size: int) -> None:
        """So many bytes of a call, in frames as large as they may be."""
        self.window -= size
        call.window -= size
        frames = 1
        if size > self.largest_frame:
            head = frame_head(DATA, 0, call.stream, self.largest_frame)
            while size > self.largest_frame:
                size -= self.largest_frame
                frames += 1
                self._out.append(head)
                self._out += call.next_bytes(self.largest_frame)
            self._queued += (frames - 1) * (HEAD_BYTES + self.largest_frame)
        self._out.append(frame_head(DATA, END_STREAM if size == call.left else 0, call.stream, size))
        self._out += call.next_bytes(size)
        self._queued += HEAD_BYTES + size
        FIGURES.counts["frames_sent"] += frames

    def _block(self, call: Call) -> None:
        """The first in the row has a closed window of its own: others' turn."""
        self._ready.popleft()
        call.closed_ns = perf_counter_ns()
        self._blocked[call] = None

    def _unblock(self, call: Call, now_ns: int) -> None:
        """A call's own window is open again, or does not matter any more."""
        del self._blocked[call]
        if not self._unsent_bytes():
            call.flow_ns += now_ns - call.closed_ns
            FIGURES.counts["stream_stalls"] += 1
            FIGURES.counts["stream_stalled_ns"] += now_ns - call.closed_ns

    def _reopen(self, now_ns: int) -> None:
        """The connection's window is open again."""
        if not self._unsent_bytes():
            FIGURES.counts["connection_stalls"] += 1
            FIGURES.counts["connection_stalled_ns"] += now_ns - self._closed_ns
            for call in self._ready:
                self._add_wait(call, now_ns)
        self._closed_ns = 0

    def _add_wait(self, call: Call, now_ns: int) -> None:
        """The connection's closed window has held a call up, since it had its turn."""
        waited_ns = now_ns - max(self._closed_ns, call.in_turn_ns)
        call.flow_ns += waited_ns
        FIGURES.counts["connection_waited_ns"] += waited_ns
