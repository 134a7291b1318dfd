"""Windows of one run's measure phase, folded: counts, percentiles and the time they were measured in."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from reports.histogram import mean_ns, merged, percentiles_ns
from reports.ledger import Record

LATENCY_PERCENTS = {"p50": 50.0, "p90": 90.0, "p95": 95.0, "p99": 99.0, "p999": 99.9, "max": 100.0}
SERVICE_PERCENTS = {"p50": 50.0, "p95": 95.0, "p99": 99.0}


@dataclass(frozen=True)
class Counts:
    """What the windows counted; images and bytes belong to successes only."""

    ok: int
    failure_kinds: Mapping[str, int]
    abandoned: int
    images: int
    request_bytes: int
    response_bytes: int

    @property
    def failures(self) -> int:
        """Requests that finished wrong."""
        return sum(self.failure_kinds.values())

    @property
    def finished(self) -> int:
        """Requests that came back, right or wrong."""
        return self.ok + self.failures

    @property
    def sent(self) -> int:
        """Requests that were begun: finished ones and those killed at the stop."""
        return self.finished + self.abandoned


def count(windows: Sequence[Record]) -> Counts:
    """The sums over the windows."""
    kinds: Counter[str] = Counter()
    for window in windows:
        kinds.update(window["failures"])
    names = ("ok", "abandoned", "images", "request_bytes", "response_bytes")
    sums = {name: sum(window[name] for window in windows) for name in names}
    return Counts(failure_kinds=dict(kinds), **sums)


def times(windows: Sequence[Record]) -> dict[str, float | None]:
    """Percentiles and the mean of the merged histograms, under the names that Summary gives them."""
    latency, service, send_delay = (
        merged(window["histograms"][name] for window in windows if name in window["histograms"])
        for name in ("latency", "service_time", "send_delay")
    )
    found = {"latency_mean_ns": mean_ns(latency)}
    found |= _named("latency", LATENCY_PERCENTS, percentiles_ns(latency, LATENCY_PERCENTS.values()))
    found |= _named("service", SERVICE_PERCENTS, percentiles_ns(service, SERVICE_PERCENTS.values()))
    found |= _named("send_delay", {"p99": 99.0}, percentiles_ns(send_delay, [99.0]))
    return found


def _named(stem: str, names: Iterable[str], values: Iterable[float | None]) -> dict[str, float | None]:
    return {f"{stem}_{name}_ns": value for name, value in zip(names, values, strict=True)}


def measure_ns(windows: Sequence[Record], drained: Sequence[Record], closed: bool) -> float | None:
    """The mean measured time of a user: Σ busy / Σ users, so that a serial run has no edge error.

    A worker without a drained line counts with the span it was seen over, and so does every worker of an open
    load, whose users do not wait for each other.
    """
    by_worker: dict[str, list[Record]] = defaultdict(list)
    for window in windows:
        by_worker[window["worker"]].append(window)
    lines = {line["worker"]: line for line in drained} if closed else {}
    busy_ns, users = 0, 0
    for worker in by_worker.keys() | lines.keys():
        line = lines.get(worker)
        worker_users = line["users"] if line else max(window.get("users", 1) for window in by_worker[worker])
        busy_ns += line["busy_ns"] if line else span_ns(by_worker[worker]) * worker_users
        users += worker_users
    return busy_ns / users if busy_ns and users else None


def span_ns(windows: Sequence[Record]) -> int:
    """From the first start to the last end on one worker's clock; a second without either does not count."""
    starts = [int(window["first_start_ns"]) for window in windows if window.get("first_start_ns")]
    ends = [int(window["last_end_ns"]) for window in windows if window.get("last_end_ns")]
    return max(ends) - min(starts) if starts and ends else 0


def undrained(windows: Sequence[Record], drained: Sequence[Record]) -> list[str]:
    """Workers that were seen measuring and never said that they had finished."""
    return sorted({w["worker"] for w in windows} - {line["worker"] for line in drained})
