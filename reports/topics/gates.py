"""Verdicts as tables, in a sentence and as a forest plot, those first that somebody must look at."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from reports.format import plural
from reports.gates.verdict import (
    PASS,
    Verdict,
    bound_said,
    headline,
    measured_said,
    not_passed,
    outcome_said,
    ranked,
    sentence_said,
    threshold_said,
    tolerated_said,
    why_said,
)
from reports.page.answer import AnswerRow
from reports.page.page import Chart, rounded
from reports.page.table import Footnotes, Table, TableCell

HEADS = ("outcome", "threshold", "cell", "measured", "runs")
NUMERIC = frozenset({3, 4})
JUDGED = (
    "In brackets is the 95 % CI. A gate fails where its bound is shown to be broken by more than is "
    "tolerated, and passes where it is shown that it is not; all else is inconclusive. docs/gates.md says "
    "how."
)
MOST_ROWS = 40
WIDEST = 20.0
"""Times the bound, to both sides: what lies farther out is drawn at the edge."""
TITLE = "Gates: measured over bound"
CAPTION = (
    "Each mark is what was measured, divided by its bound, with its 95 % CI. The line at 1 is the "
    "bound; shaded is what lies beyond what is tolerated."
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
    notes = Footnotes()
    rows = tuple(tuple(_row(verdict, notes)) for verdict in verdicts)
    return Table(title, JUDGED, HEADS, rows, notes.texts, NUMERIC)


def _row(verdict: Verdict, notes: Footnotes) -> Iterator[TableCell]:
    yield TableCell(outcome_said(verdict), notes.marks(why_said(verdict)))
    yield TableCell(threshold_said(verdict), notes.marks(tolerated_said(verdict)))
    yield TableCell(verdict.cell)
    yield TableCell(measured_said(verdict), value=verdict.value)
    yield TableCell(str(verdict.runs), value=verdict.runs)


def gates_answer(verdicts: Sequence[Verdict]) -> AnswerRow:
    """What came of all, and of the worst of them in full."""
    worst = [sentence_said(it) for it in not_passed(verdicts) if it.serious]
    more = "The table of gates has the others." if len(worst) > 1 else ""
    return AnswerRow("Gates", f"{headline(verdicts)}.", " ".join(text for text in (*worst[:1], more) if text))


def gates_chart(verdicts: Sequence[Verdict]) -> Chart | None:
    """The chart; None where no gate has an interval that can be drawn."""
    drawn = [verdict for verdict in ranked(verdicts) if _has_place(verdict)]
    if not drawn:
        return None
    shown = sorted(drawn[:MOST_ROWS], key=_threshold)
    groups = [
        {"title": title, "rows": [_bar(verdict) for verdict in group]}
        for (_, title), group in groupby(shown, key=_threshold)
    ]
    notes = tuple(_notes(len(drawn) - len(shown), len(verdicts) - len(drawn)))
    return Chart(TITLE, CAPTION, "gates", {"groups": groups, "span": _span(shown)}, notes=notes)


def _has_place(verdict: Verdict) -> bool:
    """Whether it can be drawn on an axis of times."""
    known = verdict.value is not None and verdict.low is not None and verdict.high is not None
    return known and verdict.bound > 0 and (verdict.value or 0.0) > 0


def _threshold(verdict: Verdict) -> tuple[int, str]:
    return verdict.threshold, verdict.title


def _bar(verdict: Verdict) -> dict[str, Any]:
    """Numbers are times the bound; texts are in the column's unit."""
    value, low, high = _times(verdict)
    return {
        "name": verdict.cell,
        "outcome": verdict.outcome,
        "said": outcome_said(verdict),
        "value": rounded(value),
        "low": rounded(low),
        "high": rounded(high),
        "tolerated": rounded(verdict.tolerated / verdict.bound),
        "at_most": verdict.at_most,
        "measured": measured_said(verdict),
        "bound": bound_said(verdict),
        "runs": verdict.runs,
    }


def _times(verdict: Verdict) -> list[float]:
    """What was measured and its interval, no farther from the bound than is drawn."""
    found = (verdict.value or 0.0, verdict.low or 0.0, verdict.high or 0.0)
    return [min(WIDEST, max(1 / WIDEST, number / verdict.bound)) for number in found]


def _span(verdicts: Sequence[Verdict]) -> list[float | None]:
    """From where to where the axis reaches, with some air."""
    drawn = [number for it in verdicts for number in (*_times(it), it.tolerated / it.bound)]
    return [rounded(min(0.9, *drawn) / 1.05), rounded(max(1.1, *drawn) * 1.05)]


def _notes(left_out: int, without: int) -> Iterator[str]:
    if left_out:
        yield f"{plural(left_out, 'more gate')} not drawn here; the tables below have them."
    if without:
        yield f"Not drawn, as nothing was estimated, or as that or the bound is 0: {plural(without, 'gate')}."
