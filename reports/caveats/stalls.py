"""Whether a service stalled: times in which requests waited and nobody was answered, far longer than usual.

A closed loop meets each stall once a user, however many arrivals would have met it, so that no percentile
shows it (coordinated omission).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import exp, log

import numpy as np

from reports.caveat import Caveat, caveat
from reports.fold.run_records import RunRecords
from reports.format import digits, ms, plural
from reports.histogram.buckets import Buckets, middles_ns, percentiles_ns
from reports.histogram.percentiles import Distribution

LEAST_NS = 100_000_000
"""A shorter one is a slow answer."""
TIMES = 3.0
"""Of the usual longest time without an answer in a second, and of the median latency: a batch that takes 2 s
leaves everybody without an answer for as long, each time.
"""
LEAST_SECONDS = 8
"""With an answer: with fewer, nobody knows what is usual."""
CHANCE = 0.001
"""That a run without stalls has one."""
LOWER, MIDDLE = 0.10, 0.45
"""Quantiles that tell what is usual, so that every other second may have a stall."""
LEAST_SHARE = 0.01
"""Of the time: of arrivals at any moment 99 in 100 meet no shorter ones."""
LONE_NS = 1_000_000_000
"""One alone, if it is no longer, is a hiccup."""
MORE_THAN_CHANCE = 10.0
"""Times the share of the time in which slow answers that are independent would leave nobody answered."""
REGULAR = 0.1
"""Of the middle interval: the quartiles of regular ones are as near to each other."""
NS_PER_S = 1e9


@dataclass(frozen=True)
class Stalls:
    """When stalls began, and how long they were, in ns; the time that they are of."""

    begins_ns: Sequence[int]
    lengths_ns: Sequence[int]
    whole_ns: float

    @property
    def share(self) -> float:
        """Of the time: so many arrivals, at moments that do not depend on answers, would meet one."""
        return sum(self.lengths_ns) / self.whole_ns

    @property
    def rhythm(self) -> str:
        """How regularly they come: every 7.0 s; empty of fewer than three."""
        gaps = np.diff(np.array(self.begins_ns)) / NS_PER_S
        if len(gaps) < 2:
            return ""
        low, middle, high = np.quantile(gaps, [0.25, 0.5, 0.75])
        if high - low <= REGULAR * middle:
            return f", every {digits(float(middle))} s"
        return f", at irregular intervals of {digits(float(gaps.min()))} to {digits(float(gaps.max()))} s"


def stall_caveats(run: RunRecords, latency: Distribution, whole_ns: float | None) -> Iterator[Caveat]:
    """At most one: with how often, how long, how regularly, and what arrivals would have met."""
    lags_ns = {at: second.shown.loop_lag_ns or 0.0 for at, second in run.seconds.items()}
    told = [
        (from_ns, 0 if _is_clients(lags_ns, from_ns, length_ns) else length_ns, least_ns)
        for from_ns, length_ns, least_ns in run.silences.of(len(run.workers))
    ]
    is_open = run.planned["load"] == "open"
    found = find_stalls(told, run.windows.histogram("service_time"), whole_ns or 0.0, is_open)
    if found is None:
        return
    times, middle = plural(len(found.lengths_ns), "time"), ms(float(np.median(found.lengths_ns)))
    met = "met" if is_open else "would have met"
    yield caveat(
        "stalls",
        f"{times} nobody was answered for {middle} ms{found.rhythm}; {digits(100 * found.share)} % of "
        f"arrivals {met} that; the slowest answer took {ms(latency.max_ns)} ms",
    )


def find_stalls(
    silences: Sequence[tuple[int, int, int]], answers: Buckets, whole_ns: float, is_open: bool = False
) -> Stalls | None:
    """The silences of all workers that are no longer usual, if they are a part of the time that matters.

    Each is when it began, how long it was, and how long the shortest of a worker in that second was. Without
    stalls, the longest of many times between answers in each second follow an extreme-value law: the two
    parameters of Gumbel's are told by two low quantiles, which stalls do not move. Source: E. J. Gumbel,
    Statistics of Extremes (1958).

    And they must be far more of the time than if slow answers came independently of each other: then all that
    are under way are slow ones in the share of their time to the power of how many that are. So of one user
    or two nothing is said: a slow answer and a stall look alike. Under open-loop load, by chance, none of the
    requests comes meanwhile that are answered fast.
    """
    (median_ns,) = percentiles_ns(answers, [50.0])
    if len(silences) < LEAST_SECONDS or median_ns is None or whole_ns <= 0:
        return None
    low, middle = np.quantile([float(least_ns) for *_, least_ns in silences], [LOWER, MIDDLE])
    scale = (middle - low) / (log(-log(LOWER)) - log(-log(MIDDLE)))
    chance_ns = middle + scale * (log(len(silences) / CHANCE) + log(-log(MIDDLE)))
    bound_ns = max(LEAST_NS, chance_ns, TIMES * middle, TIMES * median_ns)
    beyond = [(from_ns, length_ns) for from_ns, length_ns, _ in silences if length_ns > bound_ns]
    if not beyond or (len(beyond) == 1 and beyond[0][1] < LONE_NS):
        return None
    found = Stalls([from_ns for from_ns, _ in beyond], [length_ns for _, length_ns in beyond], whole_ns)
    took_ns = middles_ns(answers.indices)
    time_ns = took_ns * answers.counts
    slow = float(time_ns[took_ns >= bound_ns / 2].sum() / time_ns.sum())
    by_chance = slow ** float(time_ns.sum() / whole_ns)
    if is_open:
        fast = float(answers.counts[took_ns < bound_ns / 2].sum())
        by_chance = exp(-fast * float(np.median(found.lengths_ns)) / whole_ns)
    return found if found.share >= max(LEAST_SHARE, MORE_THAN_CHANCE * by_chance) else None


def _is_clients(lags_ns: dict[int, float], from_ns: int, length_ns: int) -> bool:
    """Whether a worker's own event loop stood still for most of it."""
    first, last = (round(at_ns / NS_PER_S - 0.5) for at_ns in (from_ns, from_ns + length_ns))
    return max(lags_ns.get(at, 0.0) for at in range(first, last + 2)) >= length_ns / 2
