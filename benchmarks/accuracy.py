"""A million Results of known latencies through recorder, link, collector, ledger and fold; Locust's beside.

python -m benchmarks.accuracy
"""

from __future__ import annotations

from locust import stats

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.bounds import Bounds
from benchmarks.stand_in import Link, packed, results
from reports.fold.run_records import Bins, planned_runs
from reports.ledger.ledger import FILE_NAME, VERSION, LedgerWriter, outline
from reports.study.summarise import summarise
from reports.summary.summary import Summary
from swarm.distributed.collector import Collector
from swarm.distributed.recorder import Recorder
from swarm.locust_patches.patches import three_digits

COUNT, WORKERS = 1_000_000, 8
MEDIAN_NS, SIGMA = 20e6, 0.6
CELL = "a-http/b1/c128"
GAP_NS = 125_000
"""8,000 a second on each worker."""
PERCENTS = {"p50": 50.0, "p90": 90.0, "p95": 95.0, "p99": 99.0, "p99.9": 99.9}
TOLERANCE_PCT = 0.1


def main() -> int:
    """Compare, and say so by the exit code."""
    bounds = Bounds(f"{COUNT:,} lognormal latencies, {WORKERS} workers: error of each percentile")
    services_ns = np.random.default_rng(1).lognormal(np.log(MEDIAN_NS), SIGMA, COUNT).astype(np.int64)
    summary = through_the_suite(services_ns)
    exact_ns = np.sort(services_ns)
    bounds.exactly("requests counted", summary.counts.requests or 0, COUNT)
    for name, percent in PERCENTS.items():
        true_ns = float(exact_ns[int(np.ceil(COUNT * percent / 100)) - 1])
        found_ns = getattr(summary.latency, f"{name.replace('.', '')}_ns")
        bounds.at_most(f"{name} ({true_ns / 1e6:.3f} ms)", error_pct(found_ns, true_ns), TOLERANCE_PCT, "%")
        for how, bucket in (("Locust as it comes", stats.bucket_response_time), ("as tuned", three_digits)):
            own_ms = by_locust(services_ns, bucket).get_response_time_percentile(percent / 100)
            bounds.beside(f"  {how}: {own_ms:g} ms", error_pct(own_ms * 1e6, true_ns), "%")
    return bounds.exit_code()


def error_pct(found: float, true: float) -> float:
    """Relative error in percent."""
    return 100 * abs(found - true) / true


def through_the_suite(services_ns: NDArray[np.int64]) -> Summary:
    """The Summary of one run whose Results are dealt out to workers."""
    with tempfile.TemporaryDirectory() as folder:
        ledger = LedgerWriter(Path(folder) / FILE_NAME)
        ledger.write({"kind": "header", "version": VERSION, "plan": [planned()]})
        ledger.write({"kind": "run", "event": "start", **tag(), "workers": ["w"] * WORKERS, "hosts": 1})
        link = Link()
        collector = Collector(link, lambda worker: worker)  # type: ignore[arg-type]
        collector.begin_study(ledger)
        collector.begin_phase([(CELL, 1)], "measure")
        for worker in range(WORKERS):
            for records in recorded(services_ns[worker::WORKERS]):
                link.deliver(packed(records, f"w{worker}"))
        ledger.write({"kind": "run", "event": "end", **tag(), "status": "done", "note": ""})
        ledger.close()
        (run,) = planned_runs(outline(Path(folder) / FILE_NAME), Bins(1, 0))
        return summarise(run)


def recorded(services_ns: NDArray[np.int64]) -> list[list[dict[str, object]]]:
    """What one worker ships, second by second."""
    recorder, shipped, next_ns = Recorder(), [], 0
    for result in results(map(int, services_ns), 0, GAP_NS, CELL):
        recorder.add(result)
        if result.start_ns >= next_ns:
            shipped.append(recorder.take_closed(result.start_ns))
            next_ns += 1_000_000_000
    shipped.append(recorder.take_all())
    return shipped


def tag() -> dict[str, object]:
    """The one run."""
    return {"cell": CELL, "repeat": 1}


def planned() -> dict[str, object]:
    """The one run as a header lists it."""
    spoken = {"endpoint": "a-http", "backend": "a", "protocol": "http", "payload": "fp32"}
    return {**tag(), **spoken, "batch": 1, "load": "closed", "level": 128}


def by_locust(services_ns: NDArray[np.int64], bucket: Callable[[float], float]) -> stats.StatsEntry:
    """The same latencies in one of Locust's own entries."""
    entry = stats.StatsEntry(stats.RequestStats(), "a", "http")
    rounded, counts = np.unique(np.array([bucket(ns / 1e6) for ns in services_ns]), return_counts=True)
    entry.response_times = dict(zip(rounded.tolist(), counts.tolist(), strict=True))
    entry.num_requests = len(services_ns)
    return entry


if __name__ == "__main__":
    sys.exit(main())
