"""Channels: whether users of a process have TCP connections of their own, or share them, and how many.

gRPC's channels carry many calls at once, so users are spread over them. A connection of HTTP/1.1 carries one
request at a time, so it is lent for that time. Either way the first request of each newcomer adds one until
there are `size`: as many connections as users who have sent, which is what can be asked of the kernel.
"""

import re
from collections import deque
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from gevent.event import AsyncResult

PER_USER, SHARED, SAME_ARGS, POOL = "per-user", "shared", "same-args", "pool"
PER_REQUEST = "per-request"
GIVE = "give per-user, per-request, shared, same-args or pool:N with N of 1 or more, e.g. pool:4"


@dataclass(frozen=True, slots=True)
class Channels:
    """One way of having connections, the same words for gRPC and HTTP.

    `per-user`: one each. `shared`: one for all users of a process. `pool:N`: up to N for all of them.
    `same-args`: a gRPC channel each, made with equal arguments, which grpcio joins onto one connection: what
    a plain client gets, and the negative control of `shared`. Nothing joins connections of the suite's own
    clients, nor channels over TLS, where it is as `per-user`. `per-request`: a new one for every request,
    over HTTP alone; a load balancer that deals out connections, as a Kubernetes Service does, has something
    to deal out. Over gRPC as `per-user`.

    `size`: how many the users of a process share; 0 where each has his own.
    """

    kind: str
    size: int = 0

    def __str__(self) -> str:
        """As it is typed."""
        return f"{POOL}:{self.size}" if self.kind == POOL else self.kind


def parse(text: str) -> Channels:
    """The channels of that name. Raises ValueError with a sentence that says what to give.

    >>> parse("pool:4")
    Channels(kind='pool', size=4)
    """
    if text in (PER_USER, PER_REQUEST, SAME_ARGS):
        return Channels(text)
    if text == SHARED:
        return Channels(SHARED, 1)
    pool = re.fullmatch(rf"{POOL}:([1-9][0-9]{{0,4}})", text)
    if pool is None:
        raise ValueError(GIVE)
    return Channels(POOL, int(pool[1]))


class Shareable(Protocol):
    """What can be shared."""

    def close(self) -> None:
        """End it."""


Thing = TypeVar("Thing", bound=Shareable)


class RefCounted(Generic[Thing]):
    """Things by name, each made for its first user and closed after its last."""

    def __init__(self) -> None:
        self._kept: dict[Hashable, tuple[Thing, int]] = {}

    def join(self, name: Hashable, make: Callable[[], Thing]) -> Thing:
        """The thing of that name, for one user more; every `join` needs its `leave`."""
        thing, users = self._kept.get(name) or (make(), 0)
        self._kept[name] = (thing, users + 1)
        return thing

    def leave(self, name: Hashable) -> None:
        """One user fewer; the last one closes it."""
        thing, users = self._kept[name]
        self._kept[name] = (thing, users - 1)
        if users == 1:
            del self._kept[name]
            thing.close()


class LeastLoaded(Generic[Thing]):
    """Up to `size` things, each for several users at once: a new user gets the one with the fewest."""

    def __init__(self, size: int, make: Callable[[], Thing]) -> None:
        self._size, self._make = size, make
        self._users: dict[Thing, int] = {}

    def take(self) -> Thing:
        """A new one while there are fewer than `size`, then the one with fewest users, the oldest first."""
        if len(self._users) < self._size:
            thing = self._make()
        else:
            thing = min(self._users, key=self._users.__getitem__)
        self._users[thing] = self._users.get(thing, 0) + 1
        return thing

    def give_back(self, thing: Thing) -> None:
        """One user fewer. It stays open without any, so that the count of connections stands still."""
        self._users[thing] -= 1

    def close(self) -> None:
        """Close them all."""
        for thing in self._users:
            thing.close()


class SharedPlace(Generic[Thing]):
    """A user's place among up to `size` things of a name in `kept`, which stay until their last user goes.

    `thing`: the one with fewest users, for good; taken by each user's first request, if any.
    """

    _thing: Thing | None = None

    def __init__(
        self, kept: RefCounted[LeastLoaded[Thing]], name: Hashable, size: int, make: Callable[[], Thing]
    ) -> None:
        self._kept, self._name = kept, name
        self._among = kept.join(name, lambda: LeastLoaded(size, make))

    @property
    def thing(self) -> Thing:
        """This user's."""
        if self._thing is None:
            self._thing = self._among.take()
        return self._thing

    def close(self) -> None:
        """Leave it to the others."""
        if self._thing is not None:
            self._among.give_back(self._thing)
        self._kept.leave(self._name)


class Borrowed(Generic[Thing]):
    """Up to `size` things, each lent to one user at a time; who has waited longest gets the next.

    gevent's semaphores and queues let a greenlet that has just given something back take it again before
    those who wait have woken, so that one user of sixteen may send all the requests. Here it goes from hand
    to hand: it is never free while a user waits.
    """

    def __init__(self, size: int, make: Callable[[], Thing]) -> None:
        self._size, self._make = size, make
        self._made: list[Thing] = []
        self._idle: deque[Thing] = deque()
        self._waiting: deque[AsyncResult] = deque()

    def grow(self) -> None:
        """One thing more, the next to be lent; nothing where there are `size`."""
        if len(self._made) < self._size:
            self._made.append(self._make())
            self._idle.appendleft(self._made[-1])
            self._serve()

    @contextmanager
    def lent(self) -> Iterator[Thing]:
        """Wait for one and have it for the block. Who is killed or timed out meanwhile leaves the queue."""
        thing = self._idle.popleft() if self._idle else self._wait()
        try:
            yield thing
        finally:
            self._give_back(thing)

    def close(self) -> None:
        """Close them all; nobody may have one."""
        for thing in self._made:
            thing.close()

    def _wait(self) -> Thing:
        turn = AsyncResult()
        self._waiting.append(turn)
        try:
            thing: Thing = turn.get()
        except BaseException:
            if turn.ready():  # handed over in the very moment: the next in line has waited for it, too
                self._give_back(turn.get())
            else:
                self._waiting.remove(turn)
            raise
        return thing

    def _give_back(self, thing: Thing) -> None:
        """Last in the row of idle ones: all of them are used alike, and none rests for long."""
        self._idle.append(thing)
        self._serve()

    def _serve(self) -> None:
        if self._idle and self._waiting:
            self._waiting.popleft().set(self._idle.popleft())
