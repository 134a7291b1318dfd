"""Traces by chance, the same for the same seed: Poisson, Markov-modulated Poisson, and a day's course."""

import itertools
import math

import numpy as np
from numpy.typing import NDArray

from swarm.traces.trace import ArrivalTrace
from users.load.mix import ClassSequence, parse_batches
from users.load.replay import MOST_ROWS

Times = NDArray[np.float64]
"""Seconds from the beginning, rising."""


def poisson(rate: float, seconds: float, seed: int) -> Times:
    """Gaps that are exponential with mean 1/rate.

    Given their number, which is Poisson with mean rate × seconds, the times of a Poisson process are
    independent and uniform. Source: D. R. Cox and P. A. W. Lewis, The statistical analysis of series of
    events (1966).
    """
    generator = np.random.default_rng(seed)
    return _within(generator, rate, 0.0, seconds)


def mmpp(low: float, high: float, low_s: float, high_s: float, seconds: float, seed: int) -> Times:
    """A Markov-modulated Poisson process of two states, from the low one on: bursts.

    It stays in each for an exponential time of mean `low_s` or `high_s`, in which requests come as a Poisson
    process of rate `low` or `high`. Raises ValueError where it changes too often. Source: W. Fischer and
    K. Meier-Hellstern, The Markov-modulated Poisson process (MMPP) cookbook, Performance Evaluation 18
    (1993).
    """
    if seconds / (low_s + high_s) > MOST_ROWS:
        raise ValueError("the states change too often; give them longer times")
    generator = np.random.default_rng(seed)
    parts, at_s = [], 0.0
    for rate, mean_s in itertools.cycle(((low, low_s), (high, high_s))):
        end_s = min(seconds, at_s + generator.exponential(mean_s))
        parts.append(_within(generator, rate, at_s, end_s))
        at_s = end_s
        if at_s >= seconds:
            return np.concatenate(parts)
    raise AssertionError


def diurnal(rate: float, swing: float, seconds: float, seed: int) -> Times:
    """A day that lasts `seconds`: a Poisson process whose rate is a sine about `rate`, lowest at both ends.

    `swing` from 0 to 1 is how far it goes to either side. Of a Poisson process of the highest rate each
    request is kept with the share that its moment's rate has of that. Source: P. A. W. Lewis and G. S.
    Shedler, Simulation of nonhomogeneous Poisson processes by thinning, Naval Research Logistics Quarterly
    26 (1979).
    """
    generator = np.random.default_rng(seed)
    times_s = _within(generator, rate * (1 + swing), 0.0, seconds)
    course = 1 - swing * np.cos(2 * np.pi * times_s / seconds)
    return times_s[generator.random(len(times_s)) * (1 + swing) < course]


def _within(generator: np.random.Generator, rate: float, begin_s: float, end_s: float) -> Times:
    """The times of a Poisson process in a span. Raises ValueError where they would be too many."""
    expected = rate * (end_s - begin_s)
    if expected + 6 * math.sqrt(expected) > MOST_ROWS:
        raise ValueError(
            f"about {expected:,.0f} requests would come, and a trace has at most {MOST_ROWS:,}; give a lower"
            " rate or fewer seconds"
        )
    return np.sort(generator.uniform(begin_s, end_s, generator.poisson(expected)))


def with_batches(times_s: Times, batch_mix: str, seed: int) -> ArrivalTrace:
    """Requests at these times, their items in the shares of a mix such as `1:0.7,4:0.3`, or one each.

    Raises ValueError where the mix cannot be read, where no request came, or too many.
    """
    if not len(times_s):
        raise ValueError("no request came in this time; give a higher rate or more seconds")
    if len(times_s) > MOST_ROWS:
        raise ValueError(f"{len(times_s):,} requests came, and a trace has at most {MOST_ROWS:,}")
    shares = parse_batches(batch_mix) if batch_mix else {1: 1.0}
    classes = ClassSequence([*shares.values()], str(seed))
    batches = [*shares]
    items = np.array([batches[classes(number)] for number in range(len(times_s))])
    return ArrivalTrace(times_s, items)


def dispersion(times_s: Times, seconds: float) -> float | None:
    """The index of dispersion of counts of whole seconds, their variance over their mean: 1 for Poisson.

    None of fewer than two seconds. Source: R. Gusella, Characterizing the variability of arrival processes
    with indexes of dispersion, IEEE Journal on Selected Areas in Communications 9 (1991).
    """
    counts = per_second(times_s, seconds)[: int(seconds)]
    return float(counts.var(ddof=1) / counts.mean()) if len(counts) > 1 and counts.any() else None


def per_second(times_s: Times, seconds: float) -> NDArray[np.int64]:
    """How many came in each second, the last of which may not be whole."""
    return np.bincount(times_s.astype(np.int64), minlength=math.ceil(seconds))
