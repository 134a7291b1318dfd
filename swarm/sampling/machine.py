"""Readings of this machine: its GPUs by NVML, the memory of servers started here, its processors' load.

A page mapped by n processes counts 1/n for each of them (the proportional set size), so what a
tritonserver shares with its Python stubs counts once. What servers share with each other, which is their
libraries, is divided among those that run.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import gevent
import psutil

from users.endpoint import Endpoint
from users.metrics import gpu_records

FIELDS = {
    "Pss": "resident_bytes",
    "Pss_Anon": "anonymous_bytes",
    "Pss_File": "file_bytes",
    "Pss_Shmem": "shared_bytes",
}
"""From the kernel's summary of a process: total, allocated, file-mapped, and shared memory."""


def find_nvml() -> Any | None:
    """The module `pynvml`, where it is installed: hosts that only generate load do without."""
    try:
        import pynvml
    except ImportError:
        return None
    return pynvml


def in_thread(work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Do it in gevent's thread pool: a driver's call may take its time, and would hold up every user."""
    answer: dict[str, Any] = gevent.get_hub().threadpool.apply(work)
    return answer


class LocalGpus:
    """NVML, initialised by the first reading; `nvml` is the module."""

    def __init__(self, nvml: Any) -> None:
        self._nvml = nvml
        self._handles: dict[str, Any] | None = None

    def read(self) -> dict[str, Any]:
        """`{"gpus": […]}`, or nothing where there is no driver and no GPU."""
        return in_thread(self._read)

    def _read(self) -> dict[str, Any]:
        if self._handles is None:
            self._handles = handles_of(self._nvml)
        found = gpu_records(
            (gpu, *told) for gpu, handle in self._handles.items() for told in values_of(self._nvml, handle)
        )
        return {"gpus": found} if found else {}

    def close(self) -> None:
        """Let NVML go, without waiting for it."""
        if self._handles:
            gevent.get_hub().threadpool.spawn(self._nvml.nvmlShutdown)
        self._handles = None


def handles_of(nvml: Any) -> dict[str, Any]:
    """NVML's handle of every GPU by its UUID, which Triton's metrics use too; none without a driver."""
    handles = {}
    with suppress(nvml.NVMLError):
        nvml.nvmlInit()
        for index in range(nvml.nvmlDeviceGetCount()):
            with suppress(nvml.NVMLError):  # a GPU that is lost leaves the others
                handle = nvml.nvmlDeviceGetHandleByIndex(index)
                handles[nvml.nvmlDeviceGetUUID(handle)] = handle
    return handles


def each_gpu(nvml: Any, ask: Callable[[Any], Any]) -> list[Any]:
    """The answers of this machine's GPUs that give one; none without NVML, a driver, or a GPU."""
    answers: list[Any] = []
    if nvml is None:
        return answers
    for handle in handles_of(nvml).values():
        with suppress(nvml.NVMLError):
            answers.append(ask(handle))
    with suppress(nvml.NVMLError):
        nvml.nvmlShutdown()
    return answers


def gpu_names(nvml: Any) -> list[str]:
    """The product name of every GPU of this machine."""
    return each_gpu(nvml, lambda handle: str(nvml.nvmlDeviceGetName(handle)))


def values_of(nvml: Any, handle: Any) -> Iterator[tuple[str, float]]:
    """(field, value) of all that this GPU tells."""
    questions: dict[str, Callable[[], float]] = {
        "util_pct": lambda: nvml.nvmlDeviceGetUtilizationRates(handle).gpu,
        "memory_bytes": lambda: nvml.nvmlDeviceGetMemoryInfo(handle).used,
        "power_w": lambda: nvml.nvmlDeviceGetPowerUsage(handle) / 1000,
        "energy_j": lambda: nvml.nvmlDeviceGetTotalEnergyConsumption(handle) / 1000,
        "sm_clock_mhz": lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM),
    }
    for field, ask in questions.items():
        with suppress(nvml.NVMLError):
            yield field, ask()


def memory_by_process(nvml: Any) -> dict[int, int]:
    """Bytes that each process holds on all GPUs of this machine; none where nobody tells that.

    Processes are named as the driver sees them, which in a container can be by other numbers than ours.
    """
    held: Counter[int] = Counter()
    for processes in each_gpu(nvml, lambda handle: nvml.nvmlDeviceGetComputeRunningProcesses(handle)):
        for process in processes:
            if process.usedGpuMemory is not None:
                held[process.pid] += process.usedGpuMemory
    return held


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
