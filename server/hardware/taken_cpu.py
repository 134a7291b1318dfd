"""Processor time that this process wanted and did not get: what its cgroups' quotas and a hypervisor took.

By the files of cgroup v2 and v1, and `/proc/stat`; empty where a kernel does not tell. The same reading as
`swarm/taken_cpu.py`, which the server does not import.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import NamedTuple

PROC = Path("/proc")
IDLE, IOWAIT, STEAL = 3, 4, 7
"""Columns of the first line of `/proc/stat`."""


class Allowance(NamedTuple):
    """A cgroup's quota, the periods in which it was used up, and how long processors then stopped, summed."""

    cores: float
    period_ns: int
    throttled_periods: int
    throttled_ns: int


class Quotas:
    """The cgroup of this process and all above it; `cores` is what the tightest allows, None without any."""

    def __init__(self, proc: Path = PROC) -> None:
        self._proc = proc
        self._last = self._read()
        self._stopped_ns = self._used_up_ns = 0
        self.cores = min((allowed.cores for allowed in self._last.values()), default=None)

    def take(self) -> tuple[int, int]:
        """How long the tightest quota stopped it since this was made, and the periods in which it ran out."""
        last, self._last = self._last, self._read()
        pairs = [(last.get(at, now), now) for at, now in self._last.items()]
        grown = [(stopped_ns(*pair), -pair[1].cores, used_up_ns(*pair)) for pair in pairs]
        if grown:
            longest_ns, negative_cores, its_used_up_ns = max(grown)
            self.cores = -negative_cores
            self._stopped_ns += longest_ns
            self._used_up_ns += its_used_up_ns
        return self._stopped_ns, self._used_up_ns

    def _read(self) -> dict[Path, Allowance]:
        found = {place: quota_of(place) for place in directories(self._proc)}
        return {place: allowed for place, allowed in found.items() if allowed is not None}


def directories(proc: Path) -> Iterator[Path]:
    """The folders of this process's cgroups, each from the lowest up to where its hierarchy is mounted."""
    paths = {}
    for line in text_of(proc / "self" / "cgroup").splitlines():
        number, controllers, path = line.split(":", 2)
        if number == "0" or "cpu" in controllers.split(","):
            paths[number == "0"] = path
    for line in text_of(proc / "self" / "mountinfo").splitlines():
        place, _, kind = line.partition(" - ")
        names, kinds = place.split(), kind.split()
        unified = kinds[:1] == ["cgroup2"]
        if unified not in paths or not (unified or is_of_cpu(kinds)):
            continue
        whole = PurePosixPath(paths[unified])
        parts = whole.relative_to(names[3]).parts if whole.is_relative_to(names[3]) else ()
        below = () if ".." in parts else parts
        yield from (Path(names[4]).joinpath(*below[:depth]) for depth in range(len(below), -1, -1))


def is_of_cpu(kinds: list[str]) -> bool:
    """Whether a mount is the hierarchy of cgroup v1 that has quotas: its type, its device, its options."""
    return kinds[:1] == ["cgroup"] and "cpu" in kinds[-1].split(",")


def quota_of(place: Path) -> Allowance | None:
    """That of one cgroup; None where it has none."""
    with suppress(OSError, ValueError, KeyError):
        if unified := (place / "cpu.max").exists():
            quota, period = (place / "cpu.max").read_text().split()
        else:
            quota, period = (
                (place / f"cpu.cfs_{name}_us").read_text().strip() for name in ("quota", "period")
            )
        if quota in ("max", "-1"):
            return None
        told = dict(line.split() for line in (place / "cpu.stat").read_text().splitlines())
        throttled_ns = int(told["throttled_usec"]) * 1_000 if unified else int(told["throttled_time"])
        return Allowance(
            int(quota) / int(period), int(period) * 1_000, int(told["nr_throttled"]), throttled_ns
        )
    return None


def stopped_ns(before: Allowance, after: Allowance) -> int:
    """Nanoseconds that passed while it was stopped.

    A quota Q that n threads use up leaves n processors stopped for 1 - Q / n of a period: n - Q in all.
    """
    periods = after.throttled_periods - before.throttled_periods
    summed_ns = after.throttled_ns - before.throttled_ns
    if periods <= 0 or summed_ns <= 0:
        return max(0, summed_ns)
    return round(summed_ns / max(1.0, summed_ns / (periods * after.period_ns) + after.cores))


def used_up_ns(before: Allowance, after: Allowance) -> int:
    """Nanoseconds of the periods in which the quota ran out."""
    return max(0, after.throttled_periods - before.throttled_periods) * after.period_ns


def host_cpu_s(proc: Path = PROC) -> tuple[float, float] | None:
    """For how long the host's processors were wanted since its start, summed, and what of it was stolen."""
    fields = text_of(proc / "stat").partition("\n")[0].split()[1:]
    if len(fields) <= STEAL:
        return None
    ticks, per_s = [int(field) for field in fields[: STEAL + 1]], os.sysconf("SC_CLK_TCK")
    return (sum(ticks) - ticks[IDLE] - ticks[IOWAIT]) / per_s, ticks[STEAL] / per_s


def text_of(path: Path) -> str:
    """A file's text; empty where it cannot be read."""
    with suppress(OSError):
        return path.read_text()
    return ""
