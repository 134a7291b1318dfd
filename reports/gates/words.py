"""Verdicts in the words that all formats share."""

from collections.abc import Iterable, Sequence

from reports.format import MISSING, plural
from reports.gates.claim import FAIL, INCONCLUSIVE, PASS
from reports.gates.units import unit_of
from reports.gates.verdict import Verdict

SYMBOLS = {PASS: "✓", FAIL: "✗", INCONCLUSIVE: "?"}
URGENCY = (FAIL, INCONCLUSIVE, PASS)
"""What a reader must see first."""


def ranked(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """Fails, then what is inconclusive, then passes; warnings after the rest of each."""
    return sorted(verdicts, key=lambda it: (URGENCY.index(it.outcome), not it.serious))


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
    return (f"{most} to {unit_of(verdict.column, verdict.ratio).text(verdict.tolerated)} is tolerated.",)


def sentence_said(verdict: Verdict) -> str:
    """Its sentence, with the threshold where no number in it tells which that is."""
    return verdict.sentence if verdict.value is not None else f"{verdict.title}: {verdict.sentence}"


def measured_said(verdict: Verdict) -> str:
    """131 ms (128–134), the interval of 95 % in brackets; a dash where nothing was estimated."""
    if verdict.value is None:
        return MISSING
    unit = unit_of(verdict.column, verdict.ratio)
    if verdict.low is None or verdict.high is None:
        return unit.text(verdict.value)
    return f"{unit.text(verdict.value)} ({unit.number(verdict.low)}–{unit.number(verdict.high)})"


def bound_said(verdict: Verdict) -> str:
    """≤ 120 ms (126), what is tolerated in brackets where that is more."""
    unit = unit_of(verdict.column, verdict.ratio)
    tolerated = "" if verdict.tolerated == verdict.bound else f" ({unit.number(verdict.tolerated)})"
    return f"{'≤' if verdict.at_most else '≥'} {unit.text(verdict.bound)}{tolerated}"


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
