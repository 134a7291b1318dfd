"""Load profiles: integrals that are exact, and the arrivals and numbers of users that follow from them."""

import bisect
import itertools
from collections import Counter

import pytest

from users.load.load_profile import LoadProfile, LoadStage, parse
from users.load.pacing import CONSTANT, NS_PER_S, POISSON, DueRequest, OpenPacer, offsets_ns

TEXT = "ramp:20,hold:40,cool:20"


def test_stages_of_a_profile() -> None:
    profile = parse(TEXT, 60)
    ramp, hold = LoadStage("ramp", 20, 6, 60), LoadStage("hold", 40, 60, 60)
    assert profile.stages == (ramp, hold, LoadStage("cool-down", 20, 6, 6))
    assert profile.seconds == 80
    assert [stage.arrivals for stage in profile.stages] == [660, 2_400, 120]
    assert profile.arrivals == 3_180


def test_a_profile_may_lack_stages() -> None:
    assert [stage.name for stage in parse(" hold:5 , cool:2.5", 10).stages] == ["hold", "cool-down"]
    assert parse("hold:604800", 10).seconds == 604_800


@pytest.mark.parametrize("peak", [0.7, 6.0, 1_000.0])
@pytest.mark.parametrize(
    "text",
    [TEXT, "steps:3x7", "spikes:every=9,width=2,times=3,base=0", "sine:every=40,times=2,base=0",
     "points:0=0,3=0,13=1,13=0.5,20=0,22=0"],
)  # fmt: skip
def test_constant_arrivals_have_the_rates_integral_between_them(peak: float, text: str) -> None:
    """A rate may begin, end and stay at 0; the first is due where it is above 0 first."""
    profile = parse(text, peak)
    offsets = list(offsets_ns(CONSTANT, peak, "", text))
    first = profile.above_from(0, 0)
    assert first is not None
    assert offsets[0] == round(first * NS_PER_S)
    assert offsets == sorted(offsets)
    assert len(offsets) == profile.arrivals
    assert offsets[-1] < profile.seconds * NS_PER_S
    for number, offset in list(enumerate(offsets))[:: max(1, len(offsets) // 500)]:
        # what is rounded to a nanosecond may be off by as much of the rate
        assert integral(profile, offset / 1e9) == pytest.approx(number, abs=1e-6 * peak)


@pytest.mark.parametrize("level", [0, 0.05, 3, 7.5, 9.99])
@pytest.mark.parametrize(
    "text",
    [
        "points:0=0,10=1,10=0.5,20=0,30=0,36=1",
        "sine:every=36,times=1,base=0",
        "spikes:every=12,width=4,times=3",
    ],
)
def test_how_long_a_course_is_above_and_below_a_level(text: str, level: float) -> None:
    """Beside the course looked at every hundredth of a second."""
    profile = parse(text, 10)
    times = [step / 100 for step in range(3_600)]
    above = [value_at(profile, s + 0.005) > level for s in times]
    for s in range(0, 36, 5):
        expected = next((at for at, is_above in zip(times, above, strict=True) if is_above and at >= s), None)
        assert profile.above_from(level, s) == (
            None if expected is None else pytest.approx(expected, abs=0.011)
        )
    assert profile.above_from(10, 0) is None
    assert profile.above_from(0, 36) is None, "it is over"
    below = max((len(list(of)) for is_above, of in itertools.groupby(above) if not is_above), default=0)
    if level:
        assert profile.longest_below_s(level) == pytest.approx(below / 100, abs=0.021)


def value_at(profile: LoadProfile, s: float) -> float:
    at = bisect.bisect(profile.begins_s, s) - 1
    stage = profile.stages[at]
    return stage.first + stage.slope * (s - profile.begins_s[at])


def integral(profile: LoadProfile, until_s: float) -> float:
    """By the trapezoid, which is exact for straight lines."""
    total, begin_s = 0.0, 0.0
    for stage in profile.stages:
        s = min(max(until_s - begin_s, 0), stage.seconds)
        climb = (stage.last - stage.first) * s / stage.seconds
        total += s * (2 * stage.first + climb) / 2
        begin_s += stage.seconds
    return total


def test_poisson_arrivals_follow_the_rate_and_are_seeded() -> None:
    """In each stage as many as its integral, within four standard deviations of a Poisson count."""
    profile = parse(TEXT, 500)
    offsets = list(offsets_ns(POISSON, 500, "a", TEXT))
    assert offsets == list(offsets_ns(POISSON, 500, "a", TEXT))
    names = [stage.name for stage in profile.stages]
    assert offsets[:5] != list(itertools.islice(offsets_ns(POISSON, 500, "b", TEXT), 5))
    seen = Counter(names[bisect.bisect([20, 60], offset / 1e9)] for offset in offsets)
    for stage in profile.stages:
        assert abs(seen[stage.name] - stage.arrivals) < 4 * stage.arrivals**0.5
    # the first half of the ramp has a rate of 50 to 275
    early = sum(offset < 10 * NS_PER_S for offset in offsets)
    assert abs(early - 1_625) < 4 * 1_625**0.5


@pytest.mark.parametrize("arrivals", [CONSTANT, POISSON])
def test_workers_share_a_profile_whatever_their_number(arrivals: str) -> None:
    whole = list(offsets_ns(arrivals, 20, "s", "ramp:2,hold:2"))
    for of in (1, 3):
        turns: list[DueRequest] = []
        for index in range(of):
            clock = itertools.count(10 * NS_PER_S).__next__
            offsets = offsets_ns(arrivals, 20, "s", "ramp:2,hold:2")
            pacer = OpenPacer(offsets, 0, index, of, 60 * NS_PER_S, clock)
            turns += filter(None, (pacer.wait_turn() for _ in whole[index::of]))
            assert (pacer.due, pacer.dropped) == (len(whole[index::of]), 0)
        assert sorted(turns) == [(at_ns, number) for number, at_ns in enumerate(whole)]


def test_after_its_end_nothing_is_due_and_what_was_dropped_is_known_by_its_second() -> None:
    now_ns = 0
    pacer = OpenPacer(offsets_ns(CONSTANT, 4, "", "hold:2"), 0, 0, 1, NS_PER_S, clock=lambda: now_ns)
    assert pacer.wait_turn() == (0, 0)
    now_ns = 2_600_000_000
    assert pacer.wait_turn() == (1_750_000_000, 7)
    now_ns = 9_000_000_000
    pacer.close()
    assert (pacer.due, pacer.dropped) == (8, 6)
    assert pacer.dropped_by_s == {0: 3, 1: 3}
    assert pacer.wait_turn() is None


def test_at_the_end_what_was_due_and_waits_is_dropped_under_its_second() -> None:
    now_ns = 0
    pacer = OpenPacer(offsets_ns(CONSTANT, 4, "", "hold:2"), 0, 0, 1, 60 * NS_PER_S, clock=lambda: now_ns)
    assert pacer.wait_turn() == (0, 0)
    now_ns = 9_000_000_000
    pacer.close()
    assert (pacer.due, pacer.dropped_by_s) == (8, {0: 3, 1: 4})
