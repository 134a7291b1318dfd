"""Readings of this machine: memory and processor time of servers started here, its processors' load.

A page mapped by n processes counts 1/n for each of them (the proportional set size), so what a
tritonserver shares with its Python stubs counts once. What servers share with each other, which is their
libraries, is divided among those that run.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from swarm.sampling.gpus import find_nvml, in_thread, memory_by_process
from swarm.taken_cpu import TakenCpu, Throttling
from users.endpoint import Endpoint

FIELDS = {
    "Pss": "resident_bytes",
    "Pss_Anon": "anonymous_bytes",
    "Pss_File": "file_bytes",
    "Pss_Shmem": "shared_bytes",
}
"""From the kernel's summary of a process: total, allocated, file-mapped, and shared memory."""


def parts_of(rollup: str) -> dict[str, int]:
    """Bytes by our names, from the text of `/proc/PID/smaps_rollup`; those that a kernel tells.

    >>> parts_of("Rss:  9 kB\\nPss:  3 kB\\nPss_Anon:  2 kB\\n")
    {'resident_bytes': 3072, 'anonymous_bytes': 2048}
    """
    words = [line.split() for line in rollup.splitlines()]
    told = {found[0].rstrip(":"): int(found[1]) for found in words if found[-1:] == ["kB"]}
    return {name: 1024 * told[field] for field, name in FIELDS.items() if field in told}


def memory_of(pid: int) -> dict[str, int]:
    """A process's bytes: `rss`, all that it maps, and by our names what the kernel divides by who maps it.

    Raises ProcessLookupError or psutil's where it has gone.
    """
    parts: dict[str, int] = {}
    with suppress(FileNotFoundError, PermissionError):
        parts = parts_of(Path(f"/proc/{pid}/smaps_rollup").read_text())
    return {"rss": int(psutil.Process(pid).memory_info().rss), **parts}


def held_by(pids: Iterable[int], tell: Callable[[int], Mapping[str, int]] = memory_of) -> dict[str, Any]:
    """What these processes hold together; empty where none of them is left.

    `how` is `pss`, or `rss` where the kernel does not tell it of each: then what they share counts for each.
    """
    found = []
    for pid in pids:
        with suppress(ProcessLookupError, psutil.Error):
            found.append(tell(pid))
    if not found:
        return {}
    if not all("resident_bytes" in parts for parts in found):
        return {"resident_bytes": sum(parts["rss"] for parts in found), "processes": len(found), "how": "rss"}
    names = [name for name in FIELDS.values() if all(name in parts for parts in found)]
    sums = {name: sum(parts[name] for parts in found) for name in names}
    return {**sums, "processes": len(found), "how": "pss"}


def family(pid: int) -> list[int]:
    """A process and all below it; none where it has gone or is hidden."""
    with suppress(psutil.Error):
        top = psutil.Process(pid)
        return [pid, *(child.pid for child in top.children(recursive=True))]
    return []


class ServerMemory:
    """Reads the servers of `ready`, what the embedded servers said; of others nothing is known.

    A reading takes 10 to 30 ms on two cores, for servers of 0.1 to 2.8 GB, most of it the kernel's walk over
    their pages: it is made before and after the phase that counts, and outside of it. Of an idle tritonserver
    45 MB are itself, its guard and the stub of the null model.
    """

    def __init__(
        self,
        ready: Mapping[str, Any],
        gpus: Callable[[], Mapping[int, int]] = lambda: memory_by_process(find_nvml()),
    ) -> None:
        self._servers, self._gpus = ready.get("endpoints", {}), gpus

    def read(self, endpoint: Endpoint) -> dict[str, Any]:
        """The server's name, bytes and processes; empty for servers of others, and for one that has died.

        `gpu_memory_bytes` is of its processes alone, and not there where no driver tells that by process.
        """
        pid = self._servers.get(endpoint.shares, {}).get("pid")
        held = in_thread(lambda: self._read(pid)) if pid else {}
        return {"server": endpoint.shares, **held} if held else {}

    def _read(self, pid: int) -> dict[str, Any]:
        pids = family(pid)
        held = held_by(pids)
        on_gpu = [bytes_ for process, bytes_ in self._gpus().items() if process in pids]
        return {**held, "gpu_memory_bytes": sum(on_gpu)} if held and on_gpu else held


class ServerCpuTime:
    """What was taken of the processor time of an embedded server, of those of `ready`.

    Its processes are those that it has at the first reading; `make` watches them.
    """

    def __init__(self, pid: int, make: Callable[[int], TakenCpu] | None = None) -> None:
        self._pid, self._make = pid, make or (lambda pid: TakenCpu(Throttling(family(pid))))
        self._taken: TakenCpu | None = None
        self._sums: Counter[str] = Counter()
        self._of_cgroup: dict[str, Any] = {}

    def read(self) -> dict[str, Any]:
        """`{"server_cpu": …}`, sums since the first reading: `throttled_ns`, `used_up_ns`, `stolen_ns`,
        `wanted_ns`.

        Where its cgroup has a quota, `quota` is that in cores; `shared`: whether this process is in it, too.
        """
        return in_thread(self._read)

    def _read(self) -> dict[str, Any]:
        if self._taken is None:
            self._taken = self._make(self._pid)
        told = self._taken.take()
        quota = told.pop("cpu_quota", None)
        if quota is not None:
            self._of_cgroup = {"quota": quota, "shared": self._taken.throttling.holds("self")}
        told.pop("pressure_ns", None)
        self._sums.update({name: int(grown) for name, grown in told.items()})
        found = {**self._sums, **self._of_cgroup}
        return {"server_cpu": found} if found else {}


class HostSampler:
    """Read once a second. `times` and `traffic` are psutil's.

    psutil's own `cpu_percent` keeps the last reading by thread, and under gevent every greenlet is one.
    """

    def __init__(
        self,
        times: Callable[[], Any] = psutil.cpu_times,
        traffic: Callable[[], Any] = lambda: psutil.net_io_counters(nowrap=False),
    ) -> None:
        self._times, self._traffic = times, traffic
        self._last = times()

    def read(self) -> dict[str, Any]:
        """`{"host": {cpu_pct since the last reading, tx_bytes and rx_bytes since the machine's start}}`.

        Bytes are of all interfaces, loopback included: local servers are reached over it.
        """
        before, self._last = self._last, self._times()
        found: dict[str, Any] = {}
        share = busy_share(before, self._last)
        if share is not None:
            found["cpu_pct"] = round(100 * share, 1)
        traffic = self._traffic()
        if traffic is not None:
            found.update(tx_bytes=traffic.bytes_sent, rx_bytes=traffic.bytes_recv)
        return {"host": found} if found else {}


def busy_share(before: Any, after: Any) -> float | None:
    """Of all processors' time between two `psutil.cpu_times()`, what was not idle: 0 to 1.

    None where no time has passed. Linux counts a guest's time as the user's too; waiting for a disk is idle.
    """

    def spent(*names: str) -> float:
        return sum(getattr(after, name, 0.0) - getattr(before, name, 0.0) for name in names)

    total = spent(*after._fields) - spent("guest", "guest_nice")
    if total <= 0:
        return None
    return min(max(1 - spent("idle", "iowait") / total, 0.0), 1.0)
