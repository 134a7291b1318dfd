"""A generator's health from its workers' records: means over time, the worst worker's, None if untold."""

from typing import Any

import pytest

from reports.fold.health import ClientHealth, Health, Shown
from reports.fold.records import readable
from tests.reports.lines import FIRST_SECOND, Record, encoded, health_line

MS = 1_000_000


def told(worker: str, span_ms: int | None = None, lags_ms: Any = (), **stated: Any) -> Record:
    """What a worker tells of a time, and nothing else."""
    line = health_line({}, worker, FIRST_SECOND, cpu_pct=None, gc_max_ns=None, in_flight=None, users=None)
    line |= {"lag": encoded([round(each * MS) for each in lags_ms]) if lags_ms else ""}
    line |= {"span_ns": span_ms * MS} if span_ms else {}
    return line | {
        name.replace("_ms", "_ns"): of * MS if "_ms" in name else of for name, of in stated.items()
    }


def health(*lines: Record, at_once: int = 100) -> Health:
    found, records = Health(), readable(lines)
    for at in range(0, len(records), at_once):
        found.add(records[at : at + at_once])
    return found


THREE = (
    told("w0", 250, [1] * 97 + [40] * 3, cpu_pct=90.0, loop_ran_ms=200, cpu_wait_ms=10, gc_max_ms=7),
    told("w0", 750, cpu_pct=50.0, loop_ran_ms=300, cpu_wait_ms=40, gc_max_ms=3, in_flight=5, users=4),
    told("w0", 1_000, throttled_ms=100, pressure_ms=600, cpu_quota=2.5, stolen_ms=300, wanted_ms=4_000),
    told("w0", 1_000, throttled_ms=500, pressure_ms=200, cpu_quota=1.5, stolen_ms=100, wanted_ms=1_000),
    told("w0", 1_000, throttled_ms=0, pressure_ms=100, cpu_quota=2.0, used_up_ms=100),
    told("w1", None, [5] * 100, cpu_pct=70.0, loop_ran_ms=100, cpu_wait_ms=300, gc_max_ms=5),
    told("w1", None, throttled_ms=150, cpu_quota=0.5, used_up_ms=400, lock_wait_ms=40, lock_looks=8),
    told("w1", None, lock_wait_ms=20, lock_looks=2, in_flight=3, users=2),
    told("w2", 1_000, loop_ran_ms=450, lock_wait_ms=5, lock_looks=1),
    told("w2", 1_000, stolen_ms=45, wanted_ms=20),
)


@pytest.mark.parametrize("at_once", [1, 4, 100])
def test_each_figure_is_of_the_worker_that_fared_worst_and_over_the_time_that_tells_of_it(
    at_once: int,
) -> None:
    found = health(*THREE, at_once=at_once)
    assert found.found(in_flight=6.5) == ClientHealth(
        worker_cpu_pct=70.0,  # 60 of w0
        busiest="w1",
        loop_cpu_pct=50.0,  # 10 of w1, 45 of w2
        busiest_loop="w0",
        cpu_wait_pct=30.0,  # 5 of w0
        awake_pct=55.0,  # 40 of w1; w2 did not tell of its waits
        loop_delay_ns=pytest.approx((3 * 40**2 + 97) / 2 / 250 * MS, rel=1e-3),
        most_delaying="w0",
        loop_lag_p95_ns=pytest.approx(5 * MS, rel=1e-3),
        loop_lag_p99_ns=pytest.approx(40 * MS, rel=1e-3),
        most_lagging="w1",
        gc_max_ns=7 * MS,
        in_flight=6.5,
        lock_wait_ns=6 * MS,
        cpu_quota=1.5,
        throttled_pct=20.0,
        used_up_pct=40.0,
        stolen_pct=9.0,  # of half a core's time at least; 8 of w0, of all that was wanted
        pressure_pct=30.0,
        lag_awaited=pytest.approx(0.6, rel=1e-3),
    )
    assert (found.used_ns, found.in_flight) == (0.9 * 250 * MS + 0.5 * 750 * MS + 0.7 * 1_000 * MS, 8)
    lag_ns = pytest.approx(40 * MS, rel=1e-3)
    assert found.shown == Shown(told=True, in_flight=8, users=6, worker_cpu_pct=70.0, loop_lag_ns=lag_ns)


def test_what_nobody_told_is_unknown() -> None:
    assert health().found() == health(told("w0"), told("w1", 500)).found() == ClientHealth()
    assert (health().shown, health(told("w0")).shown) == (Shown(), Shown(told=True))


def test_of_workers_that_fare_alike_the_first_by_name_is_told() -> None:
    alike = {"cpu_pct": 0.0, "loop_ran_ms": 0, "lags_ms": [20] * 50}
    found = health(told("w1", **alike), told("w0", **alike)).found()
    assert {found.busiest, found.busiest_loop, found.most_delaying, found.most_lagging} == {"w0"}
    assert (found.worker_cpu_pct, found.loop_cpu_pct) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("lags_ms", "p95_ms", "p99_ms", "delay_ms"),
    [
        ([3] * 49, None, 3, None),
        ([3] * 47 + [5] * 3, 5, 5, None),
        # a hiccup or two are none, nor is what is shorter than 20 ms
        ([0] * 98 + [30] * 2, 0, 30, None),
        ([0] * 97 + [19.9] * 3, 0, 19.9, None),
        ([0] * 97 + [20] * 3, 0, 20, 0.6),
    ],
)
def test_lags_need_looks_and_delays_need_stops(
    lags_ms: list[float], p95_ms: float | None, p99_ms: float | None, delay_ms: float | None
) -> None:
    found = health(told("w0", lags_ms=lags_ms)).found()
    seen = (found.loop_lag_p95_ns, found.loop_lag_p99_ns, found.loop_delay_ns)
    assert seen == tuple(
        None if each is None else pytest.approx(each * MS, rel=2e-3) for each in (p95_ms, p99_ms, delay_ms)
    )


def test_of_an_hour_only_sums_are_held() -> None:
    found, lags_ms = Health(), [each / 10 for each in range(50)]
    (record,) = readable([told("w0", lags_ms=lags_ms)])
    for _ in range(500):
        found.add([record])
    (worker,) = found.workers.values()
    assert (worker.lag.total, len(worker.lag.indices)) == (500 * 50, 50)
