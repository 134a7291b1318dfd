"""Think times: what their text means, and what is drawn."""

from itertools import islice
from statistics import fmean

import pytest

from users.load.think import GIVE, ThinkTime, parse


@pytest.mark.parametrize(
    ("text", "found", "again", "longest_s"),
    [
        ("0", ThinkTime(0.0), "", 0),
        ("exponential:0", ThinkTime(0.0, True), "", 0),
        ("0.50", ThinkTime(0.5), "0.5", 0.5),
        ("constant:600", ThinkTime(600), "600", 600),
        ("exponential:0.02", ThinkTime(0.02, True), "exponential:0.02", 0.2),
    ],
)
def test_what_a_text_means(text: str, found: ThinkTime, again: str, longest_s: float) -> None:
    assert (parse(text), str(found), found.longest_s) == (found, again, pytest.approx(longest_s))


@pytest.mark.parametrize(
    "text", ["", "x", "-1", "nan", "inf", "601", ":1", "uniform:1", "exponential:", "1:2", "٣"]
)
def test_what_is_no_think_time(text: str) -> None:
    with pytest.raises(ValueError) as caught:
        parse(text)
    assert str(caught.value) == GIVE


def test_what_is_drawn_is_seeded_and_has_the_mean() -> None:
    assert list(islice(ThinkTime(0.25).times_ns("a"), 3)) == [250_000_000] * 3
    drawn = list(islice(ThinkTime(0.25, True).times_ns("a"), 10_000))
    assert drawn == list(islice(ThinkTime(0.25, True).times_ns("a"), 10_000))
    assert drawn != list(islice(ThinkTime(0.25, True).times_ns("b"), 10_000))
    # the standard error of a mean of so many is a hundredth of it, and e^-1 of them are above it
    assert fmean(drawn) == pytest.approx(250_000_000, rel=0.04)
    assert sum(ns > 250_000_000 for ns in drawn) == pytest.approx(3_679, abs=200)
