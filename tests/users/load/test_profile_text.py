"""What the text of a load profile means, and one sentence for each that means nothing."""

import math

import pytest

from users.load.load_profile import parse
from users.load.profile_text import (
    GIVE,
    GIVE_POINTS,
    GIVE_SINE,
    GIVE_SPIKES,
    GIVE_STEPS,
    Stretch,
    shares,
)


@pytest.mark.parametrize(
    ("text", "stretches"),
    [
        ("ramp:20, hold:40", [Stretch("ramp", 20, 0.1, 1), Stretch("hold", 40, 1, 1)]),
        ("cool:5", [Stretch("cool-down", 5, 0.1, 0.1)]),
        ("steps:2x30", [Stretch("step 1", 30, 0.5, 0.5), Stretch("step 2", 30, 1, 1)]),
        ("spikes:every=30,width=5,times=1,base=0.2",
         [Stretch("base", 12.5, 0.2, 0.2), Stretch("spike", 5, 1, 1), Stretch("base", 12.5, 0.2, 0.2)]),
        ("points:0=0.1,20=1 up,20=0.5,60=0",
         [Stretch("up", 20, 0.1, 1), Stretch("20-60 s", 40, 0.5, 0)]),
    ],
)  # fmt: skip
def test_what_a_text_means(text: str, stretches: list[Stretch]) -> None:
    assert shares(text) == stretches


def test_a_sine_is_as_near_as_it_says() -> None:
    found = shares("sine:every=64,times=2,base=0.2")
    assert [(found[at].name, found[at].first) for at in (0, 4, 12, 16, 20, 28)] == [
        *(("low", 0.2), ("rise", pytest.approx(0.317, abs=1e-3)), ("high", pytest.approx(0.883, abs=1e-3))),
        *(("high", 1.0), ("fall", pytest.approx(0.883, abs=1e-3)), ("low", pytest.approx(0.317, abs=1e-3))),
    ]
    far = [
        abs((one.first + one.last) / 2 - (0.2 + 0.4 * (1 - math.cos(2 * math.pi * (2 * at + 1) / 64))))
        for at, one in enumerate(found)
    ]
    assert len(found) == 64
    assert 0.0015 < max(far) < 0.0025


RAMPS = ("", "ramp", "ramp:", "ramp:x", "ramp:0", "ramp:-1", "ramp:inf", "ramp:nan", "up:5", "hold:5,ramp:5",
         "hold:5,hold:5", "ramp:5,,hold:5", "ramp:5:6", "ramp:5,hold:0")  # fmt: skip


@pytest.mark.parametrize(
    ("text", "said"),
    [
        *((text, GIVE) for text in RAMPS),
        *((f"steps:{rest}", GIVE_STEPS) for rest in ("", "4", "1x5", "2.5x5", "4x0", "4xinf", "x5", "4x5x6")),
        *((f"spikes:{rest}", GIVE_SPIKES) for rest in (
            "", "every=5,width=5,times=2", "every=5,width=0,times=2", "every=5,times=2",
            "every=5,width=1,times=0", "every=5,width=1,times=1.5", "every=5,width=1,times=2,base=1",
            "every=5,width=1,times=2,times=3", "every=5,width=1,times=2,high=3",
            "every=5,width=nan,times=2")),
        *((f"sine:{rest}", GIVE_SINE)
          for rest in ("", "every=5", "every=0,times=2", "every=5,width=1,times=2")),
        *((f"points:{rest}", GIVE_POINTS) for rest in ("", "0=1", "0=1,5", "0=1,x=1", "0=1,5=-1")),
        ("points:1=1,5=1", "points: the first is at 1 s; begin at 0"),
        ("points:0=1,5=1,4=1", "points: 4 s comes after a later one; give them in order"),
        ("points:0=1,5=1.5", "points: 1.5 is no share of the peak; give 0 to 1"),
        ("points:0=0.1,5=0.5", "points: the highest share is 0.5; let it be 1, the peak"),
        ("hold:604801", "takes 604,801 s: a load profile may take 1 s to a week (604,800 s)"),
        ("sine:every=1e300,times=2", "takes 2e+300 s: a load profile may take 1 s to a week (604,800 s)"),
        ("hold:0.5", "takes 0.5 s: a load profile may take 1 s to a week (604,800 s)"),
        ("points:0=1,0=0.5", "takes 0 s: a load profile may take 1 s to a week (604,800 s)"),
        ("spikes:every=2,width=1,times=2000", "has 6,000 stages, and may have 2,000: give fewer of them"),
    ],
)  # fmt: skip
def test_what_is_no_profile(text: str, said: str) -> None:
    with pytest.raises(ValueError) as caught:
        parse(text, 10)
    assert str(caught.value) == said
