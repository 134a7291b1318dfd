"""The share of failed requests of each cell, on two sides."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean, variance

from reports.cells_csv.side import Row, Side
from reports.compare.matching import INCONCLUSIVE, NONE_SHOWN
from reports.page.grid import COMPARABLE_RUNS
from reports.stats.log_ratio import half_width

FEWER, MORE = "fewer failures", "more failures"


@dataclass(frozen=True)
class Failures:
    """What part of the requests failed in each repeat of a cell, from 0 to 1, base and other."""

    cell: str
    base: tuple[float, ...]
    other: tuple[float, ...]
    base_rows: tuple[Row, ...]
    other_rows: tuple[Row, ...]

    @property
    def any(self) -> bool:
        """Whether a request failed on either side."""
        return any((*self.base, *self.other))

    @property
    def verdict(self) -> str:
        """By whether the 95 % interval of the difference of the mean shares leaves 0 out."""
        if not self.any:
            return NONE_SHOWN
        if min(len(self.base), len(self.other)) < COMPARABLE_RUNS:
            return INCONCLUSIVE
        apart = fmean(self.other) - fmean(self.base)
        if abs(apart) <= self.reach:
            return NONE_SHOWN
        return MORE if apart > 0 else FEWER

    @property
    def reach(self) -> float:
        """How far that interval reaches to each side, where a request failed and both have repeats.

        Welch's interval of the repeats, to whose variance that of chance is added, p (1 - p) / n of each run
        with p over all, and Yates's correction added to it: repeats that came out alike tell nothing of how
        few requests failed. Source of the correction: F. Yates, Contingency tables involving small numbers
        and the χ² test, Supplement to the Journal of the Royal Statistical Society 1 (1934).
        """
        tried = [[row.numbers["requests"] for row in rows] for rows in (self.base_rows, self.other_rows)]
        rows = (*self.base_rows, *self.other_rows)
        share = sum(row.numbers["failures"] for row in rows) / sum(row.numbers["requests"] for row in rows)
        chance = share * (1 - share) * sum(sum(1 / n for n in side) / len(side) ** 2 for side in tried)
        errors = [variance(shares) / len(shares) for shares in (self.base, self.other)]
        step = sum(1 / sum(side) for side in tried) / 2
        return half_width(errors, (len(self.base), len(self.other)), chance) + step


def failures(base: Side, other: Side) -> Iterator[Failures]:
    """One for each cell whose requests both sides have counted; disqualified repeats count, since failures
    disqualify.
    """
    for cell in base.cells:
        below, above = (_counted(side.cells.get(cell, ())) for side in (base, other))
        if below and above:
            yield Failures(cell, _shares(below), _shares(above), below, above)


def _counted(rows: Sequence[Row]) -> tuple[Row, ...]:
    return tuple(row for row in rows if row.numbers.get("requests") and "failures" in row.numbers)


def _shares(rows: Sequence[Row]) -> tuple[float, ...]:
    return tuple(row.numbers["failures"] / row.numbers["requests"] for row in rows)
