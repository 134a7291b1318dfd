"""When a warm-up ends: what is left of it after the start-up has stopped changing."""

from collections.abc import Sequence
from math import exp, log, log1p

import numpy as np

from reports.fold.windows import Results
from reports.format import plural
from reports.summary.slices import LEAST_KEPT, Floats, sliced, start_up, trend_of
from swarm.output.run_fold import RunFold

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
AHEAD = 2 / 3
"""Of the longest warm-up allowed: how long the trend is assumed to go on."""
SLACK_NS = 500_000
"""Half a millisecond matters to nobody here, and is a large share of a null model's time."""


def doubt(seconds: Sequence[Results], compute_ns: Sequence[float], cap_s: float) -> str:
    """Why a server cannot be called steady yet in a warm-up of at most `cap_s`, or nothing.

    `compute_ns`: its compute time per execution in each second that had one; empty where it does not say.
    Both are judged: latency has the path and the queue in it, and compute time less noise.
    """
    ahead_s = AHEAD * cap_s
    slices = sliced([(at, [second.histogram("latency")]) for at, second in enumerate(seconds)])
    at_s = np.array([float(one.at_s) for one in slices])
    if said := unsteady(at_s, np.array([one.log_ns for one in slices]), ahead_s):
        return f"latency {said}"
    times = np.maximum(np.array(compute_ns), 1.0)
    said = unsteady(np.arange(float(len(times))), np.log(times), ahead_s) if len(times) else ""
    return f"the server's compute time {said}" if said else ""


def unsteady(at_s: Floats, logs: Floats, ahead_s: float) -> str:
    """Why times still move, given their logarithms and when each slice began; nothing where they are steady.

    Steady: of what follows the start-up the halves are alike, and if its trend, or one steeper by its
    standard error, went on for `ahead_s`, that would change little.
    """
    if len(logs) <= LEAST_KEPT:
        return f"was seen in {plural(len(logs), 'second')}, which are too few"
    first = start_up(logs)
    kept = logs[first:]
    if len(kept) < max(LEAST_KEPT, LEAST_SHARE * len(logs)):
        return f"still moves: {_ms(logs[0])} ms at first, {_ms(logs[-1])} ms at last"
    half = len(kept) // 2
    older, newer = float(kept[:half].mean()), float(kept[-half:].mean())
    if abs(newer - older) > _allowed(ALIKE, older):
        return f"still moves: {_ms(older)} ms, then {_ms(newer)} ms"
    trend = trend_of(at_s[first:], kept)
    steepest = abs(trend.slope) + (trend.error if len(kept) < ENOUGH_KEPT else 0.0)
    if steepest * ahead_s > _allowed(MOST_CHANGE, newer):
        return (
            f"still moves by {100 * trend.slope:+.2g} % a second, with an error of {100 * trend.error:.2g} %"
        )
    return ""


class Steadiness:
    """Ends a warm-up: once the server is steady, or after `cap_s`, and then with a doubt."""

    def __init__(self, cap_s: float) -> None:
        self._cap_s = cap_s
        self._judged = -1
        self.doubt = "not judged"

    def over(self, fold: RunFold, elapsed_s: float) -> bool:
        """Whether the warm-up may end; judged anew with each complete second."""
        if fold.complete != self._judged:
            self._judged = fold.complete
            self.doubt = doubt(fold.latest, fold.compute_ns, self._cap_s)
        if self.doubt and elapsed_s >= self._cap_s:
            self.doubt = f"not steady after {self._cap_s:g} s of warm-up: {self.doubt}"
            return True
        return not self.doubt


def _allowed(share: float, log_ns: float) -> float:
    """The difference of logarithms that a share of a time comes to, or the slack where that is more."""
    return log1p(max(share, SLACK_NS / exp(log_ns)))


def _ms(log_ns: float) -> str:
    return f"{exp(log_ns - log(1e6)):.3g}"
