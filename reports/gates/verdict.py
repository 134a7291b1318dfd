"""What becomes of one threshold on one cell: pass, fail or inconclusive, and why."""

from collections.abc import Iterable
from dataclasses import dataclass

from reports.format import plural
from reports.gates.claim import FAIL, INCONCLUSIVE, PASS, Claim, allowed, shown
from reports.gates.thresholds import WARN

PASSED, FAILED, NOT_TOLD = 0, 1, 3


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """One threshold on one cell; `value`, `low` and `high` are None where nothing could be estimated.

    They are in the column's unit, ratios for what is compared. `sentence` says why, in words that stand
    alone; `note` is what else to know. `more_repeats` would decide, as far as can be told.
    """

    threshold: int
    line: int
    title: str
    require: str
    severity: str
    cell: str
    outcome: str
    sentence: str
    note: str
    column: str
    at_most: bool
    ratio: bool
    bound: float
    tolerated: float
    value: float | None
    low: float | None
    high: float | None
    runs: int
    more_repeats: int | None

    @property
    def serious(self) -> bool:
        """Whether it decides the exit code; a warning is shown alone."""
        return self.severity != WARN


def verdict_of(claim: Claim, adjusted: float, level: float, line: int) -> Verdict:
    """By the evidence and its chance of a false alarm, which is adjusted for all that was weighed with it.

    `level` is the chance that is taken; what is kept is shown for each alone.
    """
    threshold, found = claim.threshold, claim.evidence
    outcome = claim.settled
    if found is not None:
        broken = adjusted <= level and found.beyond
        outcome = FAIL if broken else PASS if found.p_kept <= level else INCONCLUSIVE
    more = None
    if outcome == INCONCLUSIVE:
        # what is weighed with many others takes more to be shown
        needed = level * found.p_broken / adjusted if found and adjusted else level
        more = found.more(needed, level) if found else claim.more_repeats
    return Verdict(
        threshold=threshold.number,
        line=line,
        title=threshold.title,
        require=threshold.require.text,
        severity=threshold.severity,
        cell=claim.cell,
        outcome=outcome,
        sentence=_sentence(claim, outcome, more),
        note=claim.note,
        column=threshold.require.column,
        at_most=threshold.require.at_most,
        ratio=not threshold.require.absolute,
        bound=threshold.require.bound,
        tolerated=threshold.tolerated,
        value=found.value if found else claim.value,
        low=found.low if found else None,
        high=found.high if found else None,
        runs=claim.runs,
        more_repeats=more,
    )


def _sentence(claim: Claim, outcome: str, more: int | None) -> str:
    told = f"{claim.cell}: {measured(claim)}"
    if outcome != INCONCLUSIVE:
        return f"{told}."
    if more:
        return f"{told}; {plural(more, 'more repeat')} would decide, if like these."
    return f"{told}; {claim.mend}." if claim.evidence else f"{told}."


def measured(claim: Claim) -> str:
    """What was found beside what is allowed."""
    threshold, found = claim.threshold, claim.evidence
    if found is None:
        return claim.why
    text, require = shown(threshold), threshold.require
    what = require.column if require.absolute else f"ratio of {require.column}"
    if require.to_baseline:
        what += " to the baseline"
    interval = "" if found.certain else f" (95 % interval {text(found.low)} to {text(found.high)})"
    return f"{what} {text(found.value)}{interval}, {allowed(threshold)}"


def exit_code(verdicts: Iterable[Verdict]) -> int:
    """1 where one that is no warning fails, else 3 where one is inconclusive, else 0."""
    outcomes = {verdict.outcome for verdict in verdicts if verdict.serious}
    if FAIL in outcomes:
        return FAILED
    return NOT_TOLD if INCONCLUSIVE in outcomes or PASS not in outcomes else PASSED
