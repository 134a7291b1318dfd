"""Whether a series changed: what a slope and a step are, by what they are compared, and what decides."""

from math import log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reports.caveats.change import (
    LatencyChange,
    LatencySeries,
    change_of,
    critical_values,
    slope_statistic,
    steepest_step,
)
from reports.caveats.drift import changed, series, told
from reports.summary.slices import Slice

VALUES = st.lists(st.integers(-50, 50), min_size=6, max_size=40).map(np.array)
QUIET = np.random.default_rng(5).normal(scale=0.004, size=200)


def spaced(logs: object, begin_s: float = 0.0, width_s: float = 1.0) -> LatencySeries:
    values = np.asarray(logs, dtype=float)
    return LatencySeries(begin_s + width_s * np.arange(len(values)), values)


def test_a_change_is_between_two_latencies_and_a_step_at_one_moment() -> None:
    slope, step = LatencyChange(20.0, 16.0, 2.0, 12.0), LatencyChange(20.0, 40.0, 7.0, 7.0)
    assert (slope.is_step, step.is_step) == (False, True)
    assert (slope.percent, step.percent) == (pytest.approx(-20), pytest.approx(100))
    assert (slope.size, slope.per_s) == (pytest.approx(log(0.8)), pytest.approx(log(0.8) / 10))


@pytest.mark.parametrize(
    ("count", "slope", "step"),
    [(10, 7.8, 7.7), (12, 8.0, 8.1), (15, 8.3, 8.7), (20, 8.5, 9.5), (25, 8.7, 9.95), (50, 8.7, 11.1)],
)
def test_what_is_hardly_ever_noise(count: int, slope: float, step: float) -> None:
    assert critical_values(count) == pytest.approx((slope, step))


@pytest.mark.parametrize(("count", "width"), [(1, 1), (60, 1), (61, 2), (120, 2), (121, 3)])
def test_neighbours_are_joined_to_at_most_sixty_points(count: int, width: int) -> None:
    found = spaced(np.arange(count) ** 2.0, 5.0, 2.0)
    starts = range(0, count, width)
    means = [np.mean(np.arange(count)[first : first + width] ** 2.0) for first in starts]
    assert found.width == width
    assert list(found.joined.at_s) == [5.0 + 2.0 * first for first in starts]
    assert list(found.joined.logs) == pytest.approx(means)


@settings(max_examples=60, deadline=None)
@given(VALUES)
def test_the_steepest_step_is_the_greatest_difference_in_its_standard_errors(logs: np.ndarray) -> None:
    """By two means and the deviations from both, at each place with three points on either side."""

    def statistic(first: int) -> float:
        before, after = logs[:first], logs[first:]
        around = np.concatenate([before - before.mean(), after - after.mean()])
        variance = max(around @ around / (len(logs) - 2), 0.001**2)
        return abs(before.mean() - after.mean()) / np.sqrt(variance * (1 / len(before) + 1 / len(after)))

    found, first = steepest_step(logs, range(len(logs)))
    assert 3 <= first <= len(logs) - 3
    most = max(map(statistic, range(3, len(logs) - 2)))
    assert (found, statistic(first)) == (pytest.approx(most, rel=1e-6), pytest.approx(most, rel=1e-6))


@settings(max_examples=60, deadline=None)
@given(VALUES, st.floats(0.5, 5))
def test_the_statistic_of_a_slope_is_that_of_the_least_squares(logs: np.ndarray, width_s: float) -> None:
    at_s = width_s * np.arange(len(logs))
    (slope, _), covariance = np.polyfit(at_s, logs, 1, cov=True)
    error = max(np.sqrt(covariance[0, 0]), 0.001 / np.sqrt(np.sum((at_s - at_s.mean()) ** 2)))
    assert slope_statistic(spaced(logs, 0, width_s)) == pytest.approx(abs(slope) / error, rel=1e-5, abs=1e-5)


def stepped(times: float, first: int = 10, count: int = 20) -> LatencySeries:
    return spaced(log(4e7) + log(times) * (np.arange(count) >= first) + QUIET[:count], 3.0)


def sloped(times: float, count: int = 20) -> LatencySeries:
    """So many times the latency from the middle of the first fifth to that of the last."""
    along = (np.arange(count) - (count // 5 - 1) / 2) / (count - count // 5)
    return spaced(log(4e7) + log(times) * along, 3.0, 0.5)


@pytest.mark.parametrize("times", [1.09, 1 / 1.09])
def test_less_than_a_tenth_is_no_change_however_sure(times: float) -> None:
    assert change_of(stepped(times)) is None
    assert change_of(sloped(times)) is None


@pytest.mark.parametrize("times", [1.11, 1 / 1.11, 4.0])
def test_a_tenth_up_or_down_is_one(times: float) -> None:
    step, slope = change_of(stepped(times)), change_of(sloped(times))
    assert step is not None
    assert slope is not None
    assert (step.is_step, step.from_s, step.size) == (True, 13.0, pytest.approx(log(times), abs=0.01))
    assert (slope.from_s, slope.to_s) == (3.0 + 0.5 * 1.5, 3.0 + 0.5 * 17.5)
    assert (slope.before_ns, slope.after_ns) == (pytest.approx(4e7), pytest.approx(4e7 * times))


@pytest.mark.parametrize(("first", "seen"), [(2, False), (3, True), (17, True), (18, False)])
def test_two_points_are_no_side_of_a_step(first: int, seen: bool) -> None:
    found = change_of(stepped(2.0, first))
    assert (found is not None and found.is_step and found.from_s == 3.0 + first) is seen


@pytest.mark.parametrize("first", [100, 101, 102, 103])
def test_a_step_in_a_long_series_is_placed_in_its_second(first: int) -> None:
    found = change_of(stepped(4.0, first, 200))
    assert found is not None
    assert (found.is_step, found.from_s, round(found.percent)) == (True, 3.0 + first, 301)


def slices(logs: object, begin_s: int) -> list[Slice]:
    return [Slice(begin_s + at, float(value)) for at, value in enumerate(np.asarray(logs, dtype=float))]


@pytest.mark.parametrize(("first", "at_s"), [(5, None), (7, None), (8, None), (9, 9.0), (11, 11.0)])
def test_a_step_is_the_measure_phases_if_it_is_behind_its_begin(first: int, at_s: float | None) -> None:
    """Eight seconds of warm-up, and too few of the measure phase to show a step by themselves."""
    logs = stepped(2.0, first, 17).logs
    found = changed(slices(logs[:8], 0), slices(logs[8:], 8))
    assert (found and found.from_s) == at_s


@pytest.mark.parametrize(("percent", "drifts"), [(9, False), (12, True), (-8, False), (-12, True)])
def test_of_a_slope_what_passes_in_the_measure_phase_is_compared(percent: float, drifts: bool) -> None:
    """Eight seconds, of 28 that rise alike: those of the measure phase alone are too few."""
    logs = 17 + np.arange(28) * log(1 + percent / 100) / 7
    found = changed(slices(logs[:20], 100), slices(logs[20:], 120))
    assert (found is not None) is drifts
    assert changed(slices(logs, 100), []) is None


def test_a_series_has_the_begin_of_each_slice() -> None:
    found = series(slices([17.0, 18.0], 40))
    assert (list(found.at_s), list(found.logs)) == ([40.0, 41.0], [17.0, 18.0])


RISE, FALL = LatencyChange(4e7, 5e7, 98.0, 108.0), LatencyChange(5e7, 4e7, 101.0, 111.0)
UP, DOWN = LatencyChange(4e7, 5e7, 1_104.0, 1_104.0), LatencyChange(5e7, 4e7, 104.0, 104.0)


@pytest.mark.parametrize(
    ("found", "load", "code", "text"),
    [
        (
            RISE,
            "closed",
            "drift",
            "rose from 40.0 to 50.0 ms (+25 %) over 10 s, of which 2 s before the measure phase: 2.23 % a "
            "second",
        ),
        (FALL, "closed", "drift", "fell from 50.0 to 40.0 ms (-20 %) over 10 s: 2.23 % a second"),
        (FALL, "open", "drift", "fell from"),
        (RISE, "open", "rising-latency", "rose from"),
        (UP, "closed", "regime-change", "went from 40.0 to 50.0 ms (+25 %) 1,004 s into the measure phase"),
        (UP, "open", "rising-latency", "went from"),
        (DOWN, "open", "regime-change", "went from 50.0 to 40.0 ms (-20 %) 4 s into the measure phase"),
    ],
)
def test_how_a_change_is_told(found: LatencyChange, load: str, code: str, text: str) -> None:
    doubt = told(found, 100, load)
    assert doubt.code == code
    assert doubt.text.startswith(f"mean latency {text}")
    assert len(text) < 10 or doubt.text == f"mean latency {text}"
