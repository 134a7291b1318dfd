"""How often does a threshold stop a run that keeps its bound, and when one that breaks it? Simulated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from math import inf, log, sqrt
from statistics import NormalDist, median

import numpy as np

from benchmarks.bounds import Bounds
from benchmarks.noise import PERCENT, Figures, Noise, seconds_of
from reports.fold.windows import Results
from reports.gates.thresholds import Threshold, parse_gates
from reports.histogram.buckets import Buckets, indices_of
from reports.summary.blocks import BlockSeries
from swarm.output.early_stop import CERTAIN, LOOK_S, chance_of, is_certain, look_at, unlucky

PHASES, BAD_ONES = 1_000, 20
AT_ONCE = 25
PER_SECOND = 200
BOUND_MS, MAY_FAIL = 100.0, 0.01
ALONE, MANY_RUNS = 1, 100
US_PER_MS = 1_000
SOON_S = 10
"""Within so many seconds of a phase what is plainly bad is to be stopped."""
REQUIRE = "[[threshold]]\nrequire = '{}'\nabort_after_s = 0\n"


@dataclass(frozen=True)
class Phase:
    """A measure phase under way, one of so many `runs`: its bound is exceeded `worse` times, or just kept.

    It is kept in its first `good_s` seconds in any case.
    `noise` is of latencies; where `fails`, its `second` is of the odds of failures instead.
    """

    noise: Noise
    worse: float = 1.0
    seconds: int = 300
    runs: int = ALONE
    fails: bool = False
    good_s: int = 0


INDEPENDENT, ALIKE, ROUGH = Noise(second=0.0), Noise(second=0.05), Noise(second=0.15, kept=0.8)
BURSTS, STORMS = Noise(second=0.5), Noise(second=1.0, kept=0.8)
KEPT = {
    "seconds independent": Phase(INDEPENDENT),
    "seconds of 5 %, alike 0.7": Phase(ALIKE),
    "seconds of 15 %, alike 0.8": Phase(ROUGH),
    "  the same, 600 s": Phase(ROUGH, seconds=600),
    "failures in storms, alike 0.8": Phase(STORMS, fails=True),
    "  in storms, 600 s": Phase(STORMS, seconds=600, fails=True),
}
"""Of phases that keep their bound."""


def stops(bounds: Bounds) -> None:
    """False stops of phases that just keep their bounds, then when those are stopped that do not."""
    for name, phase in KEPT.items():
        stopped = [after_s < inf for after_s in _all(phase, PHASES)]
        bounds.at_most(f"{name}: false stops", 100 * sum(stopped) / PHASES, 100 * CERTAIN, "%")
    for worse in (1.2, 1.5, 2.0, 5.0):
        bad = Phase(ALIKE, worse, runs=MANY_RUNS)
        _stopped_after(bounds, f"p{PERCENT} {worse:g} times its bound: after", bad, worse == 5)
    turned = Phase(ALIKE, 5, runs=MANY_RUNS, good_s=30)
    _stopped_after(bounds, "  the same, the first 30 s good: after", turned, plainly=False)
    for worse, noise in ((2.0, BURSTS), (10.0, BURSTS), (100.0, INDEPENDENT)):
        bad = Phase(noise, worse, runs=MANY_RUNS, fails=True)
        _stopped_after(bounds, f"failures {worse:g} times their bound: after", bad, worse == 100)


def _stopped_after(bounds: Bounds, title: str, phase: Phase, plainly: bool) -> None:
    """When half of them are stopped; all of those soon that are `plainly` bad."""
    stopped = _all(phase, BAD_ONES)
    if plainly:
        bounds.at_most(f"{title}, at most", max(stopped), SOON_S, "s")
    elif median(stopped) < inf:
        bounds.beside(title, median(stopped), "s")
    else:
        share = sum(after_s < inf for after_s in stopped) / BAD_ONES
        bounds.beside(f"{title} {phase.seconds} s, stopped", 100 * share, "%")


def _all(phase: Phase, count: int) -> list[float]:
    with ProcessPoolExecutor() as pool:
        return list(pool.map(partial(stopped_after, phase), range(count), chunksize=AT_ONCE))


def stopped_after(phase: Phase, seed: int) -> float:
    """The seconds after which one of those phases is stopped; infinity where it never is."""
    random = np.random.default_rng(seed)
    slow = seconds_of(phase.noise, (phase.seconds,), random)
    slow[phase.good_s :] += log(phase.worse)
    return _failing(phase, slow, random) if phase.fails else _slow(phase, slow, random)


def _slow(phase: Phase, slow: Figures, random: np.random.Generator) -> float:
    noise = phase.noise
    at_bound = NormalDist(0, sqrt(noise.request**2 + noise.second**2)).inv_cdf(PERCENT / 100)
    requests = noise.request * random.standard_normal((phase.seconds, PER_SECOND), np.float32)
    logs = requests + slow[:, np.newaxis] - at_bound
    threshold = _threshold(f"latency_p{PERCENT}_ms <= {BOUND_MS}")
    rest, looks = 1 - PERCENT / 100, _looks(phase)
    last = log(_strict(phase, threshold, looks[-1]) / BOUND_MS)
    above = (logs > last).mean(axis=1).cumsum()
    # Blocks take long to make, and hardly ever is a phase so far beyond its bound.
    beyond = [
        after_s
        for after_s in looks
        if above[after_s - 1] > rest * after_s
        and (logs[:after_s] > log(_strict(phase, threshold, after_s) / BOUND_MS)).mean() > rest
    ]
    blocks = [_block(second) for second in logs] if beyond else []
    return _first(phase, threshold, blocks, beyond)


def _failing(phase: Phase, slow: Figures, random: np.random.Generator) -> float:
    mean = MAY_FAIL * np.exp(slow - phase.noise.second**2 / 2)
    failures = random.binomial(PER_SECOND, np.minimum(1, mean))
    blocks = [Results(ok=PER_SECOND - int(one), failure_kinds=Counter(timeout=int(one))) for one in failures]
    return _first(phase, _threshold(f"failure_ratio <= {MAY_FAIL}"), blocks, _looks(phase))


def _looks(phase: Phase) -> range:
    return range(LOOK_S, phase.seconds + 1, LOOK_S)


def _strict(phase: Phase, threshold: Threshold, after_s: int) -> float:
    """What is exceeded only in bad luck."""
    return unlucky(threshold, after_s, _chance(phase, threshold, after_s) / 2).require.bound


def _chance(phase: Phase, threshold: Threshold, after_s: int) -> float:
    return chance_of(look_at(threshold, after_s), phase.runs)


def _first(phase: Phase, threshold: Threshold, blocks: Sequence[Results], looks: Sequence[int]) -> float:
    for after_s in looks:
        seconds = BlockSeries(blocks[:after_s], np.zeros(after_s, np.int64))
        if is_certain(threshold, seconds, 1, _chance(phase, threshold, after_s)):
            return after_s
    return inf


def _block(logs: Figures) -> Results:
    values_us = (np.exp(logs) * BOUND_MS * US_PER_MS).astype(np.int64)
    counts = np.bincount(indices_of(values_us))
    indices = np.flatnonzero(counts)
    return Results(ok=PER_SECOND, histograms={"latency": Buckets(indices, counts[indices])})


def _threshold(require: str) -> Threshold:
    (found,) = parse_gates(REQUIRE.format(require), "simulated").thresholds
    return found
