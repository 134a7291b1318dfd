"""Do gates keep quiet where nothing changed, and see a slowdown? Simulated studies, judged as real ones are.

python -m benchmarks.gates
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from statistics import fmean

import numpy as np

from benchmarks.bounds import Bounds
from benchmarks.noise import Figures, Noise, Session, p95s
from benchmarks.simulated import NO_OPTIONS, cell_names, simulated
from benchmarks.stops import stops
from reports.gates.judge import judge
from reports.gates.thresholds import Gates, parse_gates
from reports.gates.verdict import LEAST_REPEATS, Verdict

COMPARISONS, FEWER = 1_000, 300
"""Those with a bound, and those without."""
AT_ONCE = 25
SESSION, ONE_CELL = Session(), Session(cells=1)
APART = Session(turns=3, studies=6)
"""A study of 3 repeats, and before it 5 such that are its baseline."""
REPEATING = {"repeats": LEAST_REPEATS, "repeat_until_decided": ONE_CELL.turns}
FALSE_ALARMS, MISSED = 0.05, 0.05
NOISE_SEED, HARSH_SEED, APART_SEED, PEEKING_SEED, ROUGH_SEED = 1, 2, 3, 4, 5
REQUIRE = "[[threshold]]\nrequire = 'latency_p95_ms / baseline <= 1'\n"
GATES = parse_gates(REQUIRE, "default least_effect")
STRICT = parse_gates(f"{REQUIRE}least_effect = 0\n", "least_effect = 0")
CELLS = cell_names(SESSION.cells)
STUDY_S = 600
"""From one study's start to the next one's."""


@dataclass(frozen=True)
class Shares:
    """Of some comparisons those in which any cell failed, and of cells those with each verdict.

    `caught` are the slower cells that failed, of the slower ones.
    """

    alarmed: float
    passed: float
    inconclusive: float
    caught: float


def main() -> int:
    """Simulate, judge and say so by the exit code."""
    bounds = Bounds(f"{COMPARISONS:,} comparisons of a study of {SESSION.cells} cells with itself, p95")
    quiet, harsh = Noise(), Noise().times(2)
    figures = p95s(quiet, SESSION, COMPARISONS, NOISE_SEED)
    beside_spread(bounds, "noise", figures)
    for pairs in (5, 10):
        nothing_changed(bounds, figures, pairs)
    for pairs in (10, 5):
        slowdowns(bounds, figures, pairs)
    figures = p95s(replace(quiet, second=0.08), SESSION, FEWER, ROUGH_SEED)
    beside_spread(bounds, "seconds of 8 % instead of 5 %", figures)
    found = judged(figures, GATES, 10, {CELLS[0]: 1.15})
    bounds.beside("  15 % slower, one cell: caught", 100 * found.caught, "%")
    figures = p95s(harsh, SESSION, COMPARISONS, HARSH_SEED)
    beside_spread(bounds, "twice the noise", figures)
    nothing_changed(bounds, figures, 10)
    found = judged(figures[:FEWER], GATES, 10, {CELLS[0]: 1.15})
    bounds.beside("  15 % slower, one cell: caught", 100 * found.caught, "%")
    for name, noise in (("", quiet), ("  at twice the noise", harsh)):
        peeked = decided_early(p95s(noise, ONE_CELL, COMPARISONS, PEEKING_SEED))
        title = name or "one cell, until decided, 3 to 10: false alarms"
        bounds.at_most(title, 100 * peeked, 100 * FALSE_ALARMS, "%")
    at_other_times(bounds, quiet)
    stops(bounds)
    return bounds.exit_code()


def at_other_times(bounds: Bounds, noise: Noise) -> None:
    """A baseline of studies that were made before, one after the other, while the machine drifted."""
    figures = p95s(noise, APART, COMPARISONS, APART_SEED, in_turns=False)
    found = judged(figures, GATES, APART.turns, {}, in_turns=False)
    title = "5 baseline studies before, alike: false alarms"
    bounds.at_most(title, 100 * found.alarmed, 100 * FALSE_ALARMS, "%")
    bounds.beside("  cells that pass", 100 * found.passed, "%")
    found = judged(figures[..., :1], GATES, APART.turns, {}, in_turns=False)
    bounds.beside("  the same with one cell: false alarms", 100 * found.alarmed, "%")
    found = judged(figures, GATES, APART.turns, dict.fromkeys(CELLS, 1.15), in_turns=False)
    bounds.beside("  15 % slower, every cell: caught", 100 * found.caught, "%")


def beside_spread(bounds: Bounds, name: str, figures: Figures) -> None:
    """How far runs of one cell are apart, and those of one turn, which have the drift in common."""
    logs = np.log(figures)
    bounds.beside(f"{name}: spread of one run", 100 * float(logs.std(axis=(1, 2)).mean()), "%")
    within = float((logs[:, :, 1] - logs[:, :, 0]).std() / np.sqrt(2))
    bounds.beside("  within a turn", 100 * within, "%")


def nothing_changed(bounds: Bounds, figures: Figures, pairs: int) -> None:
    """False alarms of both sides alike, and how many cells pass."""
    found = judged(figures, GATES, pairs, {})
    bounds.at_most(f"alike, {pairs} pairs: false alarms", 100 * found.alarmed, 100 * FALSE_ALARMS, "%")
    bounds.beside("  cells that pass", 100 * found.passed, "%")
    bounds.beside("  cells that are inconclusive", 100 * found.inconclusive, "%")
    strict = judged(figures, STRICT, pairs, {})
    bounds.at_most("  false alarms at least_effect 0", 100 * strict.alarmed, 100 * FALSE_ALARMS, "%")


def slowdowns(bounds: Bounds, figures: Figures, pairs: int) -> None:
    """How often slower cells are caught: one of ten is harder, since its evidence stands alone."""
    for slower in (15, 10, 5):
        for name, cells in (("one cell", CELLS[:1]), ("every cell", CELLS)):
            bound = slower == 15 and pairs == 10
            factors = dict.fromkeys(cells, 1 + slower / 100)
            found = judged(figures if bound else figures[:FEWER], GATES, pairs, factors)
            title = f"{slower} % slower, {name}, {pairs} pairs"
            if bound:
                bounds.at_most(f"{title}: missed", 100 * (1 - found.caught), 100 * MISSED, "%")
            else:
                bounds.beside(f"{title}: caught", 100 * found.caught, "%")


def judged(
    figures: Figures, gates: Gates, pairs: int, slower: Mapping[str, float], in_turns: bool = True
) -> Shares:
    """The verdicts of some sessions whose second studies have slower cells, by so many times."""
    judged_one = partial(verdicts, gates=gates, slower=slower, in_turns=in_turns)
    with ProcessPoolExecutor() as pool:
        found = list(pool.map(judged_one, figures[:, :pairs], chunksize=AT_ONCE))
    cells = [one for some in found for one in some if one.ratio]
    outcomes = Counter(one.outcome for one in cells)
    caught = [one.outcome == "fail" for one in cells if one.cell in slower]
    return Shares(
        alarmed=sum(any(one.outcome == "fail" for one in some) for some in found) / len(found),
        passed=outcomes["pass"] / len(cells),
        inconclusive=outcomes["inconclusive"] / len(cells),
        caught=sum(caught) / max(1, len(caught)),
    )


def decided_early(figures: Figures) -> float:
    """The share of false alarms where each pair is made only if the verdicts are open, as for
    --repeat-until-decided: the more looks, the more chances. One cell is the worst case of that.
    """
    with ProcessPoolExecutor() as pool:
        return fmean(pool.map(_alarmed_early, figures, chunksize=AT_ONCE))


def _alarmed_early(session: Figures) -> bool:
    for pairs in range(LEAST_REPEATS, len(session) + 1):
        found = verdicts(session[:pairs], GATES, {}, in_turns=True, options=REPEATING)
        if not any(one.outcome == "inconclusive" and one.more_repeats for one in found):
            break
    return any(one.outcome == "fail" for one in found)


def verdicts(
    session: Figures,
    gates: Gates,
    slower: Mapping[str, float],
    in_turns: bool,
    options: Mapping[str, int] = NO_OPTIONS,
) -> list[Verdict]:
    """Of one session: in turns of its second study to its first, else of its last one to those before."""
    if in_turns:
        sides = [session[:, study, np.newaxis] for study in (0, 1)]
        starts: list[Sequence[int]] = [range(side, 2 * len(session), 2) for side in (0, 1)]
    else:
        *before, last = session.swapaxes(0, 1)
        sides, starts = [np.array(before), last[np.newaxis]], [range(len(before)), [len(before)]]
    then, now = (
        simulated(figures, SESSION, [STUDY_S * at for at in began], factors, options)
        for figures, began, factors in zip(sides, starts, ({}, slower), strict=True)
    )
    return judge(gates, now, then)


if __name__ == "__main__":
    sys.exit(main())
