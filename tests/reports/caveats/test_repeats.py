"""What is said of repeats that differ, and how seldom it is said of those that do not."""

from dataclasses import replace
from math import log
from types import MappingProxyType

import numpy as np
import pytest

from reports.caveats.repeats import RepeatLevel, compare_repeats, differ
from reports.fold.windows import Results
from reports.histogram.codec import decoded, encoded_ns
from reports.summary.blocks import RunBlocks
from reports.summary.summary import Summary, codes
from tests.reports.limit_runs import HEALTHY

MS = 1_000_000
NOISE = np.random.default_rng(7).normal(size=(2_000, 3, 12))


def blocks(ms: float, seconds: int = 10) -> RunBlocks:
    """Seconds whose mean latency is now above and now below this by 4 %."""
    made = RunBlocks()
    for at in range(seconds):
        found = Results(ok=20, histograms={})
        found.histograms["latency"] = decoded(encoded_ns([round(ms * (0.96, 1.04)[at % 2] * MS)] * 20)[0])
        made.merge(at, found)
    return made


def compared(*each_ms: float, seconds: int = 10, **changes: object) -> list[str]:
    """The codes of each repeat of a cell by its mean latency."""
    runs = [replace(HEALTHY, repeat=number, **changes) for number, _ in enumerate(each_ms, 1)]
    made = {(run.cell, run.repeat): blocks(ms, seconds) for run, ms in zip(runs, each_ms, strict=True)}
    return [codes(run) for run in compare_repeats(runs, MappingProxyType(made))]


WARMING, DIFFER = "warming-up", "repeats-differ"


@pytest.mark.parametrize(
    ("each_ms", "said"),
    [
        ((41.5, 11.1, 11.0), [WARMING, "", ""]),
        ((41.5, 11.1, 11.0, 11.2, 11.3), [WARMING, "", "", "", ""]),
        # a quarter
        ((12.4, 10, 10), ["", "", ""]),
        ((12.7, 10, 10), [WARMING, "", ""]),
        # the first was faster, or another one is the odd one
        ((10, 20, 20), [DIFFER] * 3),
        ((10, 20, 10), [DIFFER] * 3),
        # the others do not agree, or differ by more than the first does from them
        ((40, 20, 10), [DIFFER] * 3),
        ((30, 20, 17), [WARMING, "", ""]),
        # nobody can tell which of two is right
        ((84, 255), [DIFFER] * 2),
        ((255, 84), [DIFFER] * 2),
        ((10,), [""]),
    ],
)
def test_repeats_that_differ(each_ms: tuple[float, ...], said: list[str]) -> None:
    assert compared(*each_ms) == said


def test_what_is_not_compared() -> None:
    assert compared(41.5, 11, 11, seconds=5) == [WARMING, "", ""]
    assert compared(41.5, 11, 11, seconds=4) == ["", "", ""], "too few seconds to know how they vary"
    for changes in ({"load": "open"}, {"status": "aborted"}, {"profile": "ramp"}):
        assert compared(41.5, 11, 11, **changes) == ["", "", ""]


def test_a_repeat_that_is_invalidated_already_is_left_out() -> None:
    runs = [replace(HEALTHY, repeat=number) for number in (1, 2, 3)]
    made = {(run.cell, run.repeat): blocks(ms) for run, ms in zip(runs, (41.5, 11, 11), strict=True)}
    (first, *_) = compare_repeats(runs, MappingProxyType(made))
    assert first.tainted
    assert [codes(run) for run in compare_repeats([first, *runs[1:]], MappingProxyType(made))] == [
        WARMING,
        "",
        "",
    ]


def levels(noise: np.ndarray, *medians_ms: float) -> list[RepeatLevel]:
    run: Summary = HEALTHY
    return [RepeatLevel(run, log(ms) + each) for each, ms in zip(noise, medians_ms, strict=True)]


@pytest.mark.parametrize(("correlation", "spread"), [(0.0, 0.4), (0.5, 0.2), (0.85, 0.1), (0.85, 0.4)])
def test_alike_repeats_are_hardly_ever_called_different(correlation: float, spread: float) -> None:
    """Of repeats whose seconds vary by so much, in fewer than 1 % of 2,000 studies."""
    series = NOISE.copy()
    for at in range(1, series.shape[-1]):
        series[..., at] = correlation * series[..., at - 1] + np.sqrt(1 - correlation**2) * series[..., at]
    assert sum(differ(levels(spread * each, 10, 10, 10)) for each in series) < 20


def test_repeats_that_differ_by_twice_are_found_through_noise() -> None:
    found = [differ(levels(0.1 * each, 10, 20, 10)) for each in NOISE]
    assert sum(found) > 0.99 * len(found)
