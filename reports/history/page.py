"""The page of a history: what got slower or faster, when, by how much, what changed then; charts; tables."""

import shlex
from collections.abc import Iterator, Sequence
from math import log
from typing import NamedTuple

from reports.format import MISSING, digits, multiple, plural, sentence
from reports.history.changes import FALSE, LEAST, ChangePoint
from reports.history.charts import cell_charts
from reports.history.occasions import Occasion, occasions
from reports.history.reading import PastStudy
from reports.history.series import GPU, CellSeries, form_of
from reports.page.answer import AnswerRow
from reports.page.page import Page, Section
from reports.page.table import Table, TableCell, table_of
from reports.stats.repeats import grouped

SAID, NAMED, FACTS = 4, 3, 3
"""Occasions on the first screen; of each the figures and the facts that are named."""
NO_CAUSE = "What changed at the same time need not be the cause."
OVER = 10
"""Newest studies of a name: a series that none of them has is over."""
MOST_ROWS = 24
"""Of changes that are shown unfolded."""


class History(NamedTuple):
    """All that is told: of which places, the studies, a sentence for each left out, the series."""

    places: tuple[str, ...]
    options: tuple[str, ...]
    studies: Sequence[PastStudy]
    skipped: Sequence[str]
    series: Sequence[CellSeries]
    least_effect: float

    @property
    def long(self) -> list[CellSeries]:
        """Those with enough studies to have a change."""
        return [one for one in self.series if len(one.values) >= 2 * LEAST]

    def over(self, one: CellSeries) -> bool:
        """Whether none of the newest studies has it, as of a machine that is gone."""
        newest = [study.began for study in self.studies if study.name == one.study][-OVER:]
        return one.studies[-1].began < newest[0]


def history_page(history: History) -> Page:
    """Everything that is said; empty sections are left out."""
    found = occasions(history.series)
    sections = (
        Section("Change points").of([changes_table(found)]),
        Section("Cell by cell", brief=False).of(cell_charts(history.series)),
        Section("Figures", brief=False).of([figures_table(history.series)]).long_folded,
        Section("Studies", brief=False).of([studies_table(history), skipped_table(history)]).long_folded,
    )
    return Page(
        title=f"History of {', '.join(dict.fromkeys(study.name for study in history.studies))}",
        facts=_facts(history),
        notices=tuple(_notices(history)),
        sections=tuple(section for section in sections if not section.empty),
        commands=(f"inferswarm history {shlex.join([*history.places, *history.options])}",),
        banner=tuple(dict.fromkeys(text for it in history.studies for text in it.side.stand_ins.values())),
        answers=tuple(answers(history, found)),
    )


def _facts(history: History) -> str:
    first, last = history.studies[0], history.studies[-1]
    cells = {(one.study, one.cell) for one in history.series}
    count = f"{len(history.studies):,} {'study' if first is last else 'studies'}"
    figures = plural(len(history.series), "figure")
    return f"{count}, {day(first)} to {day(last)}; {plural(len(cells), 'cell')} with {figures}"


def _notices(history: History) -> Iterator[str]:
    """What was not counted, and why."""
    if history.skipped:
        first = "; ".join(text.rstrip(".") for text in history.skipped[:1])
        more = f", and {len(history.skipped) - 1} more, listed under Studies" if history.skipped[1:] else ""
        yield f"Left out: {first}{more}."
    if short := len(history.series) - len(history.long):
        yield (
            f"{short:,} of {len(history.series):,} figures have fewer than {2 * LEAST} studies, and so no "
            "change can be told."
        )


def answers(history: History, found: Sequence[Occasion]) -> Iterator[AnswerRow]:
    """The rows of the first screen: what is worse now comes first, and GPUs' last; of those the newest."""
    for occasion in sorted(found, key=lambda it: _rank(history, it))[:SAID]:
        yield _answer(history, occasion)
    if len(found) > SAID:
        yield AnswerRow(
            "More", f"{len(found) - SAID} earlier or smaller changes are listed under Change points."
        )
    if not found:
        none = f"None shown of {100 * (history.least_effect - 1):g} % or more."
        yield AnswerRow("Changes", none if history.long else "Not known yet.", _sight(history))
    yield from _newest(history)
    yield from _drifts(history)
    yield from _outliers(history)


def _rank(history: History, occasion: Occasion) -> int:
    one, change = occasion.chief
    if one.stands_worse(change) and not history.over(one):
        return 0
    return 2 if one.measure in GPU else 1


def _answer(history: History, occasion: Occasion) -> AnswerRow:
    """When, what, by how much, and what changed then."""
    one, change = occasion.chief
    word, end = sentence(one.word(change.ratio.ratio)), one.ended(change)
    question = f"{word} since {day(occasion.study)}"
    if end is not None:
        question = f"{word} until {day(one.studies[end - 1])}"
    said = f"{one.name}: {_times(one, change)}."
    others = [
        f"{'' if it.name == one.name else f'{it.name} '}{it.spoken} {its.ratio.figure}×"
        for it, its in occasion.changes
        if it is not one
    ]
    more = f" and {len(others) - NAMED} more" if len(others) > NAMED else ""
    beside = f"Also {', '.join(others[:NAMED])}{more}. " if others else ""
    over = f"Last measured {day(one.studies[-1])}. " if history.over(one) else ""
    return AnswerRow(question, said, f"{beside}{over}{_when(one, change)} {changed_then(occasion)}")


def _times(one: CellSeries, change: ChangePoint) -> str:
    """images per second 0.921× (95 % CI 0.905–0.937), from 120 to 110 images/s."""
    before, after = (level for begin, end, level in one.levels if change.at in (begin, end))
    form, ratio = form_of(one.measure), change.ratio
    return (
        f"{one.spoken} {ratio.figure}× (95 % CI {ratio.interval}), "
        f"from {form(before)} to {form(after)} {one.measure.unit.rpartition(' ')[2]}"
    )


def _when(one: CellSeries, change: ChangePoint) -> str:
    """Which study has the new level first, and how sure that is."""
    if change.first == change.last:
        return f"First in {one.studies[change.at].side.name}."
    count = change.last - change.first + 1
    return (
        f"First in {one.studies[change.at].side.name}; any of {count} studies may be the first, "
        f"{day(one.studies[change.first])} to {day(one.studies[change.last])}."
    )


def changed_then(occasion: Occasion) -> str:
    """What changed at the same time, most likely first."""
    facts = occasion.coincided
    if not facts:
        return "Nothing that is stated of environment, options and weights changed then."
    more = f"; and {len(facts) - FACTS} more" if len(facts) > FACTS else ""
    return f"Changed then: {'; '.join(it.text for it in facts[:FACTS])}{more}. {NO_CAUSE}"


def _sight(history: History) -> str:
    """What of the history could show a change at all."""
    least = f"the {2 * LEAST} studies that a change takes, {LEAST} on each side"
    return f"{len(history.long):,} of {len(history.series):,} figures have {least}."


def _newest(history: History) -> Iterator[AnswerRow]:
    """What the newest study has of figures that no chance explains, and that is no change yet."""
    newest = {study.name: study for study in history.studies}
    ends = [one for one in history.long if one.studies[-1] is newest[one.study]]
    off = [(one, times) for one in ends if (times := one.newest_off(FALSE / len(ends))) is not None]
    if off:
        off.sort(key=lambda it: -abs(log(it[1])))
        told = ", ".join(f"{one.name} {one.spoken} {multiple(times)}×" for one, times in off[:NAMED])
        more = f" and {len(off) - NAMED} more" if len(off) > NAMED else ""
        yield AnswerRow(
            "Newest study",
            f"{told}{more} of the level before.",
            f"No change yet: that takes {LEAST} studies.",
        )


def _drifts(history: History) -> Iterator[AnswerRow]:
    drifting = [one for one in history.series if one.course.drift is not None]
    if drifting:
        told = [
            f"{one.name}: {one.spoken} {multiple(one.course.drift or 1)}× from the first study on"
            for one in drifting
        ]
        more = f"; and {len(told) - NAMED} more" if len(told) > NAMED else ""
        yield AnswerRow("Drift", f"{'; '.join(told[:NAMED])}{more}.", "Without a step: little by little.")


def _outliers(history: History) -> Iterator[AnswerRow]:
    """Single studies that stand out in several figures, those with the most first."""
    off = [
        one.studies[at]
        for one in history.series
        for at in one.course.outlying
        if at < len(one.values) - (LEAST - 1)
    ]
    by_name = grouped(off, lambda it: it.side.name)
    if most := sorted((it for it in by_name.items() if len(it[1]) > 1), key=lambda it: -len(it[1])):
        named = ", ".join(f"{place} ({plural(len(of), 'figure')})" for place, of in most[:NAMED])
        more = f" and {len(most) - NAMED} more" if len(most) > NAMED else ""
        yield AnswerRow(
            "Outliers", f"{named}{more}.", "The studies before and after are alike, so no change."
        )


def changes_table(found: Sequence[Occasion]) -> Table:
    """One row for each change, the newest first."""
    rows = [_changes_row(occasion, one, change) for occasion in found for one, change in occasion.changes]
    return table_of(
        "Since when, and by how much",
        ("cell", "since", "measure", "ratio (95 % CI)", "changed then"),
        rows,
        caption=f"Of the mean level of at least {LEAST} studies on each side; the chance of any false one in "
        f"all of this page is meant to be 5 % at most. {NO_CAUSE}",
        folded=len(rows) > MOST_ROWS,
    )


def _changes_row(occasion: Occasion, one: CellSeries, change: ChangePoint) -> tuple[object, ...]:
    ratio, facts = change.ratio, occasion.coincided
    since = f"{day(one.studies[change.at])}{_give_or_take(change)}"
    told = TableCell(f"{one.word(ratio.ratio)}, {ratio.times}", value=ratio.ratio)
    more = f"; and {len(facts) - 1} more" if len(facts) > 1 else ""
    return one.name, since, one.measure.title, told, f"{facts[0].text}{more}" if facts else MISSING


def _give_or_take(change: ChangePoint) -> str:
    """(−2, +1 studies): how far from it the change may be; empty where it can only be there."""
    if change.first == change.last:
        return ""
    return f" (−{change.at - change.first}, +{change.last - change.at} studies)"


def figures_table(every: Sequence[CellSeries]) -> Table:
    """One row for each series: its first level and its newest, and how much studies differ by themselves."""
    heads = (
        "cell",
        "measure",
        "unit",
        "studies",
        "first level",
        "newest level",
        "ratio",
        "varies by ± %",
        "changes",
    )
    rows = []
    for one in every:
        first, last, form = one.levels[0][2], one.levels[-1][2], form_of(one.measure)
        counts = (len(one.values), form(first), form(last), digits(last / first), digits(one.varies_pct))
        rows.append((one.name, one.measure.title, one.measure.unit, *counts, len(one.course.changes)))
    return table_of("Figures over time", heads, rows, numeric=range(3, 9))


def studies_table(history: History) -> Table:
    """One row for each study, the newest first, with what changed since the one before of its name."""
    rows = []
    for of in grouped(history.studies, lambda it: it.name).values():
        for before, study in zip([None, *of], of, strict=False):
            rows.append((study, _since(before, study) if before else "first"))
    rows.sort(key=lambda row: row[0].began, reverse=True)
    told = (
        (study.utc, study.side.name, len(study.side.rows), _tainted(study), changed)
        for study, changed in rows
    )
    return table_of(
        "All studies",
        ("began, UTC", "study", "runs", "invalidated", "changed since the one before"),
        told,
        numeric=(2, 3),
    )


def _tainted(study: PastStudy) -> int:
    return sum(bool(row.disqualified) for row in study.side.rows)


def _since(before: PastStudy, study: PastStudy) -> str:
    """The first few facts that differ."""
    found: dict[str, str] = {}
    for endpoint in dict.fromkeys(row.endpoint for row in study.side.rows):
        old, new = before.facts(endpoint), study.facts(endpoint)
        if any(row.endpoint == endpoint for row in before.side.rows):
            found |= {
                what: f"{what} {old.get(what, MISSING)} → {new.get(what, MISSING)}"
                for what in {**old, **new}
                if old.get(what) != new.get(what)
            }
    more = f"; and {len(found) - FACTS} more" if len(found) > FACTS else ""
    return "; ".join(list(found.values())[:FACTS]) + more or MISSING


def skipped_table(history: History) -> Table:
    """Why each that is left out is."""
    rows = (text.partition(": ")[::2] for text in history.skipped)
    return table_of("Left out", ("folder", "why"), rows)


def day(study: PastStudy) -> str:
    """24 Nov 2026."""
    return f"{study.began:%-d %b %Y}"


def is_worse(history: History) -> bool:
    """Whether a change for the worse stands, of anything that clients see."""
    return any(one.regressed and not history.over(one) for one in history.series)
