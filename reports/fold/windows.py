"""Windows of one run's measure phase, folded: counts, percentiles and the time they were measured in."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

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
