"""What each worker of a run did in the measure phase, by its own records alone."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from reports.fold.health import busiest_pct, worst_lag_ns
from reports.fold.records import grouped
from reports.fold.windows import count, measure_ns, recorded
from reports.histogram.buckets import percentiles_ns
from reports.ledger.ledger import Record

PERCENTS = (50.0, 95.0, 99.0)


@dataclass(frozen=True, kw_only=True)
class WorkerShare:
    """One worker's part of a run; None where it is unknown, latencies where it had no success.

    `phase_ns` is its own span of the phase, which its rate is over. `users` are those it had; `cpu_pct` is of
    one core, `tcp_connections` the most it had at once.
    """

    worker: str
    requests: int
    failures: int
    images: int
    users: int | None = None
    phase_ns: int | None = None
    images_per_s: float | None = None
    latency_p50_ns: float | None = None
    latency_p95_ns: float | None = None
    latency_p99_ns: float | None = None
    cpu_pct: float | None = None
    loop_lag_p99_ns: float | None = None
    tcp_connections: int | None = None


def worker_shares(
    names: Iterable[str],
    load: str,
    windows: Sequence[Record],
    drained: Sequence[Record],
    health: Sequence[Record],
    path: Sequence[Record],
) -> tuple[WorkerShare, ...]:
    """One for each worker that was to take part, or did; from the records of the measure phase."""
    by_worker = [grouped(records, "worker") for records in (windows, drained, health, path)]
    seen = sorted({name for records in by_worker[:2] for name in records})
    everyone = dict.fromkeys([*names, *seen])
    return tuple(_share(name, load, *(records.get(name, []) for records in by_worker)) for name in everyone)


def _share(
    worker: str,
    load: str,
    windows: Sequence[Record],
    drained: Sequence[Record],
    health: Sequence[Record],
    path: Sequence[Record],
) -> WorkerShare:
    counts, phase_ns = count(windows), measure_ns(load, windows, drained)
    p50, p95, p99 = percentiles_ns(recorded(windows, "latency"), PERCENTS)
    users = [line["users"] for line in drained if line.get("users") is not None]
    connections = [line["connections"] for line in path if line.get("connections") is not None]
    return WorkerShare(
        worker=worker,
        requests=counts.finished,
        failures=counts.failures,
        images=counts.images,
        users=users[-1] if users else None,
        phase_ns=phase_ns,
        images_per_s=counts.images / (phase_ns / 1e9) if phase_ns and counts.images else None,
        latency_p50_ns=p50,
        latency_p95_ns=p95,
        latency_p99_ns=p99,
        cpu_pct=busiest_pct(health),
        loop_lag_p99_ns=worst_lag_ns(health),
        tcp_connections=max(connections, default=None),
    )
