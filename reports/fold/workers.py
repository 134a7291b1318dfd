"""What each worker of a run did in the measure phase, by its own records alone."""

from collections.abc import Sequence
from dataclasses import dataclass

from reports.fold.health import HealthSums
from reports.fold.records import grouped
from reports.fold.run_records import RunRecords, is_paced
from reports.fold.windows import Windows, measure_ns
from reports.histogram.percentiles import told_percentiles_ns
from reports.ledger.ledger import Record

PERCENTS = (50.0, 95.0, 99.0)


@dataclass(frozen=True, kw_only=True)
class WorkerShare:
    """One worker's part of a run; None where it is unknown, latencies where it had too few successes.

    `phase_ns` is its own span of the phase, which its rate is over. `users` are those it had; `cpu_pct` is of
    one core, `tcp_connections` the most it had at once.
    """

    worker: str
    requests: int
    failures: int
    images: int
    users: int | None = None
    phase_ns: float | None = None
    images_per_s: float | None = None
    latency_p50_ns: float | None = None
    latency_p95_ns: float | None = None
    latency_p99_ns: float | None = None
    cpu_pct: float | None = None
    loop_lag_p99_ns: float | None = None
    tcp_connections: int | None = None


def worker_shares(run: RunRecords) -> tuple[WorkerShare, ...]:
    """One for each worker that was to take part, or did."""
    names = [name for record in run.of_kind("run") for name in record.get("workers") or ()]
    drained = grouped(run.drained, "worker")
    seen = sorted({*run.workers, *drained})
    return tuple(_share(run, name, drained.get(name, [])) for name in dict.fromkeys([*names, *seen]))


def _share(run: RunRecords, worker: str, drained: Sequence[Record]) -> WorkerShare:
    windows, health = run.workers.get(worker, Windows()), run.health.workers.get(worker, HealthSums())
    phase_ns = measure_ns(is_paced(run.planned), [windows], drained)
    p50, p95, p99 = told_percentiles_ns(windows.histogram("latency"), PERCENTS)
    users = [line["users"] for line in drained if line.get("users") is not None]
    return WorkerShare(
        worker=worker,
        requests=windows.finished,
        failures=windows.failures,
        images=windows.images,
        users=users[-1] if users else None,
        phase_ns=phase_ns,
        images_per_s=windows.images / (phase_ns / 1e9) if phase_ns and windows.images else None,
        latency_p50_ns=p50,
        latency_p95_ns=p95,
        latency_p99_ns=p99,
        cpu_pct=health.cpu.mean,
        loop_lag_p99_ns=health.lag_ns(99.0),
        tcp_connections=run.path.most.get(worker),
    )
