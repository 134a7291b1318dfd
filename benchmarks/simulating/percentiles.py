"""How often the intervals of pooled percentiles hold the true one: three runs of 20 s, and one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from benchmarks.bounds import Bounds
from benchmarks.simulating.truths import BATCHED, BIMODAL, LOGNORMAL, NOISY, SWITCHING, Law, Run
from reports.format import NS_PER_MS
from reports.stats.percentiles import pooled_of

NAMES = ("p50", "p95", "p99")
RUNS, SECONDS = 3, 20
STUDIES, FEWER = 1_000, 400
LEAST, MOST = 93, 97
"""Percent of the studies whose interval must hold the truth: what 95 promises, give or take 2."""
LAWS = {
    "lognormal": LOGNORMAL,
    "bimodal": BIMODAL,
    "seconds alike, runs differ": NOISY,
    "the same, 20 requests/s": replace(NOISY, per_s=20.0),
    "executed batches of 32": BATCHED,
}
"""Those that a promise is made for."""
UNPROMISED = {
    "the same, 10 requests/s: p99 has a mark": (replace(NOISY, per_s=10.0), RUNS),
    "one run, seconds alike, runs differ": (NOISY, 1),
    "regimes of 60 s": (SWITCHING, RUNS),
}
"""Those that it is known to fail on: few results beyond; what runs differ by is not in one run, nor are
regimes in a short one.
"""
CHANCE = 1
"""Percent that so many studies may be off by chance: more than the standard error of a share of 95 %."""


def promises(bounds: Bounds) -> None:
    """Each law's coverage by percentile beside what the documents promise."""
    for what, law in LAWS.items():
        for name, held in coverage(law, RUNS).items():
            bounds.between(f"{what}: {name} in its interval", held, LEAST - CHANCE, MOST + CHANCE, "%")
    for what, (law, runs) in UNPROMISED.items():
        for name, held in coverage(law, runs, FEWER).items():
            bounds.beside(f"{what}: {name} in its interval", held, "%")


def coverage(law: Law, runs: int, studies: int = STUDIES) -> dict[str, float]:
    """Percent of so many studies whose interval of a percentile holds the true one, by its name."""
    random = np.random.default_rng(30)
    truths_ms = {name: law.percentile_ns(float(name[1:])) / NS_PER_MS for name in NAMES}
    held = [_held(law.draws(runs, SECONDS, random), truths_ms) for _ in range(studies)]
    return dict(zip(NAMES, (100 * np.mean(held, axis=0)).tolist(), strict=True))


def _held(runs: Sequence[Run], truths_ms: Mapping[str, float]) -> list[bool]:
    """Whether the interval of each percentile of a cell's runs holds the truth; not where there is none."""
    blocks = [run.blocks for run in runs]
    found = [(pooled_of(blocks, name), truth_ms) for name, truth_ms in truths_ms.items()]
    return [
        it is not None and it.low is not None and it.high is not None and it.low <= truth_ms <= it.high
        for it, truth_ms in found
    ]
