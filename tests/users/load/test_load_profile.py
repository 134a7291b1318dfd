"""Load profiles: what their text means, integrals that are exact, and the arrivals that follow from them."""

import bisect
import itertools
from collections import Counter

import pytest

from users.load.load_profile import GIVE, LoadProfile, LoadStage, parse
from users.load.pacing import CONSTANT, NS_PER_S, POISSON, OpenPacer, offsets_ns

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


@pytest.mark.parametrize(
    "text",
    ["", "ramp", "ramp:", "ramp:x", "ramp:0", "ramp:-1", "ramp:inf", "ramp:nan", "up:5", "hold:5,ramp:5",
     "hold:5,hold:5", "ramp:5,,hold:5", "ramp:5:6", "ramp:5,hold:0", "ramp:604801"],
)  # fmt: skip
def test_what_is_no_profile(text: str) -> None:
    with pytest.raises(ValueError) as caught:
        parse(text, 10)
    assert str(caught.value) == GIVE


@pytest.mark.parametrize("peak", [0.7, 6.0, 1_000.0])
def test_constant_arrivals_have_the_rates_integral_between_them(peak: float) -> None:
    profile = parse(TEXT, peak)
    offsets = list(offsets_ns(CONSTANT, peak, "", TEXT))
    assert offsets[0] == 0
    assert offsets == sorted(offsets)
    assert len(offsets) == profile.arrivals
    assert offsets[-1] < profile.seconds * NS_PER_S
    for number, offset in enumerate(offsets):
        # what is rounded to a nanosecond may be off by as much of the rate
        assert integral(profile, offset / 1e9) == pytest.approx(number, abs=1e-6 * peak)


def integral(profile: LoadProfile, until_s: float) -> float:
    """By the trapezoid, which is exact for straight lines."""
    total, begin_s = 0.0, 0.0
    for stage in profile.stages:
        s = min(max(until_s - begin_s, 0), stage.seconds)
        climb = (stage.last_per_s - stage.first_per_s) * s / stage.seconds
        total += s * (2 * stage.first_per_s + climb) / 2
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
        turns: list[int] = []
        for index in range(of):
            clock = itertools.count(10 * NS_PER_S).__next__
            offsets = offsets_ns(arrivals, 20, "s", "ramp:2,hold:2")
            pacer = OpenPacer(offsets, 0, index, of, 60 * NS_PER_S, clock)
            turns += [pacer.wait_turn() or 0 for _ in whole[index::of]]
            assert (pacer.due, pacer.dropped) == (len(whole[index::of]), 0)
        assert sorted(turns) == whole


def test_after_its_end_nothing_is_due_and_what_was_dropped_is_known_by_its_second() -> None:
    now_ns = 0
    pacer = OpenPacer(offsets_ns(CONSTANT, 4, "", "hold:2"), 0, 0, 1, NS_PER_S, clock=lambda: now_ns)
    assert pacer.wait_turn() == 0
    now_ns = 2_600_000_000
    assert pacer.wait_turn() == 1_750_000_000
    now_ns = 9_000_000_000
    pacer.close()
    assert (pacer.due, pacer.dropped) == (8, 6)
    assert pacer.dropped_by_s == {0: 3, 1: 3}
    assert pacer.wait_turn() is None


def test_at_the_end_what_was_due_and_waits_is_dropped_under_its_second() -> None:
    now_ns = 0
    pacer = OpenPacer(offsets_ns(CONSTANT, 4, "", "hold:2"), 0, 0, 1, 60 * NS_PER_S, clock=lambda: now_ns)
    assert pacer.wait_turn() == 0
    now_ns = 9_000_000_000
    pacer.close()
    assert (pacer.due, pacer.dropped_by_s) == (8, {0: 3, 1: 4})
