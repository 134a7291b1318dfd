"""Processor time that processes wanted and did not get: a quota, a hypervisor or others took it.

Linux tells it in files: cgroup v2 (Documentation/admin-guide/cgroup-v2.rst) and v1 (scheduler/sched-bwc.rst),
`/proc/stat`, and pressure stall information (accounting/psi.rst). What a kernel does not tell is left out.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import NamedTuple

PROC = Path("/proc")
IDLE, IOWAIT, STEAL = 3, 4, 7
"""Columns of the first line of `/proc/stat`; what a guest took, from the next on, is among the user's."""


class Mount(NamedTuple):
    """Where a hierarchy of cgroups is to be seen; `root` is the cgroup that stands at `point`."""

    unified: bool
    root: str
    point: Path


class Quota(NamedTuple):
    """A cgroup's quota, and since it was made in how many periods and for how long it was stopped.

    `throttled_ns` is the kernel's sum over processors: two that stop for 1 s make 2 s.
    """

    cores: float
    period_ns: int
    throttled_periods: int
    throttled_ns: int


def mounts(mountinfo: str) -> list[Mount]:
    """The hierarchies that may have quotas, from the text of `/proc/self/mountinfo`."""
    found = []
    for line in mountinfo.splitlines():
        place, _, kind = line.partition(" - ")
        kinds, places = kind.split(), place.split()
        unified = kinds[:1] == ["cgroup2"]
        if unified or (kinds[:1] == ["cgroup"] and "cpu" in kinds[-1].split(",")):
            found.append(Mount(unified, places[3], Path(places[4])))
    return found


def directories(cgroup: str, mounted: Iterable[Mount]) -> list[Path]:
    """A process's cgroups and all above them, each from the lowest up; `cgroup` is `/proc/PID/cgroup`."""
    paths: dict[bool, str] = {}
    for line in cgroup.splitlines():
        number, controllers, path = line.split(":", 2)
        if number == "0" or "cpu" in controllers.split(","):
            paths[number == "0"] = path
    found: list[Path] = []
    for unified, root, point in mounted:
        if unified in paths:
            parts = parts_below(paths[unified], root)
            found += [point.joinpath(*parts[:depth]) for depth in range(len(parts), -1, -1)]
    return found


def parts_below(path: str, root: str) -> tuple[str, ...]:
    """The names from the cgroup at a mount down to another; none where the other is not below it.

    >>> parts_below("/pods/a", "/pods"), parts_below("/../other", "/")
    (('a',), ())
    """
    whole = PurePosixPath(path)
    parts = whole.relative_to(root).parts if whole.is_relative_to(root) else ()
    return () if ".." in parts else parts


def quota_of(directory: Path) -> Quota | None:
    """That of one cgroup, by the files of v2 or v1; None where it has none, or has gone."""
    with suppress(OSError, ValueError, KeyError):
        unified = (directory / "cpu.max").exists()
        if unified:
            quota, period = (directory / "cpu.max").read_text().split()
        else:
            quota, period = (
                (directory / f"cpu.cfs_{name}_us").read_text().strip() for name in ("quota", "period")
            )
        if quota in ("max", "-1"):
            return None
        told = dict(line.split() for line in (directory / "cpu.stat").read_text().splitlines())
        throttled_ns = int(told["throttled_usec"]) * 1_000 if unified else int(told["throttled_time"])
        return Quota(int(quota) / int(period), int(period) * 1_000, int(told["nr_throttled"]), throttled_ns)
    return None


def stopped_ns(before: Quota, after: Quota) -> int:
    """For how long a cgroup was stopped between two readings, in time that passed.

    A period's quota Q is used up by n threads after Q / n of it, and then n processors stop for 1 - Q / n,
    which sums up to n - Q. So the sum and the quota make n. Fewer than one were none: a thread that slept.
    """
    periods = after.throttled_periods - before.throttled_periods
    summed_ns = after.throttled_ns - before.throttled_ns
    if periods <= 0 or summed_ns <= 0:
        return max(0, summed_ns)
    threads = summed_ns / (periods * after.period_ns) + after.cores
    return round(summed_ns / max(1.0, threads))


class Stops(NamedTuple):
    """How many cores a quota allows, how long its cgroup was stopped, and the periods in which it ran out.

    A stop begins when a thread would run: on a busy host that is late, and the second understates.
    """

    cores: float
    throttled_ns: int
    used_up_ns: int


def between(before: Quota, after: Quota) -> Stops:
    """What came of a quota between two readings."""
    periods = max(0, after.throttled_periods - before.throttled_periods)
    return Stops(after.cores, stopped_ns(before, after), periods * after.period_ns)


class Throttling:
    """Watches the cgroups that some processes are in; of several with a quota, it tells of the tightest."""

    def __init__(self, pids: Iterable[int | str] = ("self",), proc: Path = PROC) -> None:
        self._pids, self._proc = tuple(pids), proc
        text = text_of(proc / "self" / "mountinfo")
        self._mounted = mounts(text)
        self._last = self._quotas()
        self.tightest: Path | None = None
        """The cgroup of the last reading's quota."""

    def take(self) -> Stops | None:
        """What came of the tightest quota since the last take; None where no cgroup has one.

        The tightest is the one that stopped its cgroup for longest.
        """
        last, self._last = self._last, self._quotas()
        found = {place: between(last.get(place, now), now) for place, now in self._last.items()}
        self.tightest = max(
            found, key=lambda place: (found[place].throttled_ns, -found[place].cores), default=None
        )
        return None if self.tightest is None else found[self.tightest]

    def holds(self, pid: int | str) -> bool:
        """Whether another process is in the tightest of the last take, too."""
        text = text_of(self._proc / str(pid) / "cgroup")
        return self.tightest is not None and self.tightest in directories(text, self._mounted)

    def _quotas(self) -> dict[Path, Quota]:
        places = dict.fromkeys(
            place
            for pid in self._pids
            for place in directories(text_of(self._proc / str(pid) / "cgroup"), self._mounted)
        )
        return {place: quota for place in places if (quota := quota_of(place)) is not None}


def text_of(path: Path) -> str:
    """A file's text; empty where it is not there, or not ours to read."""
    with suppress(OSError):
        return path.read_text()
    return ""


def host_cpu_ns(proc: Path = PROC) -> tuple[int, int] | None:
    """Since the host's start, in nanoseconds summed over its processors: how long they were wanted, and how
    long of that a hypervisor gave them to others; None where that is not told.
    """
    fields = text_of(proc / "stat").partition("\n")[0].split()[1:]
    if len(fields) <= STEAL:
        return None
    ticks = [int(field) for field in fields[: STEAL + 1]]
    tick_ns = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
    return (sum(ticks) - ticks[IDLE] - ticks[IOWAIT]) * tick_ns, ticks[STEAL] * tick_ns


def pressure_ns(proc: Path = PROC) -> int | None:
    """For how long since the host's start some process of it waited for a processor; None where untold."""
    words = text_of(proc / "pressure" / "cpu").partition("\n")[0].split()
    total = next((word.removeprefix("total=") for word in words if word.startswith("total=")), "")
    return int(total) * 1_000 if words[:1] == ["some"] and total.isdigit() else None


class TakenCpu:
    """What was taken from some processes and from their host since the last look."""

    def __init__(
        self,
        throttling: Throttling | None = None,
        host: Callable[[], tuple[int, int] | None] = host_cpu_ns,
        pressure: Callable[[], int | None] = pressure_ns,
    ) -> None:
        self.throttling = throttling or Throttling()
        self._host, self._pressure = host, pressure
        self._last = self._totals()

    def take(self) -> dict[str, float | int]:
        """Growth since the last take: `throttled_ns` and `used_up_ns` with `cpu_quota` in cores, where there
        is one; the host's `wanted_ns` and of it `stolen_ns`, summed over processors; `pressure_ns`.
        """
        last, self._last = self._last, self._totals()
        # A counter of stolen time may fall where a machine moves to another host.
        told: dict[str, float | int] = {
            name: max(0, now - last[name]) for name, now in self._last.items() if name in last
        }
        if (quota := self.throttling.take()) is not None:
            told |= {
                "cpu_quota": quota.cores,
                "throttled_ns": quota.throttled_ns,
                "used_up_ns": quota.used_up_ns,
            }
        return told

    def _totals(self) -> Mapping[str, int]:
        wanted, stolen = self._host() or (None, None)
        told = {"wanted_ns": wanted, "stolen_ns": stolen, "pressure_ns": self._pressure()}
        return {name: value for name, value in told.items() if value is not None}
