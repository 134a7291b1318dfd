"""When a warm-up ends."""

import pytest

from reports.histogram.codec import encoded_ns
from swarm.distributed.phase_stats import Pulse, Second
from swarm.study.steady_state import Steadiness, doubt, sliced

MS = 1_000_000


def second(count: int, ms: float = 20) -> Second:
    """A second in which `count` requests took `ms` each."""
    return Second(count, (encoded_ns([round(ms * MS)] * count)[0],) if count else ())


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
def test_what_still_moves_is_named(seconds: list[Second], compute_ns: list[float], why: str) -> None:
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
    pulse = Pulse()
    for worker, clock in (("w0", 1_000), ("w1", 5_000)):
        for at in range(3):
            pulse.add_window(window(worker, clock + at, 10 + at))
            pulse.add_health({"worker": worker, "second": clock + at})
    assert [found.finished for found in pulse.seconds] == [2 * 12, 2 * 13]
    assert [len(found.latencies) for found in pulse.seconds] == [2, 2]


def test_a_second_is_complete_when_every_worker_has_told() -> None:
    pulse = Pulse()
    for worker in ("w0", "w1"):
        pulse.add_health({"worker": worker, "second": 0})
    pulse.add_health({"worker": "w0", "second": 1})
    assert pulse.complete == 0
    pulse.add_health({"worker": "w1", "second": 1})
    assert pulse.complete == 1


def test_compute_time_between_readings() -> None:
    pulse = Pulse()
    for executions, compute_ns in ((10, 100), (20, 300), (20, 300), (22, 400)):
        pulse.add_sample({"server": {"executions": executions, "compute_ns": compute_ns}})
    pulse.add_sample({"missing": ["server"]})
    assert pulse.compute_ns == [20, 50]


def test_a_warm_up_that_does_not_settle_ends_at_its_cap_with_a_doubt() -> None:
    pulse, verdict = Pulse(), Steadiness(cap_s=10)
    assert not verdict.over(pulse, 9.9)
    assert verdict.over(pulse, 10)
    assert verdict.doubt == "not steady after 10 s of warm-up: too few seconds for 3 windows"


def test_a_warm_up_that_settles_ends_without_one() -> None:
    pulse, verdict = Pulse(), Steadiness(cap_s=10)
    for at in range(4):
        pulse.add_window(window("w0", at, 20))
        assert not verdict.over(pulse, at)
        pulse.add_health({"worker": "w0", "second": at})
    assert verdict.over(pulse, 4)
    assert verdict.doubt == ""
