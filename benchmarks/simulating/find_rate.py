"""The search for the highest rate: how often its interval holds it, and a confirmed rate meets the bound.

Beside it what a bisection comes to that believes each single run, with its bracket as an interval. Then runs
that miss the bound for another reason than the rate, and percentiles that hardly depend on it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from math import inf, sqrt

import numpy as np
from scipy.special import ndtr

from benchmarks.bounds import Bounds
from benchmarks.simulating.queues import Station, arriving, true_percentiles_s
from benchmarks.simulating.truths import Random
from reports.stats.highest_rate import CONFIRMATIONS, RateTried, confirmations, highest_rate, told
from swarm.plan.rate_search import LONGER, MOST_STEPS, SEARCHING_STEPS, START_PER_S, next_step, rounded

SEARCHES, HALVINGS = 60, 8
WARM_UP_S = 3.0
NEAR = 1.02
"""A confirmed rate may be so much higher than the highest: the true one is known no better."""
COVERED, TRULY_MET, CONFIRMED = 90.0, 90.0, 65.0
BRACKET = 1.05
"""Where a bisection that believes each run ends."""
Judge = Callable[[float, int], bool]
"""Whether a run at a rate, so many times as long as one of the search, meets the bound."""


@dataclass(frozen=True)
class Server:
    """A station, the bound of its latency, and rates below and above the highest that meets it."""

    name: str
    station: Station
    limit_s: float
    between: tuple[float, float]
    percent: float = 99.0
    requests: int = 1_000

    def highest_per_s(self) -> float:
        """The true one, from long runs."""
        low, high = self.between
        for _ in range(HALVINGS):
            middle = sqrt(low * high)
            (found_s,) = true_percentiles_s(self.station, middle, (self.percent,))
            low, high = (middle, high) if found_s <= self.limit_s else (low, middle)
        return sqrt(low * high)

    def judge(self, random: Random) -> Judge:
        """One that sends requests by chance."""

        def met(per_s: float, times: int) -> bool:
            end_s = WARM_UP_S + times * self.requests / per_s
            found = arriving(per_s, self.station, end_s, random).started(WARM_UP_S, end_s).latencies_s
            return bool(np.percentile(found, self.percent) <= self.limit_s)

        return met


SERVERS = (
    Server("a queue", Station(0.020, spread=0.5), 0.15, (22.0, 27.0)),
    Server("a queue with few slow requests", Station(0.010, spread=1.0), 0.2, (21.0, 26.0)),
    Server("batches of 16, p99 leaps at a rate", Station(0.050, 0.001, 16, spread=0.1), 0.15, (180.0, 196.0)),
    Server("a queue, p95 of 200", Station(0.020, spread=0.5), 0.10, (22.0, 27.0), 95.0, 200),
)


@dataclass(frozen=True)
class Found:
    """What one search came to, its rates as shares of the true highest."""

    confirmed: bool
    rate: float
    within: bool
    reach: float
    runs: int


def search(judge: Judge, start_per_s: float, true_per_s: float) -> Found:
    """As the suite searches."""
    tried: list[RateTried] = []
    while step := next_step(tried, start_per_s):
        met = judge(step.rate, LONGER if step.confirming else 1)
        tried.append(RateTried(step.rate, met, step.confirming))
    known = told(tried)
    confirmed = confirmations(known) == CONFIRMATIONS
    low, high = highest_rate(known).interval
    low = min(low, tried[-1].rate) if confirmed else low
    share = tried[-1].rate / true_per_s
    reach = sqrt(high / low) - 1 if low else inf
    return Found(confirmed, share, low <= true_per_s <= high, reach, len(tried))


def bisection(judge: Judge, start_per_s: float, true_per_s: float) -> Found:
    """One that believes each run."""
    met, missed, rate = 0.0, inf, start_per_s
    for made in count(1):
        met, missed = (max(met, rate), missed) if judge(rate, 1) else (met, min(missed, rate))
        if missed <= BRACKET * met or made == SEARCHING_STEPS:
            break
        rate = rounded(2 * met if missed == inf else sqrt(met * missed) if met else missed / 2)
    within = met <= true_per_s <= missed
    return Found(True, met / true_per_s, within, sqrt(missed / met) - 1 if met else inf, made)


def percent(values: Sequence[bool]) -> float:
    """How many of them hold."""
    return 100 * float(np.mean(values)) if values else 0.0


def of_server(bounds: Bounds, server: Server) -> None:
    """What both kinds of search find of one."""
    true_per_s = server.highest_per_s()
    kinds: dict[str, list[Found]] = {"search": [], "bisection": []}
    for seed in range(SEARCHES):
        for kind, how in (("search", search), ("bisection", bisection)):
            random = np.random.default_rng(seed)
            start_per_s = START_PER_S * float(np.exp(random.uniform(-0.35, 0.35)))
            kinds[kind].append(how(server.judge(random), start_per_s, true_per_s))
    found, before = kinds.values()
    answers = [one for one in found if one.confirmed]
    print(f"\n{server.name}: p{server.percent:g} ≤ {1_000 * server.limit_s:g} ms to {true_per_s:.1f}/s")
    bounds.at_least("its 95 % interval holds it", percent([one.within for one in found]), COVERED, "%")
    bounds.beside("  the bracket of a bisection does", percent([one.within for one in before]), "%")
    bounds.at_least("confirmed rates that meet the bound", met_by(answers), TRULY_MET, "%")
    bounds.beside("  answers of a bisection that do", met_by(before), "%")
    bounds.at_least("searches that confirm a rate", percent([one.confirmed for one in found]), CONFIRMED, "%")
    bounds.beside("  the interval reaches, median", 100 * float(np.median([one.reach for one in found])), "%")
    bounds.beside(
        "  the rate is lower by, mean", 100 * float(np.mean([1 - one.rate for one in answers])), "%"
    )
    bounds.at_most("runs of a search, most", max(one.runs for one in found), MOST_STEPS)
    bounds.beside("  of a bisection, mean", float(np.mean([one.runs for one in before])))


def met_by(answers: Sequence[Found]) -> float:
    """How many of the rates are no higher than the highest, within what is known of it."""
    return percent([one.rate <= NEAR for one in answers])


@dataclass(frozen=True)
class Spoilt:
    """A server whose highest rate is TRUE_PER_S, where runs near it, or any, miss the bound by chance.

    `softness` as in the model of the search; the `cold` first runs miss, and so does the share `stalls` of
    the others, more of longer ones. `covered` is how often the interval has to hold the highest rate, in %.
    """

    name: str
    softness: float
    covered: float
    cold: int = 0
    stalls: float = 0.0

    def judge(self, random: Random) -> Judge:
        """One that has made no run yet."""
        made = count(1)

        def met(per_s: float, times: int) -> bool:
            by_rate = ndtr(sqrt(times) * np.log(TRUE_PER_S / per_s) / self.softness)
            return next(made) > self.cold and bool(random.random() < by_rate * (1 - times * self.stalls))

        return met


TRUE_PER_S = 100.0
SPOILT = (
    Spoilt("the first run is cold", 0.05, COVERED, cold=1),
    Spoilt("the first two runs are cold", 0.05, COVERED, cold=2),
    Spoilt("5 % of the runs stall, twice as many of longer ones", 0.02, COVERED, stalls=0.05),
    Spoilt("10 % do", 0.02, COVERED, stalls=0.10),
    Spoilt("20 % do", 0.02, 50.0, stalls=0.20),
    Spoilt("percentiles that depend little on the rate, softness 0.2", 0.2, COVERED),
    Spoilt("softness 0.5", 0.5, 70.0),
    Spoilt("softness 1", 1.0, 50.0),
)
"""The interval is known to hold the rate less often in the last two, and where a fifth of the runs stall."""
FAR_BELOW = 0.8
"""A confirmed rate lower than that share of the highest is no great help."""


def of_spoilt(bounds: Bounds, server: Spoilt) -> None:
    """What a search finds of one."""
    found = []
    for seed in range(SEARCHES):
        judge = server.judge(np.random.default_rng(seed))
        found.append(search(judge, START_PER_S, TRUE_PER_S))
    answers = [one for one in found if one.confirmed]
    print(f"\n{server.name}: met to {TRUE_PER_S:g}/s")
    held = percent([one.within for one in found])
    bounds.at_least("its 95 % interval holds it", held, server.covered, "%")
    bounds.at_least("confirmed rates that meet the bound", met_by(answers), TRULY_MET, "%")
    bounds.beside("  searches that confirm a rate", percent([one.confirmed for one in found]), "%")
    far_below = percent([one.rate < FAR_BELOW for one in answers])
    bounds.beside(f"  confirmed rates below {FAR_BELOW:g} of it", far_below, "%")
    bounds.beside("  the interval reaches, median", 100 * float(np.median([one.reach for one in found])), "%")


def promises(bounds: Bounds) -> None:
    """Of each server."""
    for server in SERVERS:
        of_server(bounds, server)
    for spoilt in SPOILT:
        of_spoilt(bounds, spoilt)
