"""The cells of one side beside those of another: both values, their ratio with its interval, a verdict."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from reports.caveats.run import ENOUGH
from reports.cells_csv.rows import Row
from reports.cells_csv.sides import Side
from reports.stats.log_ratio import LogRatio, log_ratio
from reports.stats.repeats import COMPARABLE_RUNS

FASTER, SLOWER, NONE_SHOWN, INCONCLUSIVE = "faster", "slower", "no difference shown", "inconclusive"
VERDICTS = (FASTER, SLOWER, NONE_SHOWN, INCONCLUSIVE)


@dataclass(frozen=True)
class Measure:
    """A column of cells.csv; `least` is how many results must be behind it.

    `instead_of` is another that a cell must lack on a side for this one to be compared.
    """

    column: str
    title: str
    unit: str
    more_is_faster: bool = False
    least: int = 0
    instead_of: str = ""

    @property
    def direction(self) -> str:
        """What its ratio means, in a sentence."""
        if self.more_is_faster:
            return "Higher is better: a ratio above 1 means faster than the base."
        return "Lower is better: a ratio above 1 means slower than the base."

    def of(self, row: Row) -> float | None:
        """The row's value; None where it is unknown, not above 0, or only what was asked for."""
        if self.more_is_faster and row.load != "closed":
            return None
        value = row.numbers.get(self.column)
        return value if value is not None and value > 0 else None


RATE = Measure("images_per_s", "Images per second", "images/s", more_is_faster=True)
P50 = Measure("latency_p50_ms", "Latency, p50", "p50 ms")
MAIN = (RATE, P50, Measure("latency_mean_ms", "Latency, mean", "mean ms", instead_of=P50.column))
TAILS = (
    Measure("latency_p95_ms", "Latency, p95", "p95 ms", least=ENOUGH["p95"]),
    Measure("latency_p99_ms", "Latency, p99", "p99 ms", least=ENOUGH["p99"]),
)
MEASURES = (*MAIN, *TAILS)


@dataclass(frozen=True)
class Figure:
    """What one side has of a cell: the repeats that count, and their values."""

    rows: tuple[Row, ...]
    values: tuple[float, ...]

    @property
    def median(self) -> float:
        """Of the values, which are at least one."""
        return median(self.values)


@dataclass(frozen=True)
class Match:
    """One measure of one cell on two sides; `ratio` is other over base, of the repeats' geometric means.

    `doubts` are the reasons why the verdict is inconclusive.
    """

    cell: str
    measure: Measure
    base: Figure
    other: Figure
    ratio: LogRatio
    verdict: str
    doubts: tuple[str, ...]


def matches(base: Side, other: Side, measures: Sequence[Measure] = MEASURES) -> Iterator[Match]:
    """Each of some measures that both have of a cell, measure by measure, in order of the base's cells."""
    for measure in measures:
        for cell in base.cells:
            if found := _match(cell, measure, base.cells[cell], other.cells.get(cell, ())):
                yield found


def _match(cell: str, measure: Measure, base: Sequence[Row], other: Sequence[Row]) -> Match | None:
    if measure.instead_of and all(
        any(measure.instead_of in row.numbers for row in rows) for rows in (base, other)
    ):
        return None
    figures = [figure(rows, measure) for rows in (base, other)]
    below, above = figures
    if not below.values or not above.values:
        return None
    ratio = log_ratio(above.values, below.values)
    doubts = tuple(dict.fromkeys(doubts_of(measure, figures)))
    return Match(cell, measure, below, above, ratio, _verdict(measure, ratio, doubts), doubts)


def figure(rows: Sequence[Row], measure: Measure) -> Figure:
    """The repeats that have the measure and nothing that disqualifies, or all where none is free."""
    known = [row for row in rows if measure.of(row) is not None]
    kept = [row for row in known if not row.disqualified] or known
    return Figure(tuple(kept), tuple(value for row in kept if (value := measure.of(row)) is not None))


def doubts_of(measure: Measure, figures: Sequence[Figure]) -> Iterator[str]:
    """Why no verdict can rest on them, reasons that come again included."""
    rows = [row for found in figures for row in found.rows]
    yield from (f"{caveat.code}: {caveat.advice}" for row in rows for caveat in row.disqualified)
    if any(row.succeeded is not None and row.succeeded < measure.least for row in rows):
        yield f"inconclusive: fewer than {measure.least:,} results in a run are too few for this percentile"
    if single := [found for found in figures if len(found.values) < COMPARABLE_RUNS]:
        # Repeats would tell, save where a run was published by others.
        mend = "" if any(row.source for found in single for row in found.rows) else "; --repeats 5 would tell"
        yield f"inconclusive: with one run on a side, a difference may be chance{mend}"


def _verdict(measure: Measure, ratio: LogRatio, doubts: Sequence[str]) -> str:
    if doubts:
        return INCONCLUSIVE
    if not ratio.significant:
        return NONE_SHOWN
    return FASTER if (ratio.ratio > 1) == measure.more_is_faster else SLOWER
