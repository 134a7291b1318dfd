"""What was found of one threshold and one cell, before all of them are weighed together."""

from collections.abc import Callable
from dataclasses import dataclass

from reports.format import digits
from reports.gates.columns import FAILURE_RATIO, UNEXPLAINED_SHARE
from reports.gates.evidence import Evidence
from reports.gates.thresholds import Threshold

PASS, FAIL, INCONCLUSIVE = "pass", "fail", "inconclusive"
OUTCOMES = (PASS, FAIL, INCONCLUSIVE)
LEAST_REPEATS = 3
"""Fewer say too little of how repeats vary."""


@dataclass(frozen=True, kw_only=True)
class Claim:
    """Either `evidence`, which is weighed with that of others, or an outcome that is settled, and why.

    `cell` is a cell's name, or two with a / between them; `note` is what a reader must know of an outcome;
    `more_repeats` would bring the evidence that is missing.
    """

    threshold: Threshold
    cell: str
    evidence: Evidence | None = None
    settled: str = ""
    why: str = ""
    note: str = ""
    runs: int = 0
    more_repeats: int | None = None


def unknown(threshold: Threshold, cell: str, why: str, runs: int = 0, more: int | None = None) -> Claim:
    """Nothing can be said, and why; `more` repeats would mend it."""
    return Claim(threshold=threshold, cell=cell, settled=INCONCLUSIVE, why=why, runs=runs, more_repeats=more)


def unit_of(column: str) -> str:
    """What people read behind a value of the column."""
    for ending, unit in (
        ("_ms", " ms"),
        ("_pct", " %"),
        ("_per_s", "/s"),
        ("_bytes", " bytes"),
        ("_w", " W"),
    ):
        if column.endswith(ending):
            return unit
    return " s" if column == "measure_s" else ""


def shown(threshold: Threshold) -> Callable[[float], str]:
    """How values of a threshold are written: as times, as percent, or in the column's unit."""
    require = threshold.require
    if not require.absolute:
        return lambda value: f"{digits(value)}×"
    if require.column in (FAILURE_RATIO, UNEXPLAINED_SHARE):
        return lambda value: f"{digits(100 * value)} %"
    return lambda value: f"{digits(value)}{unit_of(require.column)}"
