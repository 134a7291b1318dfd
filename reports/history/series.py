"""A series: one measure of one cell over all studies that may be compared, and what became of it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from math import exp, log, sqrt
from statistics import fmean
from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

from reports.cells_csv.rows import Row
from reports.compare.matching import FASTER, MEASURES, P50, RATE, SLOWER, TAILS, Measure
from reports.format import digits
from reports.history.changes import LEAST, LEAST_EFFECT, ChangePoint, Course, courses
from reports.history.reading import PastStudy
from reports.ledger.axes import of_trait
from reports.stats.repeats import grouped

SERVER = (
    Measure("server_queue_ms", "Server queue, mean", "ms"),
    Measure("server_compute_ms", "Server compute, mean", "ms"),
)
GPU = (
    Measure("gpu_util_pct", "GPU use", "%"),
    Measure("gpu_power_w", "GPU power", "W"),
    Measure("gpu_memory_bytes", "GPU memory", "bytes"),
)
FOLLOWED = (RATE, P50, *TAILS, *SERVER, *GPU)
"""Columns of cells.csv whose course is told."""
MORE, LESS = "higher", "lower"
SAME = (
    *(
        "size",
        "images.sha256",
        "cpu",
        "cpu.*",
        "cores",
        "gpus",
        "link.name",
        "endpoints.*.model",
        "endpoints.*.emulated",
    ),
    *("options.load_profile", *(f"options.{name}" for name in of_trait("condition"))),
)
"""What studies of one series have in common besides study, cell, payload and link: another machine begins
another series, since machines that take turns would hide any change. All else may be why a figure changed.
"""


class CellRows(NamedTuple):
    """A cell of a study: one of its rows, what its studies have in common, and the valid repeats of each."""

    study: str
    row: Row
    conditions: Mapping[str, str]
    past: list[tuple[PastStudy, Sequence[Row]]]


UNTOLD = Course((), frozenset())


@dataclass(frozen=True)
class CellSeries:
    """Studies in order of time, and what each has of a measure: the geometric mean of so many repeats.

    `conditions` are those of SAME by name; `told_apart` says them where the cell has several series.
    """

    study: str
    cell: str
    endpoint: str
    measure: Measure
    conditions: Mapping[str, str]
    studies: tuple[PastStudy, ...]
    values: tuple[float, ...]
    runs: tuple[int, ...]
    course: Course = UNTOLD
    told_apart: str = ""

    @property
    def name(self) -> str:
        """Of the cell, and what tells it from others of the same name."""
        return f"{self.cell} ({self.told_apart})" if self.told_apart else self.cell

    @property
    def levels(self) -> list[tuple[int, int, float]]:
        """The stretches between changes, as begin, end and geometric mean without outliers."""
        return [
            (
                begin,
                end,
                exp(
                    fmean(log(self.values[at]) for at in range(begin, end) if at not in self.course.outlying)
                ),
            )
            for begin, end in self.course.levels(len(self.values))
        ]

    def newest_off(self, chance: float) -> float | None:
        """As many times its level as its newest study has; None where chance does it, or little is known.

        By Student's t of one more study, which a second one like it must not hide.
        """
        begin, end, _ = self.levels[-1]
        before = np.log([self.values[at] for at in range(begin, end - 2) if at not in self.course.outlying])
        if len(before) < 2 * LEAST:
            return None
        off, sd = log(self.values[-1]) - float(before.mean()), float(before.std(ddof=1))
        wide = -float(stdtrit(len(before) - 1, chance / 2)) * sd * sqrt(1 + 1 / len(before))
        return exp(off) if abs(off) > max(wide, log(LEAST_EFFECT)) else None

    @property
    def varies_pct(self) -> float:
        """By how many percent studies differ by themselves: the standard deviation around their levels."""
        off = [
            log(self.values[at] / level)
            for begin, end, level in self.levels
            for at in range(begin, end)
            if at not in self.course.outlying
        ]
        return 100 * (exp(float(np.std(off))) - 1)

    @property
    def spoken(self) -> str:
        """Its measure as sentences have it: p50, server queue, GPU power."""
        if self.measure in MEASURES:
            return self.measure.spoken
        return self.measure.title.partition(",")[0].replace("Server", "server")

    def word(self, ratio: float) -> str:
        """What a ratio of this measure is: faster or slower, or of a GPU higher or lower."""
        if self.measure in GPU:
            return MORE if ratio > 1 else LESS
        return FASTER if (ratio > 1) == self.measure.more_is_faster else SLOWER

    def ended(self, change: ChangePoint) -> int | None:
        """The first study of a later level nearer to the one before the change; None where none is."""
        levels = self.levels
        (now,) = (at for at, (begin, _, _) in enumerate(levels) if begin == change.at)
        middle = sqrt(levels[now - 1][2] * levels[now][2])
        later = (begin for begin, _, level in levels[now:] if (level > middle) != (change.ratio.ratio > 1))
        return next(later, None)

    def stands_worse(self, change: ChangePoint) -> bool:
        """Whether a change was for the worse, and has not ended."""
        return self.word(change.ratio.ratio) == SLOWER and self.ended(change) is None

    @property
    def regressed(self) -> bool:
        """Whether a change for the worse stands, of what clients see."""
        return self.measure in MEASURES and any(map(self.stands_worse, self.course.changes))


def form_of(measure: Measure) -> Callable[[float], str]:
    """How its values are written."""
    return digits if measure in GPU else measure.form


def told_series(
    studies: Sequence[PastStudy],
    measures: Sequence[Measure],
    chosen: Callable[[str], bool],
    least_effect: float,
) -> list[CellSeries]:
    """The series of all chosen cells with their courses, in the order of studies and cells."""
    cells = _by_cell(studies, chosen)
    found = (_series(cell, measure) for measure in measures for cell in cells)
    every = _told_apart([one for one in found if one])
    groups = list(grouped(every, lambda one: (one.study, one.measure.column)).values())
    logs = [[np.log(np.array(one.values)) for one in group] for group in groups]
    became = courses(logs, least_effect)
    return [
        replace(one, course=course)
        for group, told in zip(groups, became, strict=True)
        for one, course in zip(group, told, strict=True)
    ]


def _by_cell(studies: Sequence[PastStudy], chosen: Callable[[str], bool]) -> list[CellRows]:
    """The repeats of each chosen cell, from all studies that may be compared."""
    found: dict[tuple[str, ...], CellRows] = {}
    for study in studies:
        conditions = {name: same(study, name) for name in {row.endpoint for row in study.side.rows}}
        for cell, rows in study.side.cells.items():
            if chosen(cell):
                row = rows[0]
                facts = {**conditions[row.endpoint], "payload": row.payload, "protocol": row.protocol}
                key = (study.name, cell, *map("=".join, facts.items()))
                counting = [one for one in rows if not one.disqualified]
                found.setdefault(key, CellRows(study.name, row, facts, [])).past.append((study, counting))
    return list(found.values())


def _series(one: CellRows, measure: Measure) -> CellSeries | None:
    """A measure of a cell; None where no study has it."""
    points = []
    for study, rows in one.past:
        if logs := [log(value) for row in rows if (value := counted(row, measure)) is not None]:
            points.append((study, exp(fmean(logs)), len(logs)))
    if not points:
        return None
    past, values, runs = zip(*points, strict=True)
    row = one.row
    return CellSeries(one.study, row.cell, row.endpoint, measure, one.conditions, past, values, runs)


def counted(row: Row, measure: Measure) -> float | None:
    """Its value; None where it has none, or too few results for it."""
    few = measure.least and row.succeeded is not None and row.succeeded < measure.least
    return None if few else measure.of(row)


def same(study: PastStudy, endpoint: str) -> dict[str, str]:
    """What a study states of SAME for one of its endpoints."""
    told = study.facts(endpoint)
    return {what: told[what] for what in told if any(fnmatchcase(what, must) for must in SAME)}


def _told_apart(every: Sequence[CellSeries]) -> list[CellSeries]:
    """With what differs among the series of one cell, and the study where there are several."""
    found, several = [], len({one.study for one in every}) > 1
    for of in grouped(every, lambda one: (one.study, one.cell, one.measure)).values():
        names = dict.fromkeys(name for one in of for name in one.conditions)
        differing = [name for name in names if len({one.conditions.get(name) for one in of}) > 1]
        for one in of:
            told = [f"{name} {one.conditions.get(name, 'not stated')}" for name in differing]
            found.append(replace(one, told_apart="; ".join([*([one.study] if several else []), *told])))
    return found
