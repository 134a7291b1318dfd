"""Seconds of a run joined until each holds an answer: their mean latencies, and where a start-up ends."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import log

import numpy as np
import numpy.typing as npt

from reports.histogram.buckets import Buckets, mean_ns, together

Floats = npt.NDArray[np.float64]
GRAIN = 0.002
"""A standard error that each logarithm has at least: a fifth of a percent is no start-up, however regular."""
LEAST_KEPT = 5
"""Slices after the start-up below which nothing is known of how they vary."""


@dataclass(frozen=True)
class Trend:
    """The change of a series in a second, and its standard error where neighbours are independent."""

    slope: float
    error: float


@dataclass(frozen=True)
class Slice:
    """Seconds in a row: when they begin, and the log of their mean latency in ns."""

    at_s: int
    log_ns: float


def sliced(latencies: Sequence[tuple[int, Iterable[Buckets]]]) -> list[Slice]:
    """The latencies of seconds, or of longer spans, each with its beginning, in order.

    Seconds are joined backwards until there is a success: a server that executes a batch in 1.5 s answers in
    some seconds and not in others, and each batch is then one slice. What is before the first is left out.
    """
    slices: list[Slice] = []
    held: list[Buckets] = []
    for at_s, latency in reversed(latencies):
        held += latency
        if mean := mean_ns(together(held)):
            slices.append(Slice(at_s, log(mean)))
            held = []
    return slices[::-1]


def start_up(logs: Floats) -> int:
    """How many of the first values belong to a start-up: MSER, the cut with the least squared standard error.

    Of n values after the cut that is their squared deviations over n². Source: K. P. White, An effective
    truncation heuristic for bias reduction in simulation output, Simulation 69 (1997).
    """
    kept = np.arange(len(logs), 0, -1.0)
    around = logs - logs.mean() if len(logs) else logs
    sums, squares = (np.cumsum(some[::-1])[::-1] for some in (around, around**2))
    errors = (squares - sums**2 / kept + kept * GRAIN**2) / kept**2
    # The deviation of one value is 0, which says nothing.
    return int(np.argmin(errors[:-1])) if len(logs) > 1 else 0


def trend_of(at_s: Floats, values: Floats) -> Trend:
    """The straight line of the least squares through three values or more."""
    times = at_s - at_s.mean()
    spread = float(times @ times)
    slope = float(times @ values) / spread
    left = values - values.mean() - slope * times
    return Trend(slope, float(np.sqrt(left @ left / (len(values) - 2) / spread)))
