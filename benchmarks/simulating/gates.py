"""Gates on percentiles: false passes and false alarms with the true one at its bound, and what passes below.

Simulated runs are judged as a study's are. Where regimes outlast runs, all runs may lie in one of two by
chance: that is added to what is promised.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import sqrt

import numpy as np

from benchmarks.bounds import Bounds
from benchmarks.simulating.truths import (
    BATCHED,
    BIMODAL,
    LOGNORMAL,
    NOISY,
    SWITCHING,
    Law,
    Random,
    Run,
    a_row,
    a_side,
)
from reports.format import NS_PER_MS
from reports.gates.absolute import judge_absolute
from reports.gates.source import Counting, GateSource
from reports.gates.thresholds import Threshold, parse_gates
from reports.gates.verdict import FAIL, INCONCLUSIVE, PASS, verdict_of
from reports.stats.shares import LEVEL

SEED = 1
PER_S = 200.0
STUDIES = {(3, 10): 200, (5, 10): 150, (3, 60): 80, (5, 60): 50}
"""How many are simulated with so many runs of so many seconds."""
SIGMAS = 2
"""Standard errors that chance may add to what is promised, for so few studies."""
PERCENTS = (50, 95, 99)
ROOM = {(3, 10): (1.1, 1.2), (3, 30): (1.1, 1.2, 2.0), (10, 40): (1.0, 1.1, 1.2, 2.0)}
"""Runs and their seconds, and how far the bound is above the true percentile."""
WITH_ROOM, OF_OTHERS = 20, 20
"""Studies of each."""
STALLED = 100.0
CELL = "onnx-http/b1/c1"
FAILED = 0.009
"""A share of requests that times out, just below what p99 leaves."""
BAD = 0.06
"""Of the time: more than p95 leaves."""
EPISODES = (1, 3, 5)
"""Seconds that they last."""
SHORT = {(4, 20): 150, (12, 20): 50}
"""Studies of so many runs and seconds: the fewest seconds in which p95 may pass, and three times as many."""


@dataclass(frozen=True)
class Stalling:
    """A law, and a second of so many in which every request takes STALLED times as long.

    They come in episodes of `length` seconds, which may overlap.
    """

    law: Law
    one_of: float = 100
    length: int = 1

    def draws(self, runs: int, seconds: int, random: Random) -> list[Run]:
        """Several runs of so many seconds."""
        return [self._stalled(run, random) for run in self.law.draws(runs, seconds, random)]

    def _stalled(self, run: Run, random: Random) -> Run:
        begins = 1 - (1 - 1 / self.one_of) ** (1 / self.length)
        begun = random.random(len(run.seconds) + self.length - 1) < begins
        bad = np.convolve(begun, np.ones(self.length), "valid") > 0
        return run.slowed(np.where(bad, STALLED, 1))

    def percentile_ns(self, percent: float) -> float:
        """Just below the bad seconds: as many requests are beyond it as p99 allows."""
        return 10 * self.law.percentile_ns(99) if percent == 99 else self.law.percentile_ns(percent)


TRUTHS: dict[str, Law | Stalling] = {
    "lognormal": replace(LOGNORMAL, per_s=PER_S),
    "bimodal": replace(BIMODAL, per_s=PER_S),
    "seconds alike, runs differ": replace(NOISY, per_s=PER_S),
    "batches of 32": replace(BATCHED, per_s=PER_S),
    "1 second of 100 is bad": Stalling(replace(LOGNORMAL, per_s=PER_S)),
}
REGIMES = replace(SWITCHING, per_s=PER_S)


def promises(bounds: Bounds) -> None:
    """Studies by their truth, the number of their runs and how long these are."""
    random = np.random.default_rng(SEED)
    for (runs, seconds), count in STUDIES.items():
        for name, law in TRUTHS.items():
            found = outcomes(law, runs, seconds, count, random)
            title, most = f"{runs} of {seconds} s, {name}", allowed(count)
            bounds.at_most(f"{title}: false pass", most_frequent(found, PASS), most, "%")
            bounds.at_most("  false alarm", most_frequent(found, FAIL), most, "%")
        found = outcomes(REGIMES, runs, seconds, count, random)
        title, most = f"{runs} of {seconds} s, regimes of 60 s", allowed(count, LEVEL + 0.5**runs)
        bounds.at_most(f"{title}: false pass", most_frequent(found, PASS), most, "%")
        bounds.at_most("  false alarm", most_frequent(found, FAIL), most, "%")
    with_room(bounds, random)
    single_runs(bounds, random)
    failures(bounds, random)
    episodes(bounds, random)


def allowed(count: int, promised: float = LEVEL) -> float:
    """What is promised, in percent, with what chance may add to it in so many studies."""
    return 100 * (promised + SIGMAS * sqrt(promised * (1 - promised) / count))


def with_room(bounds: Bounds, random: Random) -> None:
    """What passes where the true percentile lies below the bound."""
    for (runs, seconds), factors in ROOM.items():
        for times in factors:
            found = outcomes(TRUTHS["seconds alike, runs differ"], runs, seconds, WITH_ROOM, random, times)
            for percent, told in found.items():
                title = f"{runs} of {seconds} s, bound {times:g} times p{percent}: passes"
                bounds.beside(title, share(told, PASS), "%")


def single_runs(bounds: Bounds, random: Random) -> None:
    """They decide nothing, wherever the bound is."""
    told = Counter[str]()
    for seconds in (10, 60):
        for times in (0.5, 1.0, 2.0):
            for found in outcomes(TRUTHS["lognormal"], 1, seconds, OF_OTHERS, random, times).values():
                told += found
    bounds.exactly("1 run: inconclusive", share(told, INCONCLUSIVE), 100, "%")


def failures(bounds: Bounds, random: Random) -> None:
    """0.9 % time out, and 0.5 % are late: together more than 1 % have no reply in time."""
    law = TRUTHS["lognormal"]
    late_ns = law.percentile_ns(100 * (1 - 0.005))
    studies = ([failed(run) for run in law.draws(10, 40, random)] for _ in range(OF_OTHERS))
    told = Counter(judged(source(runs), 99, late_ns) for runs in studies)
    bounds.exactly("0.9 % time out, 0.5 % are late: p99 passes", share(told, PASS), 0, "%")
    bounds.beside("  fails", share(told, FAIL), "%")


def episodes(bounds: Bounds, random: Random) -> None:
    """What passes though too much of the time is bad; only seconds that come one by one are promised."""
    for (runs, seconds), count in SHORT.items():
        for length in EPISODES:
            law = Stalling(replace(LOGNORMAL, per_s=PER_S), 1 / BAD, length)
            bound_ns = 10 * law.law.percentile_ns(99)
            studies = (source(law.draws(runs, seconds, random)) for _ in range(count))
            told = Counter(judged(study, 95, bound_ns) for study in studies)
            title = f"{runs} of {seconds} s, 6 % of the time bad, {length} s each: p95 passes"
            if length == 1:
                bounds.at_most(title, share(told, PASS), allowed(count), "%")
            else:
                bounds.beside(title, share(told, PASS), "%")


def failed(run: Run) -> Run:
    """The same with timeouts."""
    return Run(run.seconds, [round(FAILED * len(second) / (1 - FAILED)) for second in run.seconds])


def outcomes(
    law: Law | Stalling, runs: int, seconds: int, count: int, random: Random, times: float = 1.0
) -> dict[int, Counter[str]]:
    """By percentile, what became of so many studies whose bound is so many times the true one."""
    found = {percent: Counter[str]() for percent in PERCENTS}
    for _ in range(count):
        study = source(law.draws(runs, seconds, random))
        for percent in PERCENTS:
            found[percent][judged(study, percent, times * law.percentile_ns(percent))] += 1
    return found


def judged(study: GateSource, percent: int, bound_ns: float) -> str:
    """The outcome of a bound on a percentile of a study of one cell."""
    claim = judge_absolute(threshold(percent, bound_ns), CELL, study, Counting())
    chance = claim.evidence.p_broken if claim.evidence else 1.0
    return verdict_of(claim, chance, LEVEL, 1).outcome


def threshold(percent: int, bound_ns: float) -> Threshold:
    """An upper bound on a percentile of latency."""
    text = f"[[threshold]]\nrequire = 'latency_p{percent}_ms <= {bound_ns / NS_PER_MS:.6f}'\n"
    (found,) = parse_gates(text, "simulated").thresholds
    return found


def source(runs: Sequence[Run]) -> GateSource:
    """A study of one cell as gates read it."""
    rows = [a_row(CELL, repeat, numbers_of(run)) for repeat, run in enumerate(runs, 1)]
    blocks = [run.blocks for run in runs]
    return GateSource(sides=(a_side(rows),), cells={CELL: vars(rows[0])}, blocks_of=lambda _: blocks)


def numbers_of(run: Run) -> dict[str, float]:
    """What cells.csv would have of a run, as far as gates ask."""
    failures = sum(run.failures)
    return {"requests": len(run.latencies_ns) + failures, "failures": failures}


def share(told: Counter[str], outcome: str) -> float:
    """Of studies those with an outcome, in percent."""
    return 100 * told[outcome] / told.total()


def most_frequent(found: Mapping[int, Counter[str]], outcome: str) -> float:
    """The share of an outcome for the percentile that has it most often, in percent."""
    return max(share(told, outcome) for told in found.values())
