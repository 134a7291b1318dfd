"""What goes onto a connection: whose turn it is, and no more than the peer's windows allow (RFC 9113, 5.2).

No socket and no clock but the monotonic one. Only DATA counts against windows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from time import perf_counter_ns

from users.http2.call import Call
from users.http2.figures import FIGURES
from users.http2.frames import (
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    FLOW_CONTROL_ERROR,
    FRAME_BYTES,
    HEAD_BYTES,
    HEADERS,
    MOST,
    RST_STREAM,
    WINDOW,
    ProtocolError,
    frame,
    frame_head,
    number_frame,
)

Buffers = list[bytes | memoryview]
SCHEDULINGS = FIFO, FAIR = "fifo", "fair"
"""Whose turn it is on a connection: the oldest call's, as far as the server's windows let it, or each's, for
a frame of 16 KiB.

The first is what grpcio does (tests/users/transport/test_grpcio_scheduling.py): a call that is cut short, by
the end of a burst or of the connection's window, is the last in the row then.
"""
SCHEDULING = FIFO
"""Unless it is said otherwise."""
BURST_BYTES = 1 << 20
"""Laid out at once, and the most of one call: what comes after, such as the answer to a PING, waits for it."""
MOST_BUFFERS = 1_000
"""Of one sendmsg; Linux takes 1,024."""
MOST_CONTROL = 10_000
"""Frames that a peer has caused and does not read."""


class FrameSender:
    """`unsent` tells how many bytes the kernel has that are not on the wire yet.

    A closed window is what holds a call up only where these are none when it is opened again: else TCP did.
    """

    def __init__(self, scheduling: str, unsent: Callable[[], int]) -> None:
        self.window = self.initial_window = WINDOW
        self.largest_frame = FRAME_BYTES
        self._fair, self._unsent = scheduling == FAIR, unsent
        self._control: Buffers = []
        self._induced = 0
        self._turns: deque[Call] = deque()
        self._parked: dict[Call, None] = {}
        """Whose own window is closed."""
        self._shut_ns = 0
        """Since when the connection's window has been closed with something to send."""
        self._out: Buffers = []
        self._laid = self._handed = 0
        self._ends: deque[tuple[int, Call]] = deque()
        """How much has been laid out at the end of each call."""

    @property
    def idle(self) -> bool:
        """Whether there is nothing to send."""
        return not (self._out or self._control or self._turns)

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
        self._control.extend(self._headers(call))
        call.window, call.in_turn_ns = self.initial_window, perf_counter_ns()
        self._turns.append(call)

    def _headers(self, call: Call) -> Iterator[bytes]:
        most = self.largest_frame
        blocks = [call.block[at : at + most] for at in range(0, len(call.block), most)]
        for number, block in enumerate(blocks, 1):
            flags = END_HEADERS if number == len(blocks) else 0
            yield frame(HEADERS if number == 1 else CONTINUATION, flags, call.stream, block)
        FIGURES.counts["frames_sent"] += len(blocks)

    def drop(self, call: Call) -> None:
        """Send no more of a call; what is laid out of it already goes."""
        now_ns = perf_counter_ns()
        if call in self._parked:
            self._opened(call, now_ns)
        elif call.left and call in self._turns:
            if self._shut_ns and not self._unsent():
                self._charge(call, now_ns)
            self._turns.remove(call)
            self._shut_ns = self._shut_ns if self._turns else 0

    def widen(self, call: Call, by: int) -> None:
        """A call's own window is larger by so much. Raises ProtocolError."""
        call.window += by
        if call.window > MOST:
            raise ProtocolError("a stream's window above 2^31-1", FLOW_CONTROL_ERROR)
        if call.window > 0 and call in self._parked:
            now_ns = perf_counter_ns()
            self._opened(call, now_ns)
            call.in_turn_ns = now_ns
            self._turns.append(call)

    def widen_connection(self, by: int) -> None:
        """The connection's window is larger by so much. Raises ProtocolError."""
        self.window += by
        if self.window > MOST:
            raise ProtocolError("a connection's window above 2^31-1", FLOW_CONTROL_ERROR)
        if self._shut_ns and self.window > 0:
            self._reopen(perf_counter_ns())

    def resize(self, initial: int) -> None:
        """Streams begin with this window, and those that are open have as much more or less."""
        if initial > MOST:
            raise ProtocolError("an initial window above 2^31-1", FLOW_CONTROL_ERROR)
        by, self.initial_window = initial - self.initial_window, initial
        for call in (*self._turns, *self._parked):
            self.widen(call, by)

    def push(self, send_now: Callable[[Buffers], int]) -> bool:
        """Hand over all that may go now; False where the socket has taken what it can, and more is left."""
        while self._out or self._lay():
            taken = send_now(self._out[:MOST_BUFFERS])
            offered = len(self._out)
            self._take(taken)
            if not taken or (self._out and offered <= MOST_BUFFERS):
                return False
        return True

    def _take(self, taken: int) -> None:
        """So many bytes were taken by the socket."""
        self._handed += taken
        now_ns = perf_counter_ns()
        while self._ends and self._ends[0][0] <= self._handed:
            self._ends.popleft()[1].sent_ns = now_ns
        if self._handed == self._laid:
            self._out = []
            return
        for number, buffer in enumerate(self._out):
            if taken < len(buffer):
                self._out = [memoryview(buffer)[taken:], *self._out[number + 1 :]]
                return
            taken -= len(buffer)

    def _lay(self) -> Buffers:
        """Put out what goes next; nothing where there is nothing, or windows are closed."""
        self._out, self._control, self._induced = self._control, [], 0
        self._laid += sum(map(len, self._out))
        until = self._laid + BURST_BYTES
        while self._turns and self._laid < until and self.window > 0:
            call = self._turns[0]
            if call.window <= 0:
                self._park(call)
                continue
            most = FRAME_BYTES if self._fair else BURST_BYTES
            self._lay_frames(call, min(call.left, call.window, self.window, most))
            if not call.left:
                self._ends.append((self._laid, self._turns.popleft()))
            elif self._fair or self._laid >= until or self.window <= 0:
                self._turns.rotate(-1)
        if self._turns and self.window <= 0:
            self._shut_ns = self._shut_ns or perf_counter_ns()
        return self._out

    def _lay_frames(self, call: Call, size: int) -> None:
        """So many bytes of a call, in frames as large as they may be."""
        whole, rest = divmod(size, min(size, self.largest_frame))
        head = frame_head(DATA, 0, call.stream, self.largest_frame)
        self._laid += size + HEAD_BYTES * (whole + bool(rest))
        self.window -= size
        call.window -= size
        FIGURES.counts["frames_sent"] += whole + bool(rest)
        while size > self.largest_frame:
            size -= self.largest_frame
            self._out.append(head)
            self._out += call.take(self.largest_frame)
        flags = END_STREAM if size == call.left else 0
        self._out.append(frame_head(DATA, flags, call.stream, size))
        self._out += call.take(size)

    def _park(self, call: Call) -> None:
        """The first in the row has a closed window of its own: others' turn."""
        self._turns.popleft()
        call.shut_ns = perf_counter_ns()
        self._parked[call] = None

    def _opened(self, call: Call, now_ns: int) -> None:
        """A call's own window is open again, or does not matter any more."""
        del self._parked[call]
        if not self._unsent():
            call.flow_ns += now_ns - call.shut_ns
            FIGURES.counts["stream_stalls"] += 1
            FIGURES.counts["stream_stalled_ns"] += now_ns - call.shut_ns

    def _reopen(self, now_ns: int) -> None:
        """The connection's window is open again."""
        if not self._unsent():
            FIGURES.counts["connection_stalls"] += 1
            FIGURES.counts["connection_stalled_ns"] += now_ns - self._shut_ns
            for call in self._turns:
                self._charge(call, now_ns)
        self._shut_ns = 0

    def _charge(self, call: Call, now_ns: int) -> None:
        """The connection's closed window has held a call up, since it had its turn."""
        waited_ns = now_ns - max(self._shut_ns, call.in_turn_ns)
        call.flow_ns += waited_ns
        FIGURES.counts["connection_waited_ns"] += waited_ns
