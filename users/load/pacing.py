"""When the next request should start: at once under closed-loop load, by a schedule under open-loop load."""

import itertools
import random
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import gevent
from gevent.event import Event
from gevent.lock import Semaphore

from users.load.load_profile import LoadProfile, parse

NS_PER_S = 1_000_000_000
LOOK_UP_NS = NS_PER_S // 10
"""How late a waiting user may notice that the shares have changed."""
LATE_NS = 5_000_000
"""A request that starts later than this after its intended start is late."""
BREATH = 10_000
"""Arrivals that are dropped before other greenlets get a chance to run."""
CONSTANT, POISSON = "constant", "poisson"
NEVER_NS = 1 << 62
"""The time of the next arrival after the end of a schedule: never."""


class DueRequest(NamedTuple):
    """A request that is due: its intended start (`perf_counter_ns`), and its number in the phase, from 0."""

    intended_ns: int
    number: int


@dataclass(kw_only=True)
class Pacer(ABC):
    """Gives each user its next request's turn; one for a phase, shared by all users of a process.

    Of all numbers of a phase, those that are `index` modulo `of` are this process's, so that which request
    is sent under a number does not depend on how many processes there are.
    """

    paced: ClassVar[bool] = True
    due: int = 0
    """Arrivals that were due so far."""
    dropped: int = 0
    """Those that were never sent."""
    dropped_by_s: Counter[int] = field(default_factory=Counter)
    """The same by the second of the phase in which they were due."""
    overslept: int = 0
    """Those sent late although a user was free: this process was too slow."""

    @abstractmethod
    def wait_turn(self, seat: int = 0) -> DueRequest | None:
        """Block until a request is due of the user in that seat, from 0; None once closed."""

    @abstractmethod
    def reshare(self, index: int, of: int) -> None:
        """Take another share from here on: a worker was lost."""

    @abstractmethod
    def close(self) -> None:
        """End the phase: nobody's turn comes any more."""


@dataclass
class ClosedPacer(Pacer):
    """Closed-loop load: a user that asks gets its turn at once."""

    paced = False
    index: int = 0
    of: int = 1

    def __post_init__(self) -> None:
        self._number = self.index

    def wait_turn(self, seat: int = 0) -> DueRequest:
        """Now."""
        number = self._number
        self._number += self.of
        return DueRequest(time.perf_counter_ns(), number)

    def reshare(self, index: int, of: int) -> None:
        """Go on with the next number of that share."""
        self.index, self.of = index, max(1, of)
        self._number += (index - self._number) % self.of

    def close(self) -> None:
        """Nothing to do: the assignment's start event holds the users."""


@dataclass(kw_only=True)
class CoursePacer(Pacer):
    """Closed-loop load whose number of users follows a course from `start_ns` on, rounded up.

    All `users` are there, ranked from 0 over all processes: the one in a seat has rank seat · of + index, and
    sends while the course is above its rank. Its first request then is due at the moment from which on it is.
    Of a process that has one user more than its share, that one has the last rank. The numbers are those of
    `closed`.
    """

    paced = False
    closed: ClosedPacer
    course: LoadProfile
    start_ns: int
    users: int
    clock: Callable[[], int] = time.perf_counter_ns
    over: Event = field(default_factory=Event)

    def wait_turn(self, seat: int = 0) -> DueRequest | None:
        """Block until the user in that seat may send: now, or when the course rises above its rank."""
        waited, share, allowed_ns = False, (-1, -1), NEVER_NS
        while not self.over.is_set():
            if share != (self.closed.index, self.closed.of):
                share, allowed_ns = (self.closed.index, self.closed.of), self._allowed_ns(seat)
            now_ns = self.clock()
            wait_ns = allowed_ns - now_ns
            if wait_ns <= 0:
                return DueRequest(allowed_ns if waited else now_ns, self.closed.wait_turn().number)
            waited = True
            self.over.wait(min(wait_ns, LOOK_UP_NS) / NS_PER_S)
        return None

    def _allowed_ns(self, seat: int) -> int:
        rank = min(seat * self.closed.of + self.closed.index, self.users - 1)
        found_s = self.course.above_from(rank, (self.clock() - self.start_ns) / NS_PER_S)
        return NEVER_NS if found_s is None else self.start_ns + round(found_s * NS_PER_S)

    def reshare(self, index: int, of: int) -> None:
        """Take another share of the numbers, and other ranks."""
        self.closed.reshare(index, of)

    def close(self) -> None:
        """End the phase: nobody waits any more."""
        self.over.set()


def offsets_ns(arrivals: str, rate: float, seed: str, profile: str = "") -> Iterator[int]:
    """Nanoseconds from the start of a phase to each of its arrivals, without end.

    `constant`: one every 1/rate seconds, without drift. `poisson`: exponential gaps of mean 1/rate, the same
    for the same seed. With a `profile` in the words of users.load.profile_text, `rate` is its peak,
    and it ends there.

    A rate that varies: arrival n is due when the rate's integral has come to n, or, for `poisson`, to the sum
    of n exponential gaps of mean 1, which makes them a Poisson process of that rate. Source: R. W. Klein and
    S. D. Roberts, A time-varying Poisson arrival process generator, Simulation 43 (1984); the theorem is in
    E. Cinlar, Introduction to Stochastic Processes (1975).
    """
    counts: Iterator[float] = itertools.count()
    if arrivals == POISSON:
        generator = random.Random(seed)
        counts = itertools.accumulate(generator.expovariate(1.0) for _ in itertools.count())
    if profile:
        return parse(profile, rate).times_ns(counts)
    return (round(count * NS_PER_S / rate) for count in counts)


@dataclass
class OpenPacer(Pacer):
    """Open-loop load: this worker's share of one schedule that all workers compute identically.

    Arrival number n belongs to the worker whose `index` is n modulo `of` (no worker where that is 0), so that
    workers never send in step, and their sum is the schedule whatever their number. Free users queue for
    their turn. An arrival that finds none free waits, its latency running; one that has waited for
    `patience_ns` is dropped, as is one that still waits at the end. Where the schedule is `split` among
    endpoints, it says which numbers are this one's.
    """

    offsets: Iterator[int]
    start_ns: int
    index: int
    of: int
    patience_ns: int
    clock: Callable[[], int] = time.perf_counter_ns
    over: Event = field(default_factory=Event)
    split: Callable[[int], bool] | None = None
    _free: int = 0
    _turn: Semaphore = field(default_factory=Semaphore)

    def __post_init__(self) -> None:
        self._numbered = enumerate(itertools.chain(self.offsets, itertools.repeat(NEVER_NS)))
        self._number, self._offset = next(self._numbered)

    def reshare(self, index: int, of: int) -> None:
        """Take another share from here on: a worker was lost."""
        self.index, self.of = index, of

    def wait_turn(self, seat: int = 0) -> DueRequest | None:
        """Block until this worker's next arrival is due; None once the phase is over."""
        self._free += 1
        try:
            with self._turn:
                return self._next_turn()
        finally:
            self._free -= 1

    def _next_turn(self) -> DueRequest | None:
        waited = False
        while not self.over.is_set():
            intended_ns = self._upcoming_ns()
            wait_ns = intended_ns - self.clock()
            if wait_ns > 0:
                waited = True
                self.over.wait(min(wait_ns, LOOK_UP_NS) / NS_PER_S)
                continue
            number, offset_ns = self._come()
            if -wait_ns <= self.patience_ns:
                self.overslept += -wait_ns > LATE_NS and (waited or self._free > 1)
                return DueRequest(intended_ns, number)
            self._drop(offset_ns)
        return None

    def close(self) -> None:
        """End the phase; arrivals that are due and wait for a user are dropped.

        As many as there are free users were about to be sent, and count as not due.
        """
        if self.over.is_set():
            return
        self.over.set()
        end_ns, excused = self.clock(), self._free
        while self._upcoming_ns() <= end_ns:
            _, offset_ns = self._come()
            if excused:
                excused -= 1
                self.due -= 1
            else:
                self._drop(offset_ns)

    def _drop(self, offset_ns: int) -> None:
        self.dropped += 1
        self.dropped_by_s[offset_ns // NS_PER_S] += 1
        if self.dropped % BREATH == 0:
            gevent.sleep(0)

    def _upcoming_ns(self) -> int:
        """When this worker's next arrival is due."""
        if not self.of:
            return self.clock() + LOOK_UP_NS
        while not self._is_own and self._offset < NEVER_NS:
            self._number, self._offset = next(self._numbered)
        return self.start_ns + self._offset

    @property
    def _is_own(self) -> bool:
        return self._number % self.of == self.index and (self.split is None or self.split(self._number))

    def _come(self) -> tuple[int, int]:
        """The next arrival's time has come: its number, and when that was, in ns from the phase's start."""
        self.due += 1
        come = self._number, self._offset
        self._number, self._offset = next(self._numbered)
        return come
