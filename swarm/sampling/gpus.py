"""This machine's GPUs by NVML: what they do, what holds them back, and which of them a server uses."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

import gevent
import psutil

from users.metrics import gpu_records

PCIE_UNIT = 1024
"""Bytes in what NVML tells of PCIe's throughput, which is KB a second."""
Told = Iterator[tuple[str, float]]


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


def is_below(pid: int, tops: Iterable[int]) -> bool | None:
    """Whether a process is one of `tops` or was started below one; None where it is not seen from here.

    The driver may name processes by numbers of another namespace, which are nobody's here.
    """
    with suppress(psutil.Error):
        above = {pid, *(parent.pid for parent in psutil.Process(pid).parents())}
        return not above.isdisjoint(tops)
    return None


class LocalGpus:
    """NVML, initialised by the first reading; `nvml` is the module.

    `pid` is the process of the server under test, where it was started here, and `own` those of all servers
    that were: of others it is not known which GPUs they use. What never changes is asked once.
    """

    def __init__(
        self,
        nvml: Any,
        pid: int | None = None,
        own: Iterable[int] = (),
        below: Callable[[int, Iterable[int]], bool | None] = is_below,
    ) -> None:
        self._nvml, self._below = nvml, below
        self._server = [] if pid is None else [pid]
        self._own = {*own, *self._server}
        self._handles: dict[str, Any] | None = None
        self._fixed: dict[str, list[tuple[str, float]]] = {}
        self._known: dict[int, tuple[bool | None, bool | None]] = {}
        """Of each process, whether it is the server's, and whether it is one of our own servers'."""
        self._serving = set[str]()
        """GPUs on which the server was seen: it stays there, though one reading may fail."""
        self._turn = 0

    def read(self) -> dict[str, Any]:
        """`{"gpus": […]}`, or nothing where there is no driver and no GPU."""
        return in_thread(self._read)

    def _read(self) -> dict[str, Any]:
        if self._handles is None:
            self._handles = handles_of(self._nvml)
            self._fixed = {gpu: list(fixed_of(self._nvml, one)) for gpu, one in self._handles.items()}
        told = [(gpu, *one) for gpu, handle in self._handles.items() for one in self._told(gpu, handle)]
        found = gpu_records([*told, *self._owners(), *self._pcie()])
        return {"gpus": found} if found else {}

    def _told(self, gpu: str, handle: Any) -> Told:
        yield from values_of(self._nvml, handle)
        yield from self._fixed[gpu]

    def _owners(self) -> Iterator[tuple[str, str, float]]:
        """By GPU, whether the server is on it, and how many processes are that no server of ours has."""
        if not self._server or self._handles is None:
            return
        found = {gpu: self._kinds(handle) for gpu, handle in self._handles.items()}
        self._serving |= {gpu for gpu, kinds in found.items() if any(server for server, _ in kinds)}
        if not self._serving:
            return  # on no GPU, or named by other numbers than ours: which, is not known
        for gpu, kinds in found.items():
            yield gpu, "serves", gpu in self._serving
            yield gpu, "other_processes", sum(own is False for _, own in kinds)

    def _kinds(self, handle: Any) -> list[tuple[bool | None, bool | None]]:
        with suppress(self._nvml.NVMLError):
            pids = {process.pid for process in self._nvml.nvmlDeviceGetComputeRunningProcesses(handle)}
            for pid in pids - self._known.keys():
                self._known[pid] = self._below(pid, self._server), self._below(pid, self._own)
            return [self._known[pid] for pid in pids]
        return []

    def _pcie(self) -> Iterator[tuple[str, str, float]]:
        """Of one GPU, in turns: the driver counts for 20 ms to answer each of the two questions."""
        gpus = [gpu for gpu in self._handles or () if not self._serving or gpu in self._serving]
        if not gpus or self._handles is None:
            return
        self._turn += 1
        gpu = gpus[self._turn % len(gpus)]
        for field, name in (("tx", "NVML_PCIE_UTIL_TX_BYTES"), ("rx", "NVML_PCIE_UTIL_RX_BYTES")):
            with suppress(self._nvml.NVMLError, AttributeError):
                counter = getattr(self._nvml, name)
                rate = self._nvml.nvmlDeviceGetPcieThroughput(self._handles[gpu], counter)
                yield gpu, f"pcie_{field}_bytes_per_s", PCIE_UNIT * rate

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


def driver_version(nvml: Any) -> str:
    """The version of the GPUs' driver; empty where there is no GPU."""
    return next(iter(each_gpu(nvml, lambda handle: str(nvml.nvmlSystemGetDriverVersion()))), "")


def values_of(nvml: Any, handle: Any) -> Told:
    """(field, value) of all that this GPU tells and that changes."""
    yield from answers_of(
        nvml,
        {
            "util_pct": lambda: nvml.nvmlDeviceGetUtilizationRates(handle).gpu,
            "memory_bytes": lambda: nvml.nvmlDeviceGetMemoryInfo(handle).used,
            "power_w": lambda: nvml.nvmlDeviceGetPowerUsage(handle) / 1000,
            "energy_j": lambda: nvml.nvmlDeviceGetTotalEnergyConsumption(handle) / 1000,
            "sm_clock_mhz": lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM),
            # An older name than `…EventReasons`, which the library has kept.
            "throttle_reasons": lambda: nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle),
            "pcie_gen": lambda: nvml.nvmlDeviceGetCurrPcieLinkGeneration(handle),
            "pcie_width": lambda: nvml.nvmlDeviceGetCurrPcieLinkWidth(handle),
        },
    )


def fixed_of(nvml: Any, handle: Any) -> Told:
    """(field, value) of what holds for a whole study: the GPU's bounds, and whether it is cut into parts."""
    yield from answers_of(
        nvml,
        {
            "memory_total_bytes": lambda: nvml.nvmlDeviceGetMemoryInfo(handle).total,
            "power_limit_w": lambda: nvml.nvmlDeviceGetEnforcedPowerLimit(handle) / 1000,
            "max_sm_clock_mhz": lambda: nvml.nvmlDeviceGetMaxClockInfo(handle, nvml.NVML_CLOCK_SM),
            "max_pcie_gen": lambda: nvml.nvmlDeviceGetMaxPcieLinkGeneration(handle),
            "max_pcie_width": lambda: nvml.nvmlDeviceGetMaxPcieLinkWidth(handle),
            "mig": lambda: nvml.nvmlDeviceGetMigMode(handle)[0],
        },
    )


def answers_of(nvml: Any, questions: Mapping[str, Callable[[], float]]) -> Told:
    """What is answered of them: a GPU may lack an answer, and an old library a question."""
    for field, ask in questions.items():
        with suppress(nvml.NVMLError, AttributeError):
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
