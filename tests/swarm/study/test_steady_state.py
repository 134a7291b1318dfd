"""When a warm-up ends."""

import pytest

from reports.fold.windows import Results
from reports.histogram.codec import decoded, encoded_ns
from swarm.output.run_fold import RunFold
from swarm.study.conductor import Steadiness, doubt, sliced
from tests.reports.lines import FIRST_SECOND, Record, health_line, phase_line, window
from tests.swarm.fakes import FakeClock
from tests.swarm.followed import START
from tests.swarm.web_stand import a_book, tagged

MS = 1_000_000


def second(count: int, ms: float = 20) -> Results:
    """A second in which `count` requests took `ms` each."""
    histogram = decoded(encoded_ns([round(ms * MS)] * count)[0])
    return Results(ok=count, histograms={"latency": histogram} if count else {})


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
def test_what_still_moves_is_named(seconds: list[Results], compute_ns: list[float], why: str) -> None:
    assert doubt(seconds, compute_ns) == why


def test_half_a_millisecond_does_not_matter() -> None:
    seconds = [second(50, 1.0), second(50, 1.4), second(50, 1.2)]
    assert doubt(seconds, [100_000, 300_000, 200_000]) == ""


def test_slow_requests_are_judged_over_longer_windows() -> None:
    made = sliced([second(1, 900)] * 9)
    assert [(found.seconds, found.finished, found.per_s) for found in made] == [(3, 3, 1.0)] * 3
    assert doubt([second(1, 900)] * 9, []) == ""
    assert doubt([second(1, 900)] * 8, []) == "too few results for 3 windows"


def test_a_warm_up_that_does_not_settle_ends_at_its_cap_with_a_doubt() -> None:
    verdict, found = Steadiness(cap_s=10), Phase()
    assert not verdict.over(found.fold, 9.9)
    assert verdict.over(found.fold, 10)
    assert verdict.doubt == "not steady after 10 s of warm-up: too few seconds for 3 windows"


def test_a_warm_up_that_settles_ends_without_one() -> None:
    verdict, found = Steadiness(cap_s=10), Phase()
    for at in range(4):
        found.tell(window(found.tag, "w0", [20 * MS] * 20, 1), at)
        assert not verdict.over(found.fold, at)
        found.tell(health_line(found.tag, "w0"), at)
    assert verdict.over(found.fold, 4)
    assert verdict.doubt == ""


class Phase:
    """A warm-up under way in a fold."""

    def __init__(self) -> None:
        book = a_book()
        self.fold, self.tag = RunFold(FakeClock()), tagged(book)
        self.fold.follow(book.header)
        self.fold.on_record({**START, **self.tag})
        self.fold.on_record(phase_line(self.tag, "warm-up", "2026-11-21T11:00:00Z"))

    def tell(self, record: Record, at: int) -> None:
        """A record of that second of the warm-up."""
        self.fold.on_record({**record, "phase": "warm-up", "second": FIRST_SECOND + at})
