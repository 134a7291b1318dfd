"""When a warm-up ends: what is left of it after the start-up has stopped changing."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log, log1p

import numpy as np

from reports.caveats.change import (
    LEAST_POINTS,
    LatencySeries,
    critical_values,
    slope_statistic,
    steepest_step,
)
from reports.fold.windows import Results
from reports.format import plural
from reports.summary.slices import LEAST_KEPT, sliced, start_up, trend_of
from swarm.output.run_fold import FollowedRun

LEAST_SHARE = 1 / 3
"""Of the slices that must be kept: where the start-up takes more, its end is not certain. Of a warm-up that
becomes faster all the time the last few slices are always the least different ones.
"""
ENOUGH_KEPT = 15
"""Slices after which a trend is taken as it is found: to know it better would take too long."""
ALIKE = 0.05
"""How far the halves of what is kept may differ."""
MOST_CHANGE = 0.10
"""By how much latency would change if the trend went on: what a caveat on drift begins at."""
ENOUGH_S = 9
"""Seconds after which noise alone holds up nothing."""
NO_TREND = 2.5
"""Standard errors below which a slope is no sign that anything moves, and is never called one."""
AT_CAP = 0.7
"""Of the limits of a measure phase: at the cap only those few are judged that showed a trend all the time."""
AHEAD = 2 / 3
"""Of the longest warm-up allowed: how long the trend is assumed to go on."""
SLACK_NS = 500_000
"""Half a millisecond matters to nobody here, and is a large share of a null model's time."""


@dataclass(frozen=True)
class Movement:
    """Why a server cannot be called steady yet, and whether that is sure or may be noise."""

    said: str
    moves: bool


def doubt(seconds: Sequence[Results], compute_ns: Sequence[float], cap_s: float) -> Movement | None:
    """Why a warm-up of at most `cap_s` goes on, if it does.

    `compute_ns`: the server's compute time per execution in each second that had one; empty where it does not
    say. Both are judged: latency has the path and the queue in it, and compute time less noise.
    """
    ahead_s = AHEAD * cap_s
    slices = sliced([(at, [second.histogram("latency")]) for at, second in enumerate(seconds)])
    at_s = np.array([float(one.at_s) for one in slices])
    latency = LatencySeries(at_s, np.array([one.log_ns for one in slices]))
    found = [("latency", unsteady(latency, float(len(seconds)), ahead_s))]
    if count := len(compute_ns):
        times = LatencySeries(np.arange(float(count)), np.log(np.maximum(np.array(compute_ns), 1.0)))
        found.append(("the server's compute time", unsteady(times, float(count), ahead_s)))
    doubts = [Movement(f"{what} {one.said}", one.moves) for what, one in found if one]
    return max(doubts, key=lambda one: one.moves, default=None)


def unsteady(series: LatencySeries, end_s: float, ahead_s: float) -> Movement | None:
    """Why times still move, as far as can be told; nothing where they are steady or nothing moves but noise.

    Steady: of what follows the start-up the halves are alike, and if its trend, or one steeper by its
    standard error, went on for `ahead_s`, that would change little. Noise may hide that for long, so a series
    of ENOUGH_S in which no trend shows is over too.
    """
    if len(series.logs) <= LEAST_KEPT:
        return Movement(f"was seen in {plural(len(series.logs), 'second')}, which are too few", False)
    first = start_up(series.logs)
    found = _moving(series, first, ahead_s)
    if not found:
        return None
    late = _late(series, min(first, len(series.logs) // 3))
    if end_s - late.at_s[0] >= ENOUGH_S and slope_statistic(late) < NO_TREND:
        return None
    is_sure = _surely_moves(_late(series, min(first, len(series.logs) // 2)), ahead_s)
    return Movement(found.said, found.moves and is_sure)


def _late(series: LatencySeries, first: int) -> LatencySeries:
    """What begins at `first`, or before that where it would be too short to be tested."""
    first = min(first, max(0, len(series.logs) - LEAST_POINTS))
    return LatencySeries(series.at_s[first:], series.logs[first:])


def _moving(series: LatencySeries, first: int, ahead_s: float) -> Movement | None:
    """What keeps a series, whose start-up ends at `first`, from being steady; None where it is.

    A slope that its own error covers may be noise, and moves nothing.
    """
    logs, kept = series.logs, series.logs[first:]
    if len(kept) < max(LEAST_KEPT, LEAST_SHARE * len(logs)):
        return Movement(f"still moves: {_ms(logs[0])} ms at first, {_ms(logs[-1])} ms at last", True)
    half = len(kept) // 2
    older, newer = float(kept[:half].mean()), float(kept[-half:].mean())
    if abs(newer - older) > _allowed(ALIKE, older):
        return Movement(f"still moves: {_ms(older)} ms, then {_ms(newer)} ms", True)
    trend = trend_of(series.at_s[first:], kept)
    steepest = abs(trend.slope) + (trend.error if len(kept) < ENOUGH_KEPT else 0.0)
    if steepest * ahead_s <= _allowed(MOST_CHANGE, newer):
        return None
    said = f"still moves by {100 * trend.slope:+.2g} % a second, with an error of {100 * trend.error:.2g} %"
    return Movement(said, abs(trend.slope) >= NO_TREND * trend.error)


def _surely_moves(late: LatencySeries, ahead_s: float) -> bool:
    """Whether more than noise, in neighbours that are alike, moves it, and by so much that it matters."""
    late = late.joined
    if len(late.logs) < LEAST_POINTS:
        return False
    slope_limit, step_limit = (AT_CAP * limit for limit in critical_values(len(late.logs)))
    allowed = _allowed(MOST_CHANGE, float(late.logs[-1]))
    slope = abs(trend_of(late.at_s, late.logs).slope)
    if slope_statistic(late) > slope_limit and slope * ahead_s > allowed:
        return True
    step_t, first = steepest_step(late.logs, range(len(late.logs)))
    step = abs(float(late.logs[first:].mean() - late.logs[:first].mean()))
    return step_t > step_limit and step > allowed


class Steadiness:
    """Ends a warm-up: once the server is steady, or after `cap_s`, and with a doubt if it surely moves."""

    def __init__(self, cap_s: float) -> None:
        self._cap_s = cap_s
        self._judged = -1
        self._found: Movement | None = Movement("not judged", False)
        self.doubt = ""

    def over(self, run: FollowedRun | None, elapsed_s: float) -> bool:
        """Whether the warm-up of a run may end; judged anew with each complete second."""
        if run and len(run.complete) != self._judged:
            self._judged = len(run.complete)
            self._found = doubt(run.latest, run.compute_ns, self._cap_s)
        if self._found and self._found.moves and elapsed_s >= self._cap_s:
            self.doubt = f"not steady after {self._cap_s:g} s of warm-up: {self._found.said}"
        return self._found is None or elapsed_s >= self._cap_s


def _allowed(share: float, log_ns: float) -> float:
    """The difference of logarithms that a share of a time comes to, or the slack where that is more."""
    return log1p(max(share, SLACK_NS / exp(log_ns)))


def _ms(log_ns: float) -> str:
    return f"{exp(log_ns - log(1e6)):.3g}"
