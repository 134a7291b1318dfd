"""The share of failed requests of each cell, on two sides."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import exp

from reports.analysis.log_ratio import log_ratio
from reports.compare.matching import INCONCLUSIVE, NONE_SHOWN
from reports.compare.side import Row, Side
from reports.tables.grid import COMPARABLE_RUNS

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
        """By Welch's interval of the difference of the shares, which is that of the logs of their powers."""
        if not self.any:
            return NONE_SHOWN
        if min(len(self.base), len(self.other)) < COMPARABLE_RUNS:
            return INCONCLUSIVE
        apart = log_ratio([exp(share) for share in self.other], [exp(share) for share in self.base])
        if not apart.significant:
            return NONE_SHOWN
        return MORE if apart.ratio > 1 else FEWER


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
