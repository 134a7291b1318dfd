"""Classes of requests within a cell, such as its batch sizes: shares, percentiles, failures of each."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from reports.fold.records import ratio
from reports.format import MISSING, counted, digits, milliseconds, multiple
from reports.page.answer import answered
from reports.page.question import Question, Theme
from reports.page.study_table import (
    WITH_INTERVAL,
    Columns,
    StudyNotes,
    cell,
    few_samples,
    study_table,
    text,
)
from reports.page.table import Table, TableCell
from reports.stats.percentiles import CellFigure, behind, pooled_of
from reports.stats.repeats import Runs, by_cell, taints
from reports.study.study import Study
from reports.summary.classes import ClassFigures, in_order
from reports.summary.goodput import share_said
from reports.summary.summary import LatencyAt

WHOLE = ""
"""The label of the row of a cell's requests all together."""
LEAST_RATIO = 1.05
"""Of two classes' percentiles, below which neither is called the slower one."""


@dataclass(frozen=True)
class ClassRow:
    """One class of a cell, all `runs` that its figures rest on together; `label` is WHOLE for all of them."""

    study: Study
    runs: Runs
    label: str

    @property
    def figures(self) -> list[ClassFigures]:
        """Those of each run, of which a run without such a request has none."""
        return [one for run in self.runs for one in run.classes if self.label in (WHOLE, one.label)]

    @property
    def asked(self) -> float | None:
        """The planned share; None of the whole, and of classes whose share is not planned."""
        return None if self.label == WHOLE else self.figures[0].asked

    @property
    def share(self) -> float | None:
        """Of the cell's requests that came back."""
        every = sum(one.requests for run in self.runs for one in run.classes)
        return ratio(self.requests, every)

    @property
    def requests(self) -> int:
        """That came back."""
        return sum(one.requests for one in self.figures)

    @property
    def failures(self) -> int:
        """Of those."""
        return sum(one.failures for one in self.figures)

    @property
    def good(self) -> float | None:
        """The share of those that were good by --slo; None without one."""
        each = [(one.goodput_share, one.requests) for one in self.figures]
        if not each or any(share is None for share, _ in each):
            return None
        return ratio(sum((share or 0.0) * requests for share, requests in each), self.requests)

    def latency(self, name: str) -> CellFigure | None:
        """A percentile, `p50` to `p99`, of the latency of all its successes together; None of too few."""
        blocks = [self.study.blocks[run.cell, run.repeat] for run in self.runs]
        return pooled_of([one.of_class(self.label) if self.label else one for one in blocks], name)


def class_rows(study: Study) -> Iterator[list[ClassRow]]:
    """Of each cell whose requests are not all alike: the whole, then each class."""
    ordered = study.ordered(study.started, lambda run: (run.load, run.level))
    for runs in by_cell(run for run in ordered if run.classes).values():
        rested = behind(runs, LatencyAt("p50")) or runs
        labels = in_order({one.label for run in rested for one in run.classes})
        yield [ClassRow(study, rested, label) for label in (WHOLE, *labels)]


def _percentile(name: str) -> Columns[ClassRow]:
    def shown(row: ClassRow, notes: StudyNotes) -> TableCell:
        found = row.latency(name)
        if found is None:
            return TableCell(MISSING, notes.marks([f"too few successes of the class for {name}"]))
        told = found.said(milliseconds) if name in WITH_INTERVAL else milliseconds(found.value)
        return TableCell(f"{told}{few_samples(name, found.results)}", value=found.value)

    return cell(f"{name} ms", shown)


def _share(value: float | None) -> str:
    return MISSING if value is None else f"{digits(100 * value)} %"


def _asked(row: ClassRow) -> str:
    return "" if row.label == WHOLE else _share(row.asked)


COLUMNS: Sequence[Columns[ClassRow]] = (
    cell(
        "cell", lambda row, notes: TableCell(row.runs[0].cell, notes.marks(taints(row.runs))), numeric=False
    ),
    text("class", lambda row: row.label or "all", numeric=False),
    text("asked", _asked),
    text("measured", lambda row: _share(row.share)),
    text("requests", lambda row: counted(row.requests)),
    *map(_percentile, ("p50", "p95", "p99")),
    text("failed", lambda row: counted(row.failures)),
)
GOOD: Columns[ClassRow] = text("good", lambda row: MISSING if row.good is None else share_said(row.good))


def request_classes(study: Study) -> Table | None:
    """One row for each class of each cell, below the cell's own; None where all requests are alike."""
    rows = [row for rows in class_rows(study) for row in rows]
    if not rows:
        return None
    good = any(row.good is not None for row in rows)
    caption = (
        "Requests of one cell by class: batch sizes (b4: 4 items), kinds of pictures, or both. Percentiles "
        "are of latency, merged from all workers and repeats; arrivals that were dropped are in no class."
    )
    within = " Good is the share of a class's requests that succeeded within the limit of --slo."
    columns, told = ((*COLUMNS, GOOD), caption + within) if good else (COLUMNS, caption)
    return study_table(study, "Request classes", told, columns, rows)


def class_finding(study: Study) -> str:
    """Of each way, in its cell with the most load, which class is the slowest, and by how much."""
    found = {rows[0].runs[0].way: rows for rows in class_rows(study) if not _doubted(rows[0])}
    said = [f"{study.named(way)}: {told}" for way, rows in found.items() if (told := _slowest(rows))]
    return f"{'; '.join(said)}." if said else ""


def _doubted(row: ClassRow) -> bool:
    return all(run.tainted for run in row.runs)


def _slowest(rows: Sequence[ClassRow]) -> str:
    """By p95, or by p50 where not every class has one; empty where these do not either.

    A class is called slower where its interval is above that of the quickest.
    """
    for name in ("p95", "p50"):
        known = [(row.latency(name), row.label) for row in rows if row.label]
        each = [(found, label) for found, label in known if found]
        if len(each) == len(known) > 1:
            least, quick = min(each, key=lambda it: it[0].value)
            most, slow = max(each, key=lambda it: it[0].value)
            if not _apart(least, most):
                return f"no class is shown to be slower ({name} {milliseconds(most.value)} ms at most)"
            times = multiple(most.value / least.value)
            both = f"{most.said(milliseconds, ' ms', '95 % CI ')} against {least.said(milliseconds, ' ms')}"
            return f"{slow} is slowest, {times} times as slow as {quick}, by {name} {both}"
    return ""


def _apart(least: CellFigure, most: CellFigure) -> bool:
    ends = most.value if most.low is None else most.low, least.value if least.high is None else least.high
    return least.value > 0 and most.value / least.value >= LEAST_RATIO and ends[0] > ends[1]


CLASSES = Question(
    "request-classes",
    "Results",
    (request_classes,),
    answered("Slowest requests", class_finding),
    Theme.SPEED,
    place=8,
)
