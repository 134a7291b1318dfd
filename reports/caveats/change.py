"""Whether the latency of a run's seconds changed for good: a slope, or a step at some second."""

from dataclasses import dataclass
from math import exp, expm1, log

import numpy as np

from reports.summary.slices import Floats, Trend, trend_of

LEAST_POINTS, MOST_POINTS = 10, 60
"""With fewer, nothing can be told from noise; more are joined, since the limits are known up to so many."""
LEAST_SIDE = 3
"""Points on each side of a step: one or two are an outlier."""
LEAST_CHANGE = log(1.10)
"""A tenth, up or down: less is no reason to measure again, however sure it is."""
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
    def joined(self) -> "LatencySeries":
        """The same in at most MOST_POINTS, each the mean of as many neighbours."""
        width = -(-len(self.logs) // MOST_POINTS)
        if width <= 1:
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
    """The slope or the step, whichever leaves less unexplained, that neither noise nor less than a tenth is.

    Both statistics are differences in their standard errors were all points independent; their limits allow
    for neighbours that are alike. Source of the limits by simulation: D. W. K. Andrews, Tests for parameter
    instability and structural change with unknown change point, Econometrica 61 (1993).
    """
    series = series.joined
    count = len(series.logs)
    if count < LEAST_POINTS:
        return None
    found = []
    trend = trend_of(series.at_s, series.logs)
    slope_t = abs(trend.slope) / max(trend.error, _least_error(series.at_s))
    if slope_t > np.interp(count, POINTS, SLOPE_LIMITS):
        found.append((slope_t, _sloped(series, trend)))
    step_t, first = steepest_step(series.logs)
    if step_t > np.interp(count, POINTS, STEP_LIMITS):
        found.append((step_t, _stepped(series, first)))
    known = [(t, one) for t, one in found if abs(one.size) >= LEAST_CHANGE]
    return max(known, key=lambda one: one[0])[1] if known else None


def steepest_step(logs: Floats) -> tuple[float, int]:
    """The greatest difference of the means before and from a point on, in standard errors; and that point."""
    count = len(logs)
    firsts = np.arange(LEAST_SIDE, count - LEAST_SIDE + 1)
    around = logs - logs.mean()
    sums = np.cumsum(around)[firsts - 1]
    # The mean of all is 0, so that the sums on both sides are opposite.
    explained = sums**2 * (1 / firsts + 1 / (count - firsts))
    left = np.maximum(around @ around - explained, (count - 2) * RESOLUTION**2)
    statistics = np.sqrt(explained * (count - 2) / left)
    best = int(np.argmax(statistics))
    return float(statistics[best]), int(firsts[best])


def _sloped(series: LatencySeries, trend: Trend) -> LatencyChange:
    first_s, last_s = float(series.at_s[0]), float(series.at_s[-1])
    middle, centre_s = float(series.logs.mean()), float(series.at_s.mean())
    before, after = (middle + trend.slope * (at_s - centre_s) for at_s in (first_s, last_s))
    return LatencyChange(exp(before), exp(after), first_s, last_s)


def _stepped(series: LatencySeries, first: int) -> LatencyChange:
    before, after = (float(side.mean()) for side in (series.logs[:first], series.logs[first:]))
    at_s = float(series.at_s[first])
    return LatencyChange(exp(before), exp(after), at_s, at_s)


def _least_error(at_s: Floats) -> float:
    """The standard error of a slope whose points are off by no more than RESOLUTION."""
    times = at_s - at_s.mean()
    return RESOLUTION / float(np.sqrt(times @ times))
