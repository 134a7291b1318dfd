"""GPUs as they were sampled: all of a server's together in one second, and each of them over several."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from reports.ledger.ledger import Record

IDLE_PCT = 5
"""Utilisation at which nothing tells a GPU that works from one that does not."""
MARKS = ("serves", "visible")
"""What tells that a GPU is the server's, the surer one first."""
WORKING_PCT = 50
"""Of a second with some kernel running: an idle GPU lowers its clocks and its link to save power."""
HELD_BY = {
    0x04: "its power limit",
    0x08: "a hardware slowdown",
    0x20: "its temperature",
    0x40: "its temperature",
    0x80: "a power brake",
}
"""By NVML's bits, what holds a GPU's clocks down although it has work."""
LANE_BYTES_PER_S = {1: 0.25e9, 2: 0.5e9, 3: 0.985e9, 4: 1.969e9, 5: 3.938e9, 6: 7.563e9}
"""What a lane of PCI Express carries in one direction, by its generation, its encoding taken off."""


@dataclass(frozen=True)
class Gpus:
    """The GPUs together: mean utilisation, sums of memory and power, slowest clock; None where unknown."""

    util_pct: float | None = None
    memory_bytes: float | None = None
    power_w: float | None = None
    sm_clock_mhz: float | None = None


def together(gpus: Sequence[Record]) -> Gpus:
    """One second's reading of these GPUs."""
    util, memory, power, clock = (of_all(gpus, name) for name in Gpus.__dataclass_fields__)
    return Gpus(
        util_pct=mean(util),
        memory_bytes=sum(memory) if memory else None,
        power_w=sum(power) if power else None,
        sm_clock_mhz=min(clock, default=None),
    )


class ServersGpus:
    """Which GPUs are the server's, as the samples of a run tell one after the other.

    One that was marked once is the server's in seconds without marks, too, and others are not.
    """

    def __init__(self) -> None:
        self._marked: dict[str, set[object]] = {mark: set() for mark in MARKS}

    @property
    def mark(self) -> str:
        """The surest mark that was seen so far; empty where none was."""
        return next((mark for mark in MARKS if self._marked[mark]), "")

    def of(self, sample: Record) -> Sequence[Record]:
        """Those of a second: all of its GPUs as long as none was marked."""
        gpus: Sequence[Record] = sample.get("gpus") or ()
        for mark, ids in self._marked.items():
            ids.update(gpu.get("id") for gpu in gpus if gpu.get(mark))
        return [gpu for gpu in gpus if gpu.get("id") in self._marked[self.mark]] if self.mark else gpus


def of_all(gpus: Sequence[Record], name: str) -> list[float]:
    """Each GPU's value; none at all where one GPU lacks it, since a part is no sum."""
    found = [gpu[name] for gpu in gpus if gpu.get(name) is not None]
    return found if len(found) == len(gpus) else []


@dataclass(frozen=True, kw_only=True)
class GpuUse:
    """One GPU in several seconds: means, the most memory and processes; None where it does not tell.

    `serves`: whether the server is known to use it. Shares are of its power limit, of its memory, and, while
    it works, of its highest clock and of what its PCIe link carries. `held_by`: the share of seconds in which
    something held its clocks down. `link`: its PCIe link beside the best it could be, where it is less.
    """

    id: str
    serves: bool = False
    util_pct: float | None = None
    sm_active_pct: float | None = None
    power_share: float | None = None
    memory_share: float | None = None
    clock_share: float | None = None
    pcie_share: float | None = None
    held_by: Mapping[str, float] = field(default_factory=dict)
    link: str = ""
    other_processes: int | None = None
    mig: bool = False


def in_use(gpus: Sequence[GpuUse]) -> Sequence[GpuUse]:
    """Without those that hold the server's process and idle, where others that hold it work.

    A server may keep a context on each GPU and compute on one.
    """
    works = [gpu for gpu in gpus if gpu.util_pct is None or gpu.util_pct >= IDLE_PCT]
    known = all(gpu.serves for gpu in gpus) and any(gpu.util_pct is not None for gpu in works)
    return works if known else gpus


class GpuSums:
    """What becomes a GpuUse."""

    def __init__(self) -> None:
        self._sums, self._most = defaultdict[str, float](float), dict[str, float]()
        self._counts = Counter[str]()
        self._held = Counter[str]()
        self._links = Counter[str]()
        self._serves = self._mig = False

    def add(self, gpu: Record) -> None:
        """Takes in a second."""
        works = (gpu.get("util_pct") or 0) >= WORKING_PCT
        free, taken = gpu.get("memory_free_bytes"), gpu.get("memory_bytes")
        total = gpu.get("memory_total_bytes") or (None if free is None or taken is None else free + taken)
        told = {
            "util_pct": gpu.get("util_pct"),
            "sm_active_pct": gpu.get("sm_active_pct"),
            "power_share": share(gpu.get("power_w"), gpu.get("power_limit_w")),
            "memory_share": share(taken, total),
            "other_processes": gpu.get("other_processes"),
            "clock_share": share(gpu.get("sm_clock_mhz"), gpu.get("max_sm_clock_mhz")) if works else None,
            "pcie_share": _link_use(gpu) if works else None,
        }
        for name, value in told.items():
            if value is not None:
                self._sums[name] += value
                self._counts[name] += 1
                self._most[name] = max(value, self._most.get(name, value))
        if (reasons := gpu.get("throttle_reasons")) is not None:
            self._counts["reasons"] += 1
            self._held.update({name for bit, name in HELD_BY.items() if int(reasons) & bit})
        if works:
            self._links[_lesser_link(gpu)] += 1
        self._serves |= bool(gpu.get("serves"))
        self._mig |= bool(gpu.get("mig"))

    def over(self, gpu: object) -> GpuUse:
        """Of all seconds."""
        means = {name: self._sums[name] / count for name, count in self._counts.items() if name != "reasons"}
        others = means.pop("other_processes", None)
        if "memory_share" in means:
            means["memory_share"] = self._most["memory_share"]
        return GpuUse(
            id=str(gpu),
            serves=self._serves,
            held_by={name: seconds / self._counts["reasons"] for name, seconds in self._held.items()},
            link=next((link for link, _ in self._links.most_common(1)), ""),
            other_processes=None if others is None else int(self._most["other_processes"]),
            mig=self._mig,
            **means,
        )


def _link_use(gpu: Record) -> float | None:
    """The busier direction of its PCIe link, as a share of what that carries."""
    lane = LANE_BYTES_PER_S.get(gpu.get("pcie_gen") or 0, 0.0)
    carried = [gpu[name] for name in ("pcie_tx_bytes_per_s", "pcie_rx_bytes_per_s") if gpu.get(name)]
    return share(max(carried, default=None), lane * (gpu.get("pcie_width") or 0))


def _lesser_link(gpu: Record) -> str:
    """Its link and the best it could be, in words; empty where that is what it is, or is not known."""
    now, best = ([gpu.get(f"{most}pcie_{name}") or 0 for name in ("gen", "width")] for most in ("", "max_"))
    if 0 in now or all(is_now >= could for is_now, could in zip(now, best, strict=True)):
        return ""
    return f"generation {now[0]} x{now[1]} of generation {best[0]} x{best[1]}"


def share(part: float | None, whole: float | None) -> float | None:
    """One by the other; None where either is unknown or there is no whole."""
    return part / whole if part is not None and whole else None


def mean(values: Sequence[float]) -> float | None:
    """None where there are none."""
    return fmean(values) if values else None
