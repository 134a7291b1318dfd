"""What was found of one threshold and one cell, before all of them are weighed together."""

from collections.abc import Callable
from dataclasses import dataclass

from reports.gates.evidence import Evidence
from reports.gates.thresholds import Threshold
from reports.gates.units import unit_of

PASS, FAIL, INCONCLUSIVE = "pass", "fail", "inconclusive"
OUTCOMES = (PASS, FAIL, INCONCLUSIVE)
LEAST_REPEATS = 3
"""Fewer say too little of how repeats vary."""


@dataclass(frozen=True, kw_only=True)
class Claim:
    """Either `evidence`, which is weighed with that of others, or an outcome that is settled, and why.

    `cell` is a cell's name, or two with a / between them; `note` is what a reader must know of an outcome;
    `more_repeats` would bring the evidence that is missing, `mend` says what may where repeats would not.
    `value` is what was found without an estimate.
    """

    threshold: Threshold
    cell: str
    evidence: Evidence | None = None
    settled: str = ""
    why: str = ""
    value: float | None = None
    note: str = ""
    runs: int = 0
    more_repeats: int | None = None
    mend: str = "no number of repeats like these would decide"


def unknown(threshold: Threshold, cell: str, why: str, runs: int = 0, more: int | None = None) -> Claim:
    """Nothing can be said, and why; `more` repeats would mend it."""
    return Claim(threshold=threshold, cell=cell, settled=INCONCLUSIVE, why=why, runs=runs, more_repeats=more)


def shown(threshold: Threshold) -> Callable[[float], str]:
    """How values of a threshold are written: as times, as percent, or in the column's unit."""
    return unit_of(threshold.require.column, not threshold.require.absolute).text


def allowed(threshold: Threshold) -> str:
    """What a threshold requires, in words: at most 120 ms is required."""
    text, require = shown(threshold), threshold.require
    said = f"at {'most' if require.at_most else 'least'} {text(require.bound)} is required"
    return f"{said} ({text(threshold.tolerated)} tolerated)" if threshold.least_effect else said
