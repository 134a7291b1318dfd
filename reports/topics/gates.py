"""Verdicts as tables, those first that somebody must look at, and in a sentence."""

from collections.abc import Iterator, Sequence

from reports.gates.claim import PASS
from reports.gates.verdict import Verdict
from reports.gates.words import (
    headline,
    measured_said,
    not_passed,
    outcome_said,
    sentence_said,
    threshold_said,
    tolerated_said,
    why_said,
)
from reports.page.table import Cell, Notes, Table

HEADS = ("outcome", "threshold", "cell", "measured", "runs")
NUMERIC = frozenset({3, 4})
JUDGED = (
    "In brackets is the 95 % interval. A gate fails where its bound is shown to be broken by more than is "
    "tolerated, and passes where it is shown that it is not; all else is inconclusive. docs/gates.md says "
    "how."
)


def gate_tables(verdicts: Sequence[Verdict]) -> tuple[Table, ...]:
    """What did not pass, then what did."""
    passed = [verdict for verdict in verdicts if verdict.outcome == PASS]
    return (
        gate_table("Gates that did not pass", not_passed(verdicts)),
        gate_table("Gates that passed", passed),
    )


def gate_table(title: str, verdicts: Sequence[Verdict]) -> Table:
    """One row for each verdict, with why in the notes."""
    notes = Notes()
    rows = tuple(tuple(_row(verdict, notes)) for verdict in verdicts)
    return Table(title, "", HEADS, rows, notes.texts, NUMERIC, shared=(JUDGED,))


def _row(verdict: Verdict, notes: Notes) -> Iterator[Cell]:
    yield Cell(outcome_said(verdict), notes.marks(why_said(verdict)))
    yield Cell(threshold_said(verdict), notes.marks(tolerated_said(verdict)))
    yield Cell(verdict.cell)
    yield Cell(measured_said(verdict), value=verdict.value)
    yield Cell(str(verdict.runs), value=verdict.runs)


def gates_finding(verdicts: Sequence[Verdict]) -> str:
    """What came of all, and of the worst of them in full; empty where nothing was judged."""
    if not verdicts:
        return ""
    worst = [sentence_said(it) for it in not_passed(verdicts) if it.serious]
    more = "The table of gates has the others." if len(worst) > 1 else ""
    return " ".join(text for text in (f"{headline(verdicts)}.", *worst[:1], more) if text)
