"""Windows of one run's measure phase, folded: counts, percentiles, and how late its requests were sent."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from reports.histogram.buckets import Buckets, mean_ns, percentiles_ns, together
from reports.ledger.ledger import Record
from reports.ledger.records import DURATIONS

LATENCY_PERCENTS = {"p50": 50.0, "p90": 90.0, "p95": 95.0, "p99": 99.0, "p999": 99.9, "max": 100.0}
MEDIAN = {"p50": 50.0}
SERVICE_PERCENTS = {"p50": 50.0, "p95": 95.0, "p99": 99.0}
PHASES = ("encode", "send", "wait", "receive", "decode")
"""Of the service time on the client; an endpoint measures those that it can tell apart."""


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


def count(windows: Sequence[Record], drained: Sequence[Record] = ()) -> Counts:
    """The sums over the windows; a worker's drained line knows better what it abandoned at the stop."""
    kinds: Counter[str] = Counter()
    for window in windows:
        kinds.update(window["failures"])
    names = ("ok", "images", "request_bytes", "response_bytes")
    sums = {name: sum(window[name] for window in windows) for name in names}
    return Counts(failure_kinds=dict(kinds), abandoned=_abandoned(windows, drained), **sums)


def _abandoned(windows: Sequence[Record], drained: Sequence[Record]) -> int:
    stated = {line["worker"]: int(line["abandoned"]) for line in drained}
    seen = sum(int(window["abandoned"]) for window in windows if window["worker"] not in stated)
    return seen + sum(stated.values())


def times(windows: Sequence[Record]) -> dict[str, float | None]:
    """Percentiles and means of the merged histograms, under the names that Summary gives them."""
    latency, service, send_delay = (recorded(windows, name) for name in DURATIONS)
    return {
        "latency_mean_ns": mean_ns(latency),
        **_named("latency", LATENCY_PERCENTS, latency),
        "service_mean_ns": mean_ns(service),
        **_named("service", SERVICE_PERCENTS, service),
        "send_delay_mean_ns": mean_ns(send_delay),
        **_named("send_delay", {"p95": 95.0, "p99": 99.0}, send_delay),
        **_named("failed", MEDIAN, recorded(windows, "failed")),
        **_named("timeout", MEDIAN, recorded(windows, "timeout")),
        **{f"{phase}_ns": mean_ns(recorded(windows, phase)) for phase in PHASES},
    }


def recorded(windows: Iterable[Record], name: str) -> Buckets:
    """One of their histograms, merged from all windows that have it."""
    return together(window["histograms"][name] for window in windows if name in window["histograms"])


def _named(stem: str, percents: Mapping[str, float], values: Buckets) -> dict[str, float | None]:
    found = percentiles_ns(values, list(percents.values()))
    return {f"{stem}_{name}_ns": value for name, value in zip(percents, found, strict=True)}


def measure_ns(load: str, windows: Sequence[Record], drained: Sequence[Record]) -> int | None:
    """The longest span of a worker, from the start of its first request to the end of its last.

    In open load it is at least the longest phase of a worker: n arrivals span n - 1 gaps, so that their span
    alone would say 1.25 a second of 5 requests at 1 a second.

    In closed load a rate over it is exact for a serial run and for a server that queues, which is busy until
    the last reply. For a server that works in parallel it is slightly low: while the last replies come in,
    others idle, which costs at most one request's time in the whole span. Workers' clocks are never compared
    with each other, so it is high by as much as workers began apart.
    """
    workers = {window["worker"] for window in windows}
    spans = [span_ns([window for window in windows if window["worker"] == worker]) for worker in workers]
    phases = [int(line.get("phase_ns") or 0) for line in drained] if load == "open" else []
    return max([*spans, *phases], default=0) or None


def span_ns(windows: Sequence[Record]) -> int:
    """From the first start to the last end on one worker's clock; a second without either does not count."""
    starts = [int(window["first_start_ns"]) for window in windows if window.get("first_start_ns")]
    ends = [int(window["last_end_ns"]) for window in windows if window.get("last_end_ns")]
    return max(ends) - min(starts) if starts and ends else 0


def undrained(windows: Sequence[Record], drained: Sequence[Record]) -> list[str]:
    """Workers that were seen measuring and never said that they had finished."""
    return sorted({w["worker"] for w in windows} - {line["worker"] for line in drained})


@dataclass(frozen=True)
class Offered:
    """What an open load sent: the sum of the workers' rates, how many they are, their phase's mean length."""

    per_s: float
    workers: int
    phase_s: float


@dataclass(frozen=True)
class Arrivals:
    """Counts of the measure phase; None where the ledger does not say, and but for `late` in closed load.

    `due` are the arrivals whose time came, `dropped` those of them that were never sent, `overslept` those
    that were sent late though a user was free.
    """

    late: int | None = None
    due: int | None = None
    dropped: int | None = None
    overslept: int | None = None
    offered: Offered | None = None


def arrivals(load: str, windows: Sequence[Record], drained: Sequence[Record]) -> Arrivals:
    """From the windows and the drained lines of the measure phase."""
    late = _sum([window.get("late") for window in windows])
    if load != "open":
        return Arrivals(late=late)
    took_part = [line for line in drained if line.get("phase_ns")]
    counts = {name: _sum([line.get(name) for line in took_part]) for name in ("due", "dropped", "overslept")}
    return Arrivals(late=late, offered=_offered(took_part) if took_part else None, **counts)


def _offered(took_part: Sequence[Record]) -> Offered:
    phases_s = [line["phase_ns"] / 1e9 for line in took_part]
    rates = (line["sent"] / phase_s for line, phase_s in zip(took_part, phases_s, strict=True))
    return Offered(per_s=sum(rates), workers=len(took_part), phase_s=fmean(phases_s))


def _sum(counts: Sequence[int | None]) -> int | None:
    """The sum where every part is known; None else, and where there is none."""
    known = [count for count in counts if count is not None]
    return sum(known) if known and len(known) == len(counts) else None
