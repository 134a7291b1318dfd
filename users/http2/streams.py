"""The calls of one connection: on their streams, before one is free, and ended with someone to be told."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from time import perf_counter_ns

import gevent
from gevent.hub import Waiter

from users.http2.call import Call
from users.http2.figures import FIGURES, UNLIMITED
from users.http2.frames import CANCEL, MAX_STREAM, ProtocolError
from users.http2.sender import FrameSender
from users.http2.status import Unprocessed

REMEMBERED = 1_000
"""Streams that were reset here, whose last frames may still come."""


class Streams:
    """Calls begin here, as many at once as the server allows, and end here. `first` is an odd stream id.

    `most_open`: the most that were open at once since somebody set it back.
    """

    def __init__(self, sender: FrameSender, first: int) -> None:
        self._sender = sender
        self._next = first
        self._open: dict[int, Call] = {}
        self._waiting: deque[Call] = deque()
        self._ended: deque[Call] = deque()
        self._reset: deque[int] = deque(maxlen=REMEMBERED)
        self._forgotten = 0
        """The last of those that were reset before."""
        self.leaving = False
        self.allowed, self.most_open = UNLIMITED, 0

    def __len__(self) -> int:
        """How many are open."""
        return len(self._open)

    def add(self, call: Call) -> None:
        """Begin a call, or have it wait for a stream."""
        if len(self._open) < self.allowed:
            self._begin(call)
            return
        FIGURES.counts["stream_waits"] += 1
        call.in_turn_ns = perf_counter_ns()
        self._waiting.append(call)

    def _begin(self, call: Call) -> None:
        call.stream, self._next = self._next, self._next + 2
        self._open[call.stream] = call
        if len(self._open) > self.most_open:
            self.most_open = len(self._open)
        self._sender.begin(call)
        if self._next > MAX_STREAM:
            self.leave()

    def find(self, stream: int) -> Call | None:
        """The call of a stream; None where it has ended. Raises ProtocolError where it has not begun."""
        call = self._open.get(stream)
        if call is None and (stream >= self._next or not stream % 2):
            raise ProtocolError("a frame of a stream that was not opened")
        return call

    def was_reset(self, stream: int) -> bool:
        """Whether it was ended here, so that more of its answer may come."""
        return stream <= self._forgotten or stream in self._reset

    def end(self, call: Call, error: Exception | None) -> None:
        """Its stream has ended, with an answer or an error: another call may begin."""
        if not call.sent_ns:
            self._sender.drop(call)
        if self._open.pop(call.stream, None) is not None:
            self._finish(call, error)
            self.let_in()

    def drop(self, call: Call, error: Exception | None, code: int) -> None:
        """End it from here, by a reset with this error code."""
        if len(self._reset) == REMEMBERED:
            self._forgotten = max(self._forgotten, self._reset[0])
        self._reset.append(call.stream)
        self._sender.reset(call.stream, code)
        self.end(call, error)

    def let_in(self) -> None:
        """Begin with those that wait, as far as streams are free."""
        while self._waiting and len(self._open) < self.allowed:
            call = self._waiting.popleft()
            call.stream_wait_ns += perf_counter_ns() - call.in_turn_ns
            self._begin(call)

    def leave(self, last: int = MAX_STREAM, why: str = "the connection ended before it began") -> None:
        """No call begins any more; those above stream `last`, and those that wait, may go elsewhere."""
        self.leaving = True
        waiting, self._waiting = self._waiting, deque()
        for call in waiting:
            call.stream_wait_ns += perf_counter_ns() - call.in_turn_ns
            self._finish(call, Unprocessed(why, sent=False))
        for call in [call for stream, call in self._open.items() if stream > last]:
            self.end(call, Unprocessed(why))

    def fail(self, error: Exception) -> None:
        """All that have a stream end with this error."""
        calls, self._open = self._open, {}
        self.leave()
        for call in calls.values():
            self._finish(call, error)

    def _finish(self, call: Call, error: Exception | None) -> None:
        call.ended, call.error = True, error
        self._ended.append(call)

    def wait_for(self, call: Call, push: Callable[[], None]) -> None:
        """Until a call has ended; who is killed or timed out meanwhile cancels it, and pushes that."""
        if call.ended:
            return
        call.waiter = Waiter()
        try:
            call.waiter.get()
        except BaseException:
            call.waiter = None
            self._cancel(call)
            push()
            self.tell_ended()
            raise

    def _cancel(self, call: Call) -> None:
        if call.stream in self._open:
            self.drop(call, TimeoutError("cancelled"), CANCEL)
        elif not call.ended:
            self._waiting.remove(call)

    def tell_ended(self) -> None:
        """Wake who waits for calls that have ended; they may send at once, which may end others."""
        if not self._ended:
            return
        in_hub = gevent.getcurrent() is gevent.get_hub()
        while self._ended:
            waiter = self._ended.popleft().waiter
            if waiter is None:
                continue
            if in_hub:
                waiter.switch(None)
            else:
                gevent.get_hub().loop.run_callback(waiter.switch, None)
