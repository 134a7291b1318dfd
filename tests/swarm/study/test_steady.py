"""When a warm-up ends."""

from collections.abc import Sequence

import numpy as np
import pytest

from reports.fold.windows import Results
from reports.histogram.codec import decoded, encoded_ns
from reports.ledger.ledger import tag_of
from reports.summary.slices import Floats
from swarm.output.run_fold import RunFold
from swarm.study.steady import Steadiness, doubt
from tests.reports.lines import FIRST_SECOND, Record, health_line, phase_line, window
from tests.swarm.fakes import FakeClock
from tests.swarm.followed import START
from tests.swarm.web_stand import a_book, tagged

MS = 1_000_000
CAP_S = 30
T = np.arange(40.0)
UP_DOWN = np.array([1, 1, -1, -1] * 3)
NOISE = np.random.default_rng(5).normal(size=40)


def second(ms: float, count: int = 20) -> Results:
    """A second in which `count` requests took `ms` each."""
    histogram = decoded(encoded_ns([round(ms * MS)] * count)[0])
    return Results(ok=count, histograms={"latency": histogram} if count else {})


def ended(
    each_ms: Sequence[float] | Floats, counts: Sequence[int] = (20,) * 40, cap_s: int = CAP_S
) -> tuple[int, str]:
    """After how many seconds a warm-up ends, and the doubt that is left."""
    seconds = [second(*one) for one in zip(each_ms, counts, strict=False)]
    found = None
    for length in range(1, cap_s + 1):
        if (found := doubt(seconds[:length], [], cap_s)) is None:
            return length, ""
    return cap_s, found.said if found and found.moves else ""


def said(seconds: Sequence[Results], compute_ns: Sequence[float] = ()) -> str:
    """What keeps a warm-up going."""
    found = doubt(seconds, compute_ns, CAP_S)
    return found.said if found else ""


def test_six_seconds_alike_are_steady() -> None:
    assert ended([20] * 40) == (6, "")
    assert said([second(20)] * 5) == "latency was seen in 5 seconds, which are too few"
    assert said([]) == "latency was seen in 0 seconds, which are too few"


def test_noise_is_steady() -> None:
    assert ended(20 * np.exp(0.02 * NOISE)) == (9, "")
    assert ended(20 * np.exp(0.05 * NOISE))[1] == ""


@pytest.mark.parametrize(
    ("settling_s", "ends_s", "percent_left"),
    [(1, 11, 0.01), (3, 26, 0.1)],
)
def test_a_server_that_settles_soon_ends_without_a_doubt(
    settling_s: float, ends_s: int, percent_left: float
) -> None:
    slower = np.exp(-T / settling_s)
    assert ended(20 * (1 + slower)) == (ends_s, "")
    assert 100 * slower[ends_s] < percent_left


@pytest.mark.parametrize("settling_s", [20, 60])
@pytest.mark.parametrize("sd", [0, 0.01])
def test_a_server_that_settles_slowly_is_not_steady_while_it_is_far_too_slow(
    settling_s: float, sd: float
) -> None:
    after_s, moves = ended(20 * (1 + np.exp(-T / settling_s)) * np.exp(sd * NOISE))
    assert after_s == CAP_S
    assert moves.startswith("latency still moves: ")


def test_a_stall_is_left_behind() -> None:
    assert ended([20] + [30] * 4 + [20] * 35) == (9, "")


def test_noise_alone_holds_up_nothing() -> None:
    """Seconds vary by 30 %, so that no trend of some of them could be called small."""
    assert ended(20 * np.exp(0.3 * NOISE)) == (9, "")
    assert ended(20 * np.exp(0.3 * NOISE), cap_s=12) == (9, "")
    assert ended(20 * np.exp(0.3 * NOISE), (0,) * 3 + (20,) * 37) == (12, ""), "of those with answers"


def test_too_few_seconds_are_no_evidence_that_anything_moves() -> None:
    assert ended(20 * (1 + np.exp(-T / 3)), cap_s=9) == (9, "")
    assert ended(20 * (1 + np.exp(-T / 10)), cap_s=12) == (
        12,
        "latency still moves: 40 ms at first, 26.7 ms at last",
    )


@pytest.mark.parametrize(("batch_s", "ends_s"), [(0.3, 6), (0.7, 6), (1.5, 10)])
def test_a_server_that_answers_batch_by_batch_is_steady(batch_s: float, ends_s: int) -> None:
    answered_s = batch_s * np.arange(1, 200)
    counts = [4 * int(((answered_s >= at) & (answered_s < at + 1)).sum()) for at in range(40)]
    assert ended([1_000 * batch_s] * 40, counts) == (ends_s, "")


def test_a_null_model_may_vary_by_half_a_millisecond() -> None:
    assert ended([0.6, 1.0, 0.7, 0.9, 0.6, 0.8, 1.0, 0.7] * 5)[1] == ""
    assert ended([60, 100, 70, 90, 60, 80, 100, 70] * 5)[0] == 9
    assert ended(0.3 + 0.012 * T) == (30, "")
    assert ended(0.3 + 0.02 * T) == (30, "latency still moves: 0.3 ms at first, 0.88 ms at last")
    assert ended(30 + 1.2 * T) == (30, "latency still moves: 30 ms at first, 64.8 ms at last")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        *((0.048, ""), (0.052, "latency still moves: 21.3 ms, then 22.4 ms")),
        *((-0.046, ""), (-0.052, "latency still moves: 21 ms, then 19.9 ms")),
    ],
)
def test_halves_that_differ_by_a_twentieth_are_not_alike(change: float, said: str) -> None:
    halves = [*(20, 22) * 2, *(20 * (1 + change), 22 * (1 + change)) * 2]
    found = doubt([second(ms, 2_000) for ms in halves], [], 2)
    assert (found.said if found else "") == said
    assert doubt([second(ms) for ms in (20, 20, 23) * 2], [], 2) is None


@pytest.mark.parametrize(
    ("each_ms", "moves"),
    [
        *((20 * 1.0045 ** T[:20], False), (20 * 1.005 ** T[:20], True), (20 * 0.995 ** T[:20], True)),
        *(
            (20 * 1.02 ** T[:12] * (1 + 0.03 * UP_DOWN), True),
            (20 * 1.02 ** T[:12] * (1 + 0.06 * UP_DOWN), False),
        ),
        *(([20] * 10 + [20.8] * 3, False), ([20] * 10 + [23] * 3, True), ([23] * 10 + [20] * 3, True)),
    ],
)
def test_what_surely_moves_stands_out_of_its_noise_and_would_change_latency_by_a_tenth(
    each_ms: Sequence[float], moves: bool
) -> None:
    found = doubt([second(ms, 2_000) for ms in each_ms], [], CAP_S)
    assert found is not None
    assert found.moves is moves


def test_a_slope_that_its_error_covers_moves_nothing() -> None:
    """After a start-up whose end is known: of the whole series much is sure to have moved."""
    kept = 20 * 1.009 ** T[:7] * (1 + 0.03 * UP_DOWN[:7])
    found = doubt([second(ms, 2_000) for ms in [*[40.0] * 7, *kept]], [], 15)
    assert found is not None
    assert (found.moves, found.said[:38]) == (False, "latency still moves by +0.47 % a secon")


def test_what_still_moves_is_named() -> None:
    rising = [second(20 * 1.008**at * (1.02, 0.98)[at % 2]) for at in range(9)]
    assert said(rising) == "latency still moves by +0.79 % a second, with an error of 0.29 %"
    halves = [second(ms) for ms in (20, 20.1, 20, 22, 21.9, 22)]
    assert said(halves) == "latency still moves: 20 ms at first, 22 ms at last"


def test_the_servers_own_times_must_be_steady_too() -> None:
    steady = [second(20)] * 8
    assert said(steady, [8e6] * 8) == ""
    assert said(steady, [8e6] * 5) == ("the server's compute time was seen in 5 seconds, which are too few")
    assert said(steady, [8e6, 7e6, 6e6, 5e6, 4e6, 3e6, 2e6]) == (
        "the server's compute time still moves: 8 ms at first, 2 ms at last"
    )
    assert said(steady, [0.0] * 8) == ""
    latency, compute = [second(60 - 3 * at) for at in range(12)], [8e6 * 0.9**at for at in range(12)]
    assert said(steady[:3], compute).startswith("the server's compute time still moves"), "as that is sure"
    assert said(latency, compute[:3]).startswith("latency still moves")


def test_a_warm_up_in_which_nothing_can_be_told_ends_at_its_cap_without_a_doubt() -> None:
    verdict, found = Steadiness(cap_s=10), Phase()
    assert not verdict.over(found.run, 9.9)
    assert verdict.over(found.run, 10)
    assert verdict.doubt == ""


def test_a_warm_up_that_does_not_settle_ends_at_its_cap_with_a_doubt() -> None:
    verdict, found = Steadiness(cap_s=12), Phase()
    for at in range(13):
        found.tell(window(found.tag, "w0", [(60 - 3 * at) * MS] * 20, 1), at)
        assert not verdict.over(found.run, min(at, 11))
        found.tell(health_line(found.tag, "w0"), at)
    assert verdict.over(found.run, 12)
    assert verdict.doubt == (
        "not steady after 12 s of warm-up: latency still moves: 57 ms at first, 24 ms at last"
    )


def test_a_warm_up_that_settles_ends_without_one() -> None:
    verdict, found = Steadiness(cap_s=10), Phase()
    for at in range(7):
        found.tell(window(found.tag, "w0", [20 * MS] * 20, 1), at)
        assert not verdict.over(found.run, at)
        found.tell(health_line(found.tag, "w0"), at)
    assert verdict.over(found.run, 7)
    assert verdict.doubt == ""


class Phase:
    """A warm-up under way in a fold."""

    def __init__(self) -> None:
        book = a_book()
        self.fold, self.tag = RunFold(FakeClock()), tagged(book)
        self.fold.follow(book.header)
        self.fold.on_record({**START, **self.tag})
        self.fold.on_record(phase_line(self.tag, "warm-up", "2026-11-21T11:00:00Z"))
        self.run = self.fold.of(tag_of(self.tag))

    def tell(self, record: Record, at: int) -> None:
        """A record of that second of the warm-up."""
        self.fold.on_record({**record, "phase": "warm-up", "second": FIRST_SECOND + at})
