"""When a warm-up ends."""

import pytest

from reports.histogram.codec import encoded_ns
from swarm.distributed.collector import PhaseStats, SecondStats
from swarm.study.conductor import Steadiness, doubt, sliced

MS = 1_000_000


def second(count: int, ms: float = 20) -> SecondStats:
    """A second in which `count` requests took `ms` each."""
    return SecondStats(count, (encoded_ns([round(ms * MS)] * count)[0],) if count else ())


def test_three_seconds_alike_are_steady() -> None:
    assert doubt([second(50), second(52), second(49)], []) == ""


def test_only_the_last_three_count() -> None:
    assert doubt([second(5, 200), second(50), second(52), second(49)], []) == ""


@pytest.mark.parametrize(
    ("seconds", "compute_ns", "why"),
    [
        ([], [], "too few seconds for 3 windows"),
        ([second(50), second(50)], [], "too few seconds for 3 windows"),
        ([second(1), second(1), second(0)], [], "too few results for 3 windows"),
        ([second(50), second(60), second(70)], [], "throughput still moves: 50, 60, 70 requests/s"),
        ([second(50, 30), second(50, 25), second(50, 20)], [], "p95 still moves: 30, 25, 20 ms"),
        ([second(50)] * 3, [9e6, 4e6], "too few compute times for 3 windows"),
        ([second(50)] * 3, [9e6, 6e6, 4e6], "the server's compute time still moves: 9, 6, 4 ms"),
    ],
)
def test_what_still_moves_is_named(seconds: list[SecondStats], compute_ns: list[float], why: str) -> None:
    assert doubt(seconds, compute_ns) == why


def test_half_a_millisecond_does_not_matter() -> None:
    seconds = [second(50, 1.0), second(50, 1.4), second(50, 1.2)]
    assert doubt(seconds, [100_000, 300_000, 200_000]) == ""


def test_slow_requests_are_judged_over_longer_windows() -> None:
    made = sliced([second(1, 900)] * 9)
    assert [(found.seconds, found.finished, found.per_s) for found in made] == [(3, 3, 1.0)] * 3
    assert doubt([second(1, 900)] * 9, []) == ""
    assert doubt([second(1, 900)] * 8, []) == "too few results for 3 windows"


def window(worker: str, at: int, ok: int) -> dict[str, object]:
    histograms = {"latency": encoded_ns([20 * MS] * ok)[0]}
    return {"worker": worker, "second": at, "ok": ok, "failures": {"timeout": 1}, "histograms": histograms}


def test_seconds_are_each_workers_own() -> None:
    phase_stats = PhaseStats()
    for worker, clock in (("w0", 1_000), ("w1", 5_000)):
        for at in range(3):
            phase_stats.add_window(window(worker, clock + at, 10 + at))
            phase_stats.add_health({"worker": worker, "second": clock + at})
    assert [found.finished for found in phase_stats.seconds] == [2 * 12, 2 * 13]
    assert [len(found.latencies) for found in phase_stats.seconds] == [2, 2]


def test_a_second_is_complete_when_every_worker_has_told() -> None:
    phase_stats = PhaseStats()
    for worker in ("w0", "w1"):
        phase_stats.add_health({"worker": worker, "second": 0})
    phase_stats.add_health({"worker": "w0", "second": 1})
    assert phase_stats.complete == 0
    phase_stats.add_health({"worker": "w1", "second": 1})
    assert phase_stats.complete == 1


def test_compute_time_between_readings() -> None:
    phase_stats = PhaseStats()
    for executions, compute_ns in ((10, 100), (20, 300), (20, 300), (22, 400)):
        phase_stats.add_sample({"server": {"executions": executions, "compute_ns": compute_ns}})
    phase_stats.add_sample({"missing": ["server"]})
    assert phase_stats.compute_ns == [20, 50]


def test_a_warm_up_that_does_not_settle_ends_at_its_cap_with_a_doubt() -> None:
    phase_stats, verdict = PhaseStats(), Steadiness(cap_s=10)
    assert not verdict.over(phase_stats, 9.9)
    assert verdict.over(phase_stats, 10)
    assert verdict.doubt == "not steady after 10 s of warm-up: too few seconds for 3 windows"


def test_a_warm_up_that_settles_ends_without_one() -> None:
    phase_stats, verdict = PhaseStats(), Steadiness(cap_s=10)
    for at in range(4):
        phase_stats.add_window(window("w0", at, 20))
        assert not verdict.over(phase_stats, at)
        phase_stats.add_health({"worker": "w0", "second": at})
    assert verdict.over(phase_stats, 4)
    assert verdict.doubt == ""
