"""Whose processor time it was: what others took beside the study and the server, by name."""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Set
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from swarm.clock import NS_PER_S
from swarm.sampling.gpus import in_thread
from swarm.this_machine import FORWARDERS

KERNEL_THREADS = 2
"""The process that all threads of the kernel are below: their time is that of what runs."""
EVERY_READINGS = 2
"""Of the sampler: a look at a few hundred processes takes some milliseconds."""
MOST_NAMED = 3
LEAST_SERVING = 0.15
"""Of what others take: a server that takes less only hands on to them, over a socket file or a queue."""
HIDING = FORWARDERS | {"docker-proxy", "rootlessport", "pasta", "slirp4netns", "conmon"}
"""Programs that listen for a server which is in a container or elsewhere, so that it is not seen here."""


class SeenProcess(NamedTuple):
    """A process of this machine: its name, its parent, when it began and what it has used, in ticks."""

    name: str
    parent: int
    began: int
    used: int


def seen_processes(proc: Path = Path("/proc")) -> dict[int, SeenProcess]:
    """All that the kernel shows, by their numbers: from `/proc/PID/stat`, as proc(5) has it."""
    found = {}
    for entry in os.scandir(proc):
        if entry.name.isdigit():
            with suppress(OSError, ValueError, IndexError):
                head, _, rest = Path(entry.path, "stat").read_text().rpartition(")")
                words = rest.split()
                # Whoever starts a program names it.
                name = "".join(filter(str.isprintable, head.partition("(")[2]))
                used = int(words[11]) + int(words[12])
                found[int(entry.name)] = SeenProcess(name, int(words[1]), int(words[19]), used)
    return found


def with_descendants(tops: Iterable[int], seen: Mapping[int, SeenProcess]) -> set[int]:
    """Those processes and all below them."""
    children: dict[int, list[int]] = {}
    for pid, process in seen.items():
        children.setdefault(process.parent, []).append(pid)
    found, waiting = set[int](), list(tops)
    while waiting:
        pid = waiting.pop()
        if pid not in found:
            found.add(pid)
            waiting += children.get(pid, ())
    return found


def peers_of(pids: Set[int], connections: Iterable[Any], ports_of: Set[int] = frozenset()) -> set[int]:
    """Who listens here at ports that these processes have connections to, or at `ports_of`."""
    every = [one for one in connections if one.pid and one.laddr]
    ports = {one.raddr.port for one in every if one.pid in pids and one.raddr} | ports_of
    return {one.pid for one in every if one.status == psutil.CONN_LISTEN and one.laddr.port in ports}


class OthersCpu:
    """What processes of this machine take of its processors that are neither the study's nor the server's.

    The study's are this process, all below it, and who is connected to a port of it, as workers are. The
    server's are `pids` and who listens at `port`, where it is one of this machine; all below them, and whom
    they are connected to here. Where a server that is here is not seen, or may compute in other processes,
    nothing is told.
    """

    def __init__(
        self,
        port: int | None,
        pids: Iterable[int] = (),
        see: Callable[[], dict[int, SeenProcess]] = seen_processes,
        connections: Callable[[], Iterable[Any]] = lambda: psutil.net_connections("tcp"),
        own: int | None = None,
    ) -> None:
        self._port, self._pids, self._see, self._connections = port, set(pids), see, connections
        self._own = os.getpid() if own is None else own
        self._tops: tuple[set[int], set[int]] | None = None
        self._last: dict[int, SeenProcess] = {}
        self._readings = 0

    def read(self) -> dict[str, Any]:
        """`{"others_ns": {name: ns}}` of those that took most since the last look, the rest as `others`.

        Empty between two looks, and where it is not known whose processes are the server's.
        """
        self._readings += 1
        return in_thread(self._read) if self._readings % EVERY_READINGS == 1 else {}

    def _read(self) -> dict[str, Any]:
        last, self._last = self._last, self._see()
        if self._tops is None:
            self._tops = self._find_tops(self._last)
        ours, served = (with_descendants(tops, self._last) for tops in self._tops)
        if not last or not ours:
            return {}
        taken, serving = Counter[str](), 0
        for pid, now in self._last.items():
            before = last.get(pid)
            used = now.used - (before.used if before and before.began == now.began else 0)
            if pid in served:
                serving += used
            elif pid not in ours and used > 0:
                taken[now.name] += used
        if self._port and serving < LEAST_SERVING * taken.total():
            return {}
        named = dict(taken.most_common(MOST_NAMED))
        rest = taken.total() - sum(named.values())
        tick_ns = NS_PER_S // os.sysconf("SC_CLK_TCK")
        return {"others_ns": {name: used * tick_ns for name, used in (*named.items(), ("others", rest))}}

    def _find_tops(self, seen: Mapping[int, SeenProcess]) -> tuple[set[int], set[int]]:
        """The study's with the kernel's, and the server's; none where the server is here and is not seen."""
        ours = with_descendants([self._own, KERNEL_THREADS], seen)
        with suppress(psutil.Error, OSError):
            every = list(self._connections())
            listening = {
                one.laddr.port for one in every if one.pid == self._own and not one.raddr and one.laddr
            }
            ours |= {one.pid for one in every if one.pid and one.raddr and one.raddr.port in listening}
            served = self._pids | (peers_of(set(), every, {self._port}) if self._port else set())
            names = {seen[pid].name for pid in served if pid in seen}
            if self._port and (not names or names & HIDING):
                return set(), set()
            while more := peers_of(with_descendants(served, seen), every) - served - ours:
                served |= more
            return ours, served
        return set(), set()
