"""A long phase's health is that of all its records, though only sums of them are held."""

from __future__ import annotations

from typing import Any

import pytest

from reports.caveats.client import own_slowness
from reports.fold.health import ClientHealth, Health
from reports.fold.records import readable
from reports.histogram.percentiles import Distribution
from tests.reports.lines import FIRST_SECOND, health_line

TAG = {"cell": "a/b1/c1", "repeat": 1}
MS = 1_000_000
MANY = 1_000
FIGURES = (
    *("worker_cpu_pct", "loop_cpu_pct", "cpu_wait_pct", "awake_pct", "loop_delay_ns", "loop_lag_p95_ns"),
    *("loop_lag_p99_ns", "busiest", "busiest_loop", "most_delaying", "most_lagging"),
)
"""What a generator's slowness is told by."""


def records(workers: int, seconds: int) -> list[dict[str, Any]]:
    """Workers that fare ever worse, the last of them worst; the first tells nothing of its loop's thread."""
    made = []
    for second in range(seconds):
        for worker in range(workers):
            lags_ns = [MS * (1 + (second * 7 + number) % 50) * (1 + worker) for number in range(50)]
            told: dict[str, Any] = {"cpu_pct": (second + worker) % 90, "span_ns": 1_000 * MS - second}
            told |= {"loop_ran_ns": 300 * MS + second, "cpu_wait_ns": worker * MS} if worker else {}
            made.append(health_line(TAG, f"w{worker}", FIRST_SECOND + second, lags_ns, **told))
    return made


def figures(found: ClientHealth) -> dict[str, Any]:
    return {name: getattr(found, name) for name in FIGURES}


def test_it_is_that_of_all_records() -> None:
    given = readable(records(3, 2 * MANY // 3 + 100))
    so_far, whole = Health(), Health()
    for record in given:
        so_far.add([record])
    whole.add(given)
    assert figures(so_far.found()) == pytest.approx(figures(whole.found()))
    latency = Distribution(p95_ns=9.0 * MS, mean_ns=5.0 * MS)
    assert own_slowness(so_far.found(), latency) == own_slowness(whole.found(), latency) != []


def test_of_an_hour_only_sums_are_held() -> None:
    so_far = Health()
    (record,) = readable(records(1, 1))
    for _ in range(4 * MANY):
        so_far.add([record])
    (worker,) = so_far.workers.values()
    assert (worker.lag.total, len(worker.lag.indices)) == (4 * MANY * 50, 50)
