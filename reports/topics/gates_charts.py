"""The forest of gates: what each measured beside its bound, with the interval, threshold by threshold."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from reports.format import plural
from reports.gates.verdict import Verdict
from reports.gates.words import bound_said, measured_said, outcome_said, ranked
from reports.page.chart import Chart, rounded

MOST_ROWS = 40
WIDEST = 20.0
"""Times the bound, to both sides: what lies farther out is drawn at the edge."""
TITLE = "Gates: measured over bound"
CAPTION = (
    "Each mark is what was measured, divided by its bound, with its 95 % interval. The line at 1 is the "
    "bound; shaded is what lies beyond what is tolerated."
)


def gates_chart(verdicts: Sequence[Verdict]) -> Chart | None:
    """The chart; None where no gate has an interval that can be drawn."""
    drawn = [verdict for verdict in ranked(verdicts) if _has_place(verdict)]
    if not drawn:
        return None
    shown = sorted(drawn[:MOST_ROWS], key=_threshold)
    groups = [
        {"title": title, "rows": [_row(verdict) for verdict in group]}
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


def _row(verdict: Verdict) -> dict[str, Any]:
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
