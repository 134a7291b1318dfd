"""Whether the latency of a run's seconds changed for good: a slope, or a step at some second."""

from dataclasses import dataclass
from math import exp, expm1, log

import numpy as np

from reports.summary.slices import Floats, trend_of

LEAST_POINTS, MOST_POINTS = 10, 60
"""With fewer, nothing can be told from noise; more are joined, since the limits are known up to so many."""
LEAST_SIDE = 3
"""Points on each side of a step: one or two are an outlier."""
LEAST_CHANGE = log(1.10)
"""A tenth, up or down: less is no reason to measure again, however sure it is."""
ENDS = 5
"""A slope is told by the means of the first and the last of so many parts."""
RESOLUTION = 0.001
"""A point is never known better than a bucket of the histograms is wide."""
POINTS = (10, 15, 20, 30, 40, 60)
SLOPE_LIMITS = (7.8, 8.3, 8.5, 8.9, 8.7, 8.7)
STEP_LIMITS = (7.7, 8.7, 9.5, 10.4, 10.9, 11.3)
"""What each statistic exceeds in 2.5 % of series of so many points without a change, whose neighbours are
correlated by 0.85: simulated, since a table for independent points would see changes in most of them.
"""


@dataclass(frozen=True)
class LatencySeries:
    """The log mean latency of slices in order: when each begins, in seconds, and its value in ns."""

    at_s: Floats
    logs: Floats

    @property
    def width(self) -> int:
        """How many neighbours are joined to one of at most MOST_POINTS."""
        return max(1, -(-len(self.logs) // MOST_POINTS))

    @property
    def joined(self) -> "LatencySeries":
        """The same in at most MOST_POINTS, each the mean of as many neighbours."""
        width = self.width
        if width == 1:
            return self
        starts = np.arange(0, len(self.logs), width)
        counts = np.diff([*starts, len(self.logs)])
        return LatencySeries(self.at_s[starts], np.add.reduceat(self.logs, starts) / counts)


@dataclass(frozen=True)
class LatencyChange:
    """From one latency to another, in ns: a slope over some seconds, or a step where they are one moment."""

    before_ns: float
    after_ns: float
    from_s: float
    to_s: float

    @property
    def is_step(self) -> bool:
        """Whether it happened at once."""
        return self.from_s == self.to_s

    @property
    def size(self) -> float:
        """The difference of the logarithms."""
        return log(self.after_ns / self.before_ns)

    @property
    def per_s(self) -> float:
        """Of a slope: the change of the logarithm in a second."""
        return self.size / (self.to_s - self.from_s)

    @property
    def percent(self) -> float:
        """All of it, in percent of what was before."""
        return 100 * expm1(self.size)


def change_of(series: LatencySeries) -> LatencyChange | None:
    """The slope or the step, whichever leaves less unexplained, that is neither noise nor below a tenth."""
    points = series.joined
    if len(points.logs) < LEAST_POINTS:
        return None
    step_t, first = steepest_step(points.logs, range(len(points.logs)))
    slope_t = slope_statistic(points)
    slope_limit, step_limit = critical_values(len(points.logs))
    found = []
    if slope_t > slope_limit:
        found.append((slope_t, _sloped(points)))
    if step_t > step_limit:
        found.append((step_t, _stepped(series, first)))
    known = [(t, one) for t, one in found if abs(one.size) >= LEAST_CHANGE]
    return max(known, key=lambda one: one[0])[1] if known else None


def critical_values(count: int) -> tuple[float, float]:
    """Of the statistics of a slope and a step in so many points: what is beyond is hardly ever noise.

    Both are differences in their standard errors were all points independent; their limits allow for
    neighbours that are alike. Source of the limits by simulation: D. W. K. Andrews, Tests for parameter
    instability and structural change with unknown change point, Econometrica 61 (1993).
    """
    return float(np.interp(count, POINTS, SLOPE_LIMITS)), float(np.interp(count, POINTS, STEP_LIMITS))


def slope_statistic(series: LatencySeries) -> float:
    """The slope of three points or more in its standard errors, without its sign."""
    trend = trend_of(series.at_s, series.logs)
    return abs(trend.slope) / max(trend.error, _least_error(series.at_s))


def steepest_step(logs: Floats, among: range) -> tuple[float, int]:
    """The greatest difference of the means before and from one of some points, in standard errors; and it."""
    count = len(logs)
    firsts = np.arange(max(LEAST_SIDE, among.start), min(count - LEAST_SIDE + 1, among.stop))
    around = logs - logs.mean()
    sums = np.cumsum(around)[firsts - 1]
    # The mean of all is 0, so that the sums on both sides are opposite.
    explained = sums**2 * (1 / firsts + 1 / (count - firsts))
    left = np.maximum(around @ around - explained, (count - 2) * RESOLUTION**2)
    statistics = np.sqrt(explained * (count - 2) / left)
    best = int(np.argmax(statistics))
    return float(statistics[best]), int(firsts[best])


def _sloped(points: LatencySeries) -> LatencyChange:
    """From the mean of the first fifth to that of the last, each in its middle: the ends of a fitted line
    may lie beyond everything that was seen.
    """
    count = len(points.logs) // ENDS
    before, after = (float(end.mean()) for end in (points.logs[:count], points.logs[-count:]))
    from_s, to_s = (float(end.mean()) for end in (points.at_s[:count], points.at_s[-count:]))
    return LatencyChange(exp(before), exp(after), from_s, to_s)


def _stepped(series: LatencySeries, joined_first: int) -> LatencyChange:
    """As the points before they were joined show it, around the joined one."""
    width = series.width
    _, first = steepest_step(series.logs, range((joined_first - 1) * width, (joined_first + 1) * width + 1))
    before, after = (float(side.mean()) for side in (series.logs[:first], series.logs[first:]))
    at_s = float(series.at_s[first])
    return LatencyChange(exp(before), exp(after), at_s, at_s)


def _least_error(at_s: Floats) -> float:
    """The standard error of a slope whose points are off by no more than RESOLUTION."""
    times = at_s - at_s.mean()
    return RESOLUTION / float(np.sqrt(times @ times))
