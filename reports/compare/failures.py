"""The share of failed requests on two sides, of the cells in which some side has any."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, variance

from scipy.special import stdtr

from reports.cells_csv.rows import Row
from reports.cells_csv.sides import Side
from reports.compare.matching import INCONCLUSIVE, NONE_SHOWN, SPOKEN, UNCONFIRMED, Figure
from reports.compare.tables import verdict_head
from reports.format import MISSING, digits, plural
from reports.page.table import Table, table_of
from reports.stats.log_ratio import welch
from reports.stats.paired import ALPHA, LEAST_REPEATS, holm

FEWER, MORE = "fewer failures", "more failures"


@dataclass(frozen=True)
class Failures:
    """What part of the requests failed in each repeat of a cell, from 0 to 1, base and other.

    `verdict` is judged of all cells together.
    """

    cell: str
    base: Figure
    other: Figure
    verdict: str = NONE_SHOWN

    @property
    def any(self) -> bool:
        """Whether a request failed on either side."""
        return any((*self.base.values, *self.other.values))

    @property
    def repeated(self) -> bool:
        """Whether both sides have runs enough to compare."""
        return self.fewest >= LEAST_REPEATS

    @property
    def fewest(self) -> int:
        """Runs of the side that has fewer."""
        return min(len(self.base.values), len(self.other.values))

    @property
    def apart(self) -> float:
        """By how much the mean share is higher on the other side."""
        return fmean(self.other.values) - fmean(self.base.values)

    @property
    def said(self) -> str:
        """The verdict as readers meet it: open only where a side has too few runs."""
        if self.verdict == INCONCLUSIVE:
            return f"{UNCONFIRMED}: {plural(self.fewest, 'run')}"
        return SPOKEN.get(self.verdict, self.verdict)

    @property
    def p_even(self) -> float:
        """How likely shares so far apart are of sides that fail alike, where both have repeats.

        Welch's t of the repeats, to whose variance that of chance is added, p (1 - p) / n of each run with p
        over all, and Yates's correction taken off the difference: repeats that came out alike tell nothing of
        how few requests failed. Source of the correction: F. Yates, Contingency tables involving small
        numbers and the χ² test, Supplement to the Journal of the Royal Statistical Society 1 (1934).
        """
        sides = (self.base, self.other)
        tried = [[row.numbers["requests"] for row in side.rows] for side in sides]
        failed = sum(row.numbers["failures"] for side in sides for row in side.rows)
        share = failed / sum(sum(side) for side in tried)
        chance = share * (1 - share) * sum(sum(1 / n for n in side) / len(side) ** 2 for side in tried)
        errors = [variance(side.values) / len(side.values) for side in sides]
        error, freedom = welch(errors, [len(side) for side in tried], chance)
        beyond = abs(self.apart) - sum(1 / sum(side) for side in tried) / 2
        return min(1.0, 2 * float(stdtr(freedom, -beyond / error))) if error else 1.0


def failures(base: Side, other: Side) -> Iterator[Failures]:
    """One for each cell whose requests both sides counted, disqualified repeats too: failures disqualify."""
    every = []
    for cell in base.cells:
        below, above = (_figure(side.cells.get(cell, ())) for side in (base, other))
        if below.rows and above.rows:
            every.append(Failures(cell, below, above))
    return judged(every)


def judged(every: Sequence[Failures]) -> Iterator[Failures]:
    """With their verdicts: the chance that any is told where both sides fail alike is 5 %, by Holm."""
    tested = [it for it in every if it.any and it.repeated]
    adjusted = dict(zip((it.cell for it in tested), holm([it.p_even for it in tested]), strict=True))
    for it in every:
        if it.any and not it.repeated:
            yield replace(it, verdict=INCONCLUSIVE)
        elif adjusted.get(it.cell, 1.0) <= ALPHA:
            yield replace(it, verdict=MORE if it.apart > 0 else FEWER)
        else:
            yield it


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
        caption="Percent of the requests, mean of all repeats; lower is better. A verdict needs "
        f"{LEAST_REPEATS} runs on each side and allows for how much the repeats vary, for how few requests "
        "there were, and, by Holm's method, for how many cells are compared. Cells without a failure are not "
        "shown.",
        numeric=(1, *(2 + 2 * at for at in range(len(others)))),
    )


def _failure_row(cell: str, found: Sequence[Failures | None]) -> tuple[str, ...]:
    shown = [(digits(mean_pct(it.other)), it.said) if it else (MISSING, MISSING) for it in found]
    base = next(it.base for it in found if it)
    return cell, digits(mean_pct(base)), *(text for texts in shown for text in texts)


def mean_pct(side: Figure) -> float:
    """The mean of one side's shares in percent."""
    return 100 * sum(side.values) / len(side.values)
