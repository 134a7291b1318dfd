"""What becomes of one threshold on one cell: pass, fail or inconclusive, why, and the files that keep it."""

import json
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from math import isfinite
from pathlib import Path
from typing import Any, get_type_hints

from reports.format import MISSING, plural
from reports.gates.evidence import Evidence
from reports.gates.require import GateError, Unit, unit_of
from reports.gates.thresholds import VERDICTS, WARN, Threshold
from reports.ledger.files import parsed, whole_file

PASS, FAIL, INCONCLUSIVE = "pass", "fail", "inconclusive"
EXIT_CODES = {PASS: 0, FAIL: 1, INCONCLUSIVE: 3}
SYMBOLS = {FAIL: "✗", INCONCLUSIVE: "?", PASS: "✓"}
"""What a reader must see first comes first."""


@dataclass(frozen=True, kw_only=True)
class Claim:
    """Either `evidence`, which is weighed with that of others, or an outcome that is settled, and why.

    `cell` is a cell's name, or two with a / between them; `note` is what a reader must know of an outcome;
    `more_repeats` would bring the evidence that is missing, `fix` says what may where repeats would not.
    `short` says what the evidence is too little for. `value` is what was found without an estimate.
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
    short: str = ""
    fix: str = "no number of repeats like these would decide"


def unknown(threshold: Threshold, cell: str, why: str, runs: int = 0, more: int | None = None) -> Claim:
    """Nothing can be said, and why; `more` repeats would fix it."""
    return Claim(threshold=threshold, cell=cell, settled=INCONCLUSIVE, why=why, runs=runs, more_repeats=more)


def shown(threshold: Threshold) -> Callable[[float], str]:
    """How values of a threshold are written: as times, as percent, or in the column's unit."""
    return unit_of(threshold.require.column, not threshold.require.absolute).text


def allowed(threshold: Threshold) -> str:
    """What a threshold requires, in words: at most 120 ms is required."""
    text, require = shown(threshold), threshold.require
    said = f"at {'most' if require.at_most else 'least'} {text(require.bound)} is required"
    return f"{said} ({text(threshold.tolerated)} tolerated)" if threshold.least_effect else said


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """One threshold on one cell; `value`, `low` and `high` are None where nothing could be estimated, and of
    a percentile that lies among requests without a reply.

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

    @property
    def unit(self) -> Unit:
        """That of its numbers."""
        return unit_of(self.column, self.ratio)


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
        value=_finite(found.value) if found else claim.value,
        low=_finite(found.low) if found else None,
        high=_finite(found.high) if found else None,
        runs=claim.runs,
        more_repeats=more,
    )


def _finite(value: float) -> float | None:
    """None for a percentile among requests that had no reply, of which there is no number."""
    return value if isfinite(value) else None


def _sentence(claim: Claim, outcome: str, more: int | None) -> str:
    told = f"{claim.cell}: {measured(claim)}"
    if outcome != INCONCLUSIVE:
        return f"{told}."
    if claim.short and claim.evidence and not claim.evidence.beyond:
        told = f"{told}; {claim.short}"
    if more:
        return f"{told}; {plural(more, 'more repeat')} would decide, if like these."
    return f"{told}; {claim.fix}." if claim.evidence else f"{told}."


def measured(claim: Claim) -> str:
    """What was found beside what is allowed."""
    threshold, found = claim.threshold, claim.evidence
    if found is None:
        return claim.why
    text, require = _or_more(shown(threshold)), threshold.require
    what = require.column if require.absolute else f"ratio of {require.column}"
    if require.to_baseline:
        what += " to the baseline"
    interval = "" if found.certain else f" (95 % CI {text(found.low)} to {text(found.high)})"
    return f"{what} {text(found.value)}{interval}, {allowed(threshold)}"


def outcome_of(verdicts: Iterable[Verdict]) -> str:
    """Fail where one that is no warning fails, else inconclusive where one is, or none decides, else pass."""
    outcomes = {verdict.outcome for verdict in verdicts if verdict.serious}
    if FAIL in outcomes:
        return FAIL
    return PASS if outcomes == {PASS} else INCONCLUSIVE


def exit_code(verdicts: Iterable[Verdict]) -> int:
    """0 where they pass, 1 where one fails, 3 where that cannot be told."""
    return EXIT_CODES[outcome_of(verdicts)]


def _or_more(text: Callable[[float], str]) -> Callable[[float], str]:
    """The same, and words for a percentile among requests that had no reply."""
    return lambda value: text(value) if isfinite(value) else "above any limit"


def kept_text(verdicts: Sequence[Verdict]) -> str:
    """The file: the exit code that they come to, and every verdict."""
    kept = {"exit_code": exit_code(verdicts), "verdicts": [asdict(verdict) for verdict in verdicts]}
    return json.dumps(kept, indent=1, allow_nan=False) + "\n"


def kept_in(directory: Path) -> tuple[Verdict, ...]:
    """The verdicts kept in a directory, none where nothing was judged; GateError where it is damaged."""
    path = directory / VERDICTS
    if not os.path.isfile(path):
        return ()
    try:
        return tuple(map(_verdict, parsed(whole_file(path))["verdicts"]))
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        fix = "remove it, or judge the study again with `inferswarm gate`."
        raise GateError(f"{path}: is not what gates leave ({error}): {fix}") from error


def _verdict(kept: dict[str, Any]) -> Verdict:
    """TypeError or ValueError where a field is of another type than gates leave, or the outcome is none."""
    for name, kind in get_type_hints(Verdict).items():
        if not isinstance(kept.get(name), kind):
            raise TypeError(f"{name} is {kept.get(name)!r:.40}")
    if kept["outcome"] not in SYMBOLS:
        raise ValueError(f"outcome is {kept['outcome']!r:.40}")
    return Verdict(**kept)


def ranked(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """Fails, then what is inconclusive, then passes; warnings after the rest of each."""
    return sorted(verdicts, key=lambda it: (list(SYMBOLS).index(it.outcome), not it.serious))


def not_passed(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """Those that somebody must look at, in that order."""
    return [verdict for verdict in ranked(verdicts) if verdict.outcome != PASS]


def outcome_said(verdict: Verdict) -> str:
    """✗ fail; a warning that did not pass is said to be one, with what came of it as its sign."""
    warning = not verdict.serious and verdict.outcome != PASS
    return f"{SYMBOLS[verdict.outcome]} {'warning' if warning else verdict.outcome}"


def threshold_said(verdict: Verdict) -> str:
    """Its title, and what it requires where that is a name alone."""
    named = verdict.require not in verdict.title
    return f"{verdict.title} ({verdict.require})" if named else verdict.title


def tolerated_said(verdict: Verdict) -> tuple[str, ...]:
    """How far beyond the bound is no reason to fail."""
    if verdict.tolerated == verdict.bound:
        return ()
    most = "Up" if verdict.at_most else "Down"
    return (f"{most} to {verdict.unit.text(verdict.tolerated)} is tolerated.",)


def sentence_said(verdict: Verdict) -> str:
    """Its sentence, with the threshold where no number in it tells which that is."""
    return verdict.sentence if verdict.value is not None else f"{verdict.title}: {verdict.sentence}"


def measured_said(verdict: Verdict) -> str:
    """131 ms (128–134), the interval of 95 % in brackets; a dash where nothing was estimated."""
    if verdict.value is None:
        return MISSING
    told = verdict.unit.text(verdict.value)
    if verdict.low is None or verdict.high is None:
        return told
    return f"{told} ({verdict.unit.number(verdict.low)}–{verdict.unit.number(verdict.high)})"


def bound_said(verdict: Verdict) -> str:
    """≤ 120 ms (126), what is tolerated in brackets where that is more."""
    tolerated = f" ({verdict.unit.number(verdict.tolerated)})" if tolerated_said(verdict) else ""
    return f"{'≤' if verdict.at_most else '≥'} {verdict.unit.text(verdict.bound)}{tolerated}"


def why_said(verdict: Verdict) -> tuple[str, ...]:
    """What the numbers alone do not say, without the cell's name: why, what would decide, what to know."""
    told = verdict.outcome == INCONCLUSIVE or verdict.value is None
    why = verdict.sentence.removeprefix(f"{verdict.cell}: ") if told else ""
    note = f"{verdict.note[:1].upper()}{verdict.note[1:]}." if verdict.note else ""
    return tuple(text for text in (why, note) if text)


def headline(verdicts: Sequence[Verdict]) -> str:
    """1 of 6 gates failed, 2 are inconclusive; 1 warning."""
    deciding = [verdict for verdict in verdicts if verdict.serious]
    warned = sum(verdict.outcome != PASS for verdict in verdicts if not verdict.serious)
    warnings = f"; {plural(warned, 'warning')}" if warned else ""
    return f"{_decided(deciding)}{warnings}"


def _decided(verdicts: Sequence[Verdict]) -> str:
    if not verdicts:
        return "No gate decides"
    failed, unsure = (sum(it.outcome == outcome for it in verdicts) for outcome in (FAIL, INCONCLUSIVE))
    whole = plural(len(verdicts), "gate")
    unsure_said = f"{unsure:,} {'is' if unsure == 1 else 'are'} inconclusive"
    if failed:
        return f"{failed:,} of {whole} failed" + (f", {unsure_said}" if unsure else "")
    if unsure:
        return unsure_said.replace(" ", f" of {whole} ", 1)
    return "The gate passed" if len(verdicts) == 1 else f"All {whole} passed"
