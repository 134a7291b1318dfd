"""A set-up as a value: real servers, what stands before them, the study, and the limit that must be named."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from swarm.links.profiles import LinkProfile

HERE = "127.0.0.1"
HOGS_A_CORE = 3
"""A fair scheduler then leaves a busy client a quarter of each core."""
OR = " or "
"""Between the limits of a truth that has several."""


@dataclass(frozen=True)
class Behind:
    """What a front is told: `HOST:PORT` of each replica behind it, where to listen, a folder of its own."""

    servers: tuple[str, ...]
    host: str
    folder: Path


Front = Callable[[Behind], AbstractContextManager[int]]
"""Stands between client and servers for as long as it is entered, and yields the port that it listens on."""
Place = Callable[[], AbstractContextManager[Sequence[str]]]
"""Where a command runs (a cgroup, a namespace): yields the words that come before the command's own."""


@dataclass(frozen=True)
class Setup:
    """One cell on real servers; `truth` is the limit that must be named, `A or B` where the data cannot tell.

    `server`: options of `inferswarm up`; empty where the front answers by itself. `endpoint`: which of
    its endpoints. `more`: further levels of users in the same study, each with its truth. `study`: options of
    the study. `fault`: of the client's own process. `hogs`: processes that burn a core each. `stranger`:
    images in a request that another client sends into the measure phase. `picture_px`: the pictures' width, 0
    for the default ones. `replicas`: how many such servers. `front`: what stands before them. `file`: the
    text of an endpoint file, with `{address}`. `server_in`, `client_in`: where the processes run.
    `caveats`: codes that must be there as well; `said`: texts that evidence and advice must contain.
    """

    name: str
    truth: str
    endpoint: str
    server: tuple[str, ...]
    users: int = 1
    batch: int = 1
    study: tuple[str, ...] = ()
    fault: str = ""
    hogs: int = 0
    stranger: int = 0
    picture_px: int = 0
    link: LinkProfile | None = None
    more: tuple[tuple[int, str], ...] = ()
    replicas: int = 1
    front: Front | None = None
    file: str = ""
    server_in: Place | None = None
    client_in: Place | None = None
    caveats: tuple[str, ...] = ()
    said: tuple[str, ...] = ()

    @property
    def truths(self) -> dict[int, str]:
        """The truth of each level of users."""
        return {self.users: self.truth, **dict(self.more)}


def chained(outer: Front, inner: Front) -> Front:
    """A front before another one, on the same host."""

    @contextmanager
    def both(behind: Behind) -> Iterator[int]:
        with (
            inner(replace(behind, host=HERE)) as port,
            outer(replace(behind, servers=(f"{HERE}:{port}",))) as listening,
        ):
            yield listening

    return both


def accepted(truth: str) -> list[str]:
    """The limits of which any is right.

    >>> accepted("link or inconclusive")
    ['link', 'inconclusive']
    """
    return truth.split(OR)


def emulated(profile: str, *options: str, delay_us: int = 0) -> tuple[str, ...]:
    """Options of a tritonserver whose model sleeps."""
    return ("--emulate", profile, "--queue-delay-us", str(delay_us), *options)


def hogs() -> int:
    """How many processes take every core from the client."""
    return HOGS_A_CORE * len(os.sched_getaffinity(0))
