"""Gates on ratios and baselines: false alarms where nothing changed, and how often slower cells are caught.

A study of some cells and others of the same, made in turns or before it on a machine that drifts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import lru_cache
from math import sqrt

import numpy as np

from benchmarks.bounds import Bounds
from benchmarks.simulating.truths import NS_PER_MS, Floats, Law, Random, Run, a_row, a_side
from reports.gates.judge import judge
from reports.gates.source import GateSource
from reports.gates.thresholds import Gates, parse_gates
from reports.gates.verdict import FAIL, INCONCLUSIVE, PASS, Verdict
from reports.stats.paired import LEAST_REPEATS

COMPARISONS, FEWER = 500, 200
"""Those with a bound, and those without: the chance error of 2.5 % is 0.7 points, that of 50 % 3.5."""
POOL = 5_000
"""Runs of a law that are drawn; the sessions have some of them by chance."""
SECONDS, PERCENT = 10, 95
PER_S = 100
NONE_FAILED = Run([np.full(PER_S, NS_PER_MS)] * SECONDS).blocks
"""That is all that is asked of the seconds of a run."""
FALSE_ALARMS, MISSED = 5.0, 5.0
"""Percent: of comparisons of ten cells in which any fails, and of slower cells."""
SEED = 1
REQUIRE = "[[threshold]]\nrequire = 'latency_p95_ms / baseline <= 1'\n"
GATES = parse_gates(REQUIRE, "default least_effect")
STRICT = parse_gates(f"{REQUIRE}least_effect = 0\n", "least_effect = 0")
BEGAN_S, STUDY_S = 1_795_258_800, 600
"""When the first study starts, and how long after it the next one does."""
NO_OPTIONS: Mapping[str, int] = {}


@dataclass(frozen=True)
class Session:
    """Studies of some cells: a repeat of each in turns, or all repeats of one before those of the next."""

    turns: int = 10
    studies: int = 2
    cells: int = 10
    in_turns: bool = True

    @property
    def names(self) -> list[str]:
        """Of its cells."""
        return [f"onnx-http/b1/c{users}" for users in range(1, self.cells + 1)]


IN_TURNS, ONE_CELL = Session(), Session(cells=1)
EARLIER = Session(turns=3, studies=6, in_turns=False)
"""A study of 3 repeats, and before it 5 such that are its baseline."""
REPEATING = {"repeats": LEAST_REPEATS, "repeat_until_decided": ONE_CELL.turns}


@dataclass(frozen=True)
class Machine:
    """The law of its requests, and how its speed changes: a random walk and a straight line.

    Both are in logarithms, what a whole session comes to, and have all cells in common.
    """

    law: Law = field(default_factory=lambda: Law(request=0.25, second=0.05, kept=0.7, run=0.03))
    walk: float = 0.10
    slope: float = 0.05

    def noisier(self, times: float) -> Machine:
        """All of it but the spread of the requests, which is the server's own."""
        law = replace(self.law, second=times * self.law.second, run=times * self.law.run)
        return Machine(law, times * self.walk, times * self.slope)

    def p95s_ms(self, session: Session, count: int, random: Random) -> Floats:
        """Of so many sessions: by session, turn, study and cell."""
        shape = (count, session.turns, session.studies, session.cells)
        found: Floats = random.choice(pool_ms(self.law), shape) * np.exp(self._drift(session, count, random))
        return found

    def _drift(self, session: Session, count: int, random: Random) -> Floats:
        """Of each run, by when it was made."""
        turns, studies, cells = session.turns, session.studies, session.cells
        steps = turns * studies * cells
        walk = random.standard_normal((count, steps)).cumsum(axis=1) * self.walk / sqrt(steps)
        slope = self.slope * random.standard_normal((count, 1)) * np.linspace(0, 1, steps)
        made: Floats = walk + slope
        if session.in_turns:
            return made.reshape(count, turns, studies, cells)
        return made.reshape(count, studies, turns, cells).swapaxes(1, 2)


@lru_cache(maxsize=4)
def pool_ms(law: Law) -> Floats:
    """p95 of runs of a law."""
    random = np.random.default_rng(SEED)
    runs = (law.draw(SECONDS, random).latencies_ns for _ in range(POOL))
    return np.array([np.percentile(run, PERCENT, method="inverted_cdf") / NS_PER_MS for run in runs])


@dataclass(frozen=True)
class Shares:
    """In percent: of comparisons those in which any cell failed, and of cells those with each verdict.

    `caught` are the slower cells that failed, of the slower ones.
    """

    alarmed: float
    passed: float
    inconclusive: float
    caught: float


def promises(bounds: Bounds) -> None:
    """Of a study of ten cells and its baseline; what is printed below a machine is of that machine."""
    random, quiet = np.random.default_rng(SEED), Machine()
    figures = drawn(bounds, "10 cells", quiet, COMPARISONS, random)
    for pairs in (5, 10):
        nothing_changed(bounds, figures, pairs)
    for pairs in (10, 5):
        slowdowns(bounds, figures, pairs)
    rough = replace(quiet, law=replace(quiet.law, second=0.08))
    caught_of(bounds, drawn(bounds, "seconds of 8 % instead of 5 %", rough, FEWER, random), 1.15, 1, 10)
    harsh = quiet.noisier(2)
    figures = drawn(bounds, "twice the noise", harsh, COMPARISONS, random)
    nothing_changed(bounds, figures, 10)
    caught_of(bounds, figures[:FEWER], 1.15, 1, 10)
    for name, machine in (("", quiet), (", twice the noise", harsh)):
        peeked = decided_early(machine.p95s_ms(ONE_CELL, COMPARISONS, random))
        bounds.at_most(f"1 cell, until decided, 3 to 10{name}: false alarms", peeked, FALSE_ALARMS, "%")
    at_other_times(bounds, quiet, random)


def drawn(bounds: Bounds, name: str, machine: Machine, count: int, random: Random) -> Floats:
    """Sessions, and how far runs of one cell are apart, and those of one turn, which drift alike."""
    figures = machine.p95s_ms(IN_TURNS, count, random)
    logs = np.log(figures)
    bounds.beside(f"{name}: p95 of one run varies by", 100 * float(logs.std(axis=(1, 2)).mean()), "%")
    within = float((logs[:, :, 1] - logs[:, :, 0]).std() / np.sqrt(2))
    bounds.beside("  within a turn", 100 * within, "%")
    return figures


def nothing_changed(bounds: Bounds, figures: Floats, pairs: int) -> None:
    """False alarms of both sides alike, and how many cells pass."""
    found = judged(figures[:, :pairs], IN_TURNS, GATES)
    bounds.at_most(f"alike, {pairs} pairs: false alarms", found.alarmed, FALSE_ALARMS, "%")
    bounds.beside("  cells that pass", found.passed, "%")
    bounds.beside("  cells that are inconclusive", found.inconclusive, "%")
    strict = judged(figures[:, :pairs], IN_TURNS, STRICT)
    bounds.at_most("  false alarms at least_effect 0", strict.alarmed, FALSE_ALARMS, "%")


def slowdowns(bounds: Bounds, figures: Floats, pairs: int) -> None:
    """One cell of ten is harder, since its evidence stands alone. 15 % are to be caught by 10 pairs."""
    for slower in (1.15, 1.10, 1.05):
        for cells in (1, IN_TURNS.cells):
            missed = MISSED if (slower, pairs) == (1.15, 10) else None
            caught_of(bounds, figures if missed else figures[:FEWER], slower, cells, pairs, missed)


def caught_of(
    bounds: Bounds, figures: Floats, times: float, cells: int, pairs: int, missed: float | None = None
) -> None:
    """How many of some slower cells fail."""
    slower = dict.fromkeys(IN_TURNS.names[:cells], times)
    caught = judged(figures[:, :pairs], IN_TURNS, GATES, slower).caught
    name = f"{100 * (times - 1):.0f} % slower, {cells} of {IN_TURNS.cells} cells, {pairs} pairs: caught"
    bounds.at_least(name, caught, None if missed is None else 100 - missed, "%")


def at_other_times(bounds: Bounds, machine: Machine, random: Random) -> None:
    """A baseline of studies that were made before, one after the other, while the machine drifted."""
    figures = machine.p95s_ms(EARLIER, COMPARISONS, random)
    found = judged(figures, EARLIER, GATES)
    bounds.at_most("5 earlier studies, alike: false alarms", found.alarmed, FALSE_ALARMS, "%")
    bounds.beside("  cells that pass", found.passed, "%")
    alone = judged(figures[..., :1], replace(EARLIER, cells=1), GATES)
    bounds.beside("  the same with 1 cell: false alarms", alone.alarmed, "%")
    found = judged(figures[:FEWER], EARLIER, GATES, dict.fromkeys(EARLIER.names, 1.15))
    bounds.beside("  15 % slower, every cell: caught", found.caught, "%")


def judged(
    figures: Floats, session: Session, gates: Gates, slower: Mapping[str, float] | None = None
) -> Shares:
    """The verdicts of sessions whose last studies have slower cells, by so many times."""
    slower = slower or {}
    found = [[one for one in verdicts(each, session, gates, slower) if one.ratio] for each in figures]
    cells = [one for some in found for one in some]
    outcomes = Counter(one.outcome for one in cells)
    caught = [one.outcome == FAIL for one in cells if one.cell in slower]
    return Shares(
        alarmed=100 * sum(any(one.outcome == FAIL for one in some) for some in found) / len(found),
        passed=100 * outcomes[PASS] / len(cells),
        inconclusive=100 * outcomes[INCONCLUSIVE] / len(cells),
        caught=100 * sum(caught) / max(1, len(caught)),
    )


def decided_early(figures: Floats) -> float:
    """The percentage of false alarms where each pair is made only if the verdicts are open, as for
    --repeat-until-decided: the more looks, the more chances. One cell is the worst case of that.
    """
    return 100 * sum(map(_alarmed_early, figures)) / len(figures)


def _alarmed_early(figures: Floats) -> bool:
    for pairs in range(LEAST_REPEATS, len(figures) + 1):
        found = verdicts(figures[:pairs], ONE_CELL, GATES, {}, REPEATING)
        if not any(one.outcome == INCONCLUSIVE and one.more_repeats for one in found):
            break
    return any(one.outcome == FAIL for one in found)


def verdicts(
    figures: Floats,
    session: Session,
    gates: Gates,
    slower: Mapping[str, float],
    options: Mapping[str, int] = NO_OPTIONS,
) -> list[Verdict]:
    """Of one session: in turns of its second study to its first, else of its last one to those before."""
    if session.in_turns:
        # each turn is a study of its own
        sides = [figures[:, study, np.newaxis] for study in (0, 1)]
        starts: list[Sequence[int]] = [range(side, 2 * len(figures), 2) for side in (0, 1)]
    else:
        *before, last = figures.swapaxes(0, 1)
        sides, starts = [np.array(before), last[np.newaxis]], [range(len(before)), [len(before)]]
    sides[1] = sides[1] * [slower.get(cell, 1.0) for cell in session.names]
    then, now = (
        source(p95s_ms, session.names, began, options) for p95s_ms, began in zip(sides, starts, strict=True)
    )
    return judge(gates, now, then)


def source(
    p95s_ms: Floats, cells: Sequence[str], starts: Sequence[int], options: Mapping[str, int] = NO_OPTIONS
) -> GateSource:
    """Studies from figures by study, repeat and cell, and which in the session each was; their options."""
    sides = tuple(
        a_side(
            (
                a_row(cell, repeat, numbers_of(p95_ms))
                for repeat, values in enumerate(study, 1)
                for cell, p95_ms in zip(cells, values.tolist(), strict=True)
            ),
            {"study": "step7", "size": "quick", "started_utc": began_utc(at), "options": options},
        )
        for study, at in zip(p95s_ms, starts, strict=True)
    )
    planned = {row.cell: vars(row) for row in sides[0].rows}
    return GateSource(sides=sides, cells=planned, blocks_of=lambda runs: [NONE_FAILED for _ in runs])


def numbers_of(p95_ms: float) -> dict[str, float]:
    """What cells.csv would have of a run, as far as gates ask."""
    return {"requests": SECONDS * PER_S, "failures": 0, "latency_p95_ms": p95_ms}


def began_utc(study: int) -> str:
    """When a study of a session was started, counted from 0."""
    return datetime.fromtimestamp(BEGAN_S + STUDY_S * study, UTC).isoformat()
