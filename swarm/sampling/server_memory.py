"""What a server that was started here holds in memory, with every process below it.

A page that n processes map counts as an n-th of it for each of them (the proportional set size), so what a
tritonserver shares with its Python stubs counts once. What servers share with each other, which is their
libraries, is divided among those that run.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from swarm.sampling.gpus import find_nvml, in_thread, memory_by_process
from users.endpoint import Endpoint

FIELDS = {
    "Pss": "resident_bytes",
    "Pss_Anon": "anonymous_bytes",
    "Pss_File": "file_bytes",
    "Pss_Shmem": "shared_bytes",
}
"""Of the kernel's summary of a process: all, what it allocated, what it maps of files, and shared memory."""


def parts_of(rollup: str) -> dict[str, int]:
    """Bytes by our names, from the text of `/proc/PID/smaps_rollup`; those that a kernel tells.

    >>> parts_of("Rss:  9 kB\\nPss:  3 kB\\nPss_Anon:  2 kB\\n")
    {'resident_bytes': 3072, 'anonymous_bytes': 2048}
    """
    words = [line.split() for line in rollup.splitlines()]
    told = {found[0].rstrip(":"): int(found[1]) for found in words if found[-1:] == ["kB"]}
    return {name: 1024 * told[field] for field, name in FIELDS.items() if field in told}


def added(parts: Collection[Mapping[str, int]]) -> dict[str, int]:
    """The sums of what all of them tell."""
    names = [name for name in FIELDS.values() if parts and all(name in of for of in parts)]
    return {name: sum(of[name] for of in parts) for name in names}


def held_by(
    pids: Iterable[int], pss: Callable[[int], Mapping[str, int]], rss: Callable[[int], int]
) -> dict[str, Any]:
    """What these processes hold together; empty where none of them is left.

    `how` is `pss`, or `rss` where the kernel does not tell it of each: then what they share counts for each.
    """
    found = [(parts, whole) for pid in pids for parts, whole in _one(pid, pss, rss)]
    if not found:
        return {}
    known = all("resident_bytes" in parts for parts, _ in found)
    told = added([parts for parts, _ in found]) if known else {"resident_bytes": sum(rss for _, rss in found)}
    return {**told, "processes": len(found), "how": "pss" if known else "rss"}


def _one(
    pid: int, pss: Callable[[int], Mapping[str, int]], rss: Callable[[int], int]
) -> Iterator[tuple[Mapping[str, int], int]]:
    """What a process holds by both counts, the first empty where it is not told; none where it has gone."""
    with suppress(ProcessLookupError, psutil.Error):
        parts: Mapping[str, int] = {}
        with suppress(FileNotFoundError, PermissionError):
            parts = pss(pid)
        yield parts, rss(pid)


def family(pid: int) -> list[int]:
    """A process and all below it; none where it has gone or is hidden."""
    with suppress(psutil.Error):
        top = psutil.Process(pid)
        return [pid, *(child.pid for child in top.children(recursive=True))]
    return []


def proportional_of(pid: int) -> dict[str, int]:
    """What the kernel divides by who maps it. Raises OSError where it does not tell."""
    return parts_of(Path(f"/proc/{pid}/smaps_rollup").read_text())


def resident_of(pid: int) -> int:
    """All pages that a process maps, shared or not. Raises psutil.NoSuchProcess."""
    found: int = psutil.Process(pid).memory_info().rss
    return found


def on_gpus() -> dict[int, int]:
    """GPU memory by process, of all GPUs here; none without NVML or a GPU."""
    nvml = find_nvml()
    return memory_by_process(nvml) if nvml is not None else {}


class ServerMemory:
    """Reads the servers of `ready`, what the embedded servers said; of others nothing is known.

    A reading takes 10 to 30 ms on two cores, for servers of 0.1 to 2.8 GB, most of it the kernel's walk over
    their pages: it is made before and after the phase that counts, and outside of it. Of an idle tritonserver
    45 MB are itself, its guard and the stub of the null model.
    """

    def __init__(
        self,
        ready: Mapping[str, Any],
        run: Callable[[Callable[[], dict[str, Any]]], dict[str, Any]] = in_thread,
        gpus: Callable[[], Mapping[int, int]] = on_gpus,
    ) -> None:
        self._servers, self._run, self._gpus = ready.get("endpoints", {}), run, gpus

    def read(self, endpoint: Endpoint) -> dict[str, Any]:
        """The server's name, bytes and processes; empty for servers of others, and for one that has died.

        `gpu_memory_bytes` is of its processes alone, and not there where no driver tells that by process.
        """
        pid = self._servers.get(endpoint.server, {}).get("pid")
        held = self._run(lambda: self._read(pid)) if pid else {}
        return {"server": endpoint.server, **held} if held else {}

    def _read(self, pid: int) -> dict[str, Any]:
        pids = family(pid)
        held = held_by(pids, proportional_of, resident_of)
        on_gpu = [bytes_ for process, bytes_ in self._gpus().items() if process in pids]
        return {**held, "gpu_memory_bytes": sum(on_gpu)} if held and on_gpu else held
