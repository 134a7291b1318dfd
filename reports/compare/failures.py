"""The share of failed requests on two sides, of the cells in which some side has any."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean, variance

from reports.cells_csv.rows import Row
from reports.cells_csv.sides import Side
from reports.compare.matching import INCONCLUSIVE, NONE_SHOWN, UNCONFIRMED, Figure
from reports.compare.tables import verdict_head
from reports.format import MISSING, digits
from reports.page.table import Table, table_of
from reports.stats.log_ratio import half_width
from reports.stats.repeats import COMPARABLE_RUNS

FEWER, MORE = "fewer failures", "more failures"


@dataclass(frozen=True)
class Failures:
    """What part of the requests failed in each repeat of a cell, from 0 to 1, base and other."""

    cell: str
    base: Figure
    other: Figure

    @property
    def any(self) -> bool:
        """Whether a request failed on either side."""
        return any((*self.base.values, *self.other.values))

    @property
    def verdict(self) -> str:
        """By whether the 95 % interval of the difference of the mean shares leaves 0 out."""
        if not self.any:
            return NONE_SHOWN
        if min(len(self.base.values), len(self.other.values)) < COMPARABLE_RUNS:
            return INCONCLUSIVE
        apart = fmean(self.other.values) - fmean(self.base.values)
        if abs(apart) <= self.reach:
            return NONE_SHOWN
        return MORE if apart > 0 else FEWER

    @property
    def said(self) -> str:
        """The verdict as readers meet it: open only where a side has one run."""
        return f"{UNCONFIRMED}: 1 run" if self.verdict == INCONCLUSIVE else self.verdict

    @property
    def reach(self) -> float:
        """How far that interval reaches to each side, where a request failed and both have repeats.

        Welch's interval of the repeats, to whose variance that of chance is added, p (1 - p) / n of each run
        with p over all, and Yates's correction added to it: repeats that came out alike tell nothing of how
        few requests failed. Source of the correction: F. Yates, Contingency tables involving small numbers
        and the χ² test, Supplement to the Journal of the Royal Statistical Society 1 (1934).
        """
        sides = (self.base, self.other)
        tried = [[row.numbers["requests"] for row in side.rows] for side in sides]
        failed = sum(row.numbers["failures"] for side in sides for row in side.rows)
        share = failed / sum(sum(side) for side in tried)
        chance = share * (1 - share) * sum(sum(1 / n for n in side) / len(side) ** 2 for side in tried)
        errors = [variance(side.values) / len(side.values) for side in sides]
        step = sum(1 / sum(side) for side in tried) / 2
        return half_width(errors, [len(side) for side in tried], chance) + step


def failures(base: Side, other: Side) -> Iterator[Failures]:
    """One for each cell whose requests both sides counted, disqualified repeats too: failures disqualify."""
    for cell in base.cells:
        below, above = (_figure(side.cells.get(cell, ())) for side in (base, other))
        if below.rows and above.rows:
            yield Failures(cell, below, above)


def _figure(rows: Sequence[Row]) -> Figure:
    known = [row for row in rows if row.numbers.get("requests") and "failures" in row.numbers]
    return Figure(tuple(known), tuple(row.numbers["failures"] / row.numbers["requests"] for row in known))


def failures_table(base: Side, others: Sequence[Side]) -> Table:
    """One row for each cell in which a request failed on some side."""
    by_side = [{it.cell: it for it in failures(base, side)} for side in others]
    cells = [cell for cell in base.cells if any(cell in of and of[cell].any for of in by_side)]
    heads = ["cell", f"{base.short} %"]
    for side in others:
        heads += [f"{side.short} %", verdict_head(base, side, others)]
    return table_of(
        "Failed requests",
        heads,
        (_failure_row(cell, [of.get(cell) for of in by_side]) for cell in cells),
        caption="Percent of the requests, mean of all repeats; lower is better. A verdict needs two runs on "
        "each side and rests on the 95 % CI of the difference, which allows for how much the repeats vary "
        "and for how few requests there were. Cells without a failure are left out.",
        numeric=(1, *(2 + 2 * at for at in range(len(others)))),
    )


def _failure_row(cell: str, found: Sequence[Failures | None]) -> tuple[str, ...]:
    shown = [(digits(mean_pct(it.other)), it.said) if it else (MISSING, MISSING) for it in found]
    base = next(it.base for it in found if it)
    return cell, digits(mean_pct(base)), *(text for texts in shown for text in texts)


def mean_pct(side: Figure) -> float:
    """The mean of one side's shares in percent."""
    return 100 * sum(side.values) / len(side.values)
