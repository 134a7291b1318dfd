"""The cells of a candidate beside those of the base: both values, their ratio with its 95 % CI, a verdict."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median

from reports.cells_csv.rows import Row
from reports.cells_csv.sides import Side
from reports.format import digits, milliseconds, plural
from reports.histogram.percentiles import ENOUGH
from reports.stats.failures import too_many
from reports.stats.log_ratio import LogRatio, log_ratio
from reports.stats.paired import LEAST_REPEATS, NOT_SIGNIFICANT, told_apart, with_least_error
from reports.stats.repeats import CONFIRM, grouped

FASTER, SLOWER, NONE_SHOWN, INCONCLUSIVE = "faster", "slower", "no difference shown", "inconclusive"
"""Contract: the values of compare.csv."""
SPOKEN = {NONE_SHOWN: NOT_SIGNIFICANT}
"""How readers meet one of them."""
UNCONFIRMED, INVALID = "unconfirmed", "invalid"
"""How readers meet what is inconclusive: with a magnitude, or not at all."""
ALIKE = "about the same"
MAGNITUDES = ((1.05, ALIKE), (1.25, "small"), (2.0, "medium"))
"""How large a ratio is, up to and including so many times; above the last it is large."""
LARGE = "large"


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
    def spoken(self) -> str:
        """As sentences have it."""
        return {"images_per_s": "images per second"}.get(self.column, self.title.rpartition(" ")[2])

    @property
    def form(self) -> Callable[[float], str]:
        """How its values are written."""
        return digits if self.more_is_faster else milliseconds

    @property
    def direction(self) -> str:
        """What its ratio means, in a sentence."""
        if self.more_is_faster:
            return "Higher is better: a ratio above 1 means that the candidate is faster."
        return "Lower is better: a ratio above 1 means that the candidate is slower."

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


def magnitude(ratio: float) -> str:
    """How large a ratio is in a word, whichever way round it was taken."""
    times = max(ratio, 1 / ratio)
    return next((word for most, word in MAGNITUDES if times <= most), LARGE)


@dataclass(frozen=True)
class Doubt:
    """Why a verdict is inconclusive: in a word or two, in a sentence, and whether the number is invalid."""

    short: str
    text: str
    invalid: bool = False


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

    `verdict` is a value of compare.csv; `doubts` are the reasons why it is inconclusive.
    """

    cell: str
    measure: Measure
    base: Figure
    other: Figure
    ratio: LogRatio
    verdict: str
    doubts: tuple[Doubt, ...]

    @property
    def invalid(self) -> tuple[str, ...]:
        """The caveats that invalidate its numbers."""
        return tuple(doubt.short for doubt in self.doubts if doubt.invalid)

    @property
    def direction(self) -> str:
        """Which way the other side came out, whether or not that is confirmed."""
        if magnitude(self.ratio.ratio) == ALIKE:
            return ALIKE
        return FASTER if (self.ratio.ratio > 1) == self.measure.more_is_faster else SLOWER

    @property
    def kind(self) -> str:
        """The verdict as it is counted: what repeats confirm, or else which way it came out."""
        if self.invalid:
            return INVALID
        return f"{self.direction}, {UNCONFIRMED}" if self.doubts else SPOKEN.get(self.verdict, self.verdict)

    @property
    def said(self) -> str:
        """The verdict as readers meet it: faster; faster, large, unconfirmed: 1 run; invalid: failures."""
        if self.invalid:
            return f"{INVALID}: {', '.join(self.invalid)}"
        if not self.doubts:
            return self.kind
        size = magnitude(self.ratio.ratio)
        told = ALIKE if size == ALIKE else f"{self.direction}, {size}"
        return f"{told}, {UNCONFIRMED}: {', '.join(doubt.short for doubt in self.doubts)}"

    @property
    def speedup(self) -> LogRatio:
        """How many times as fast the other side is: the ratio, or for a latency one over it."""
        return self.ratio if self.measure.more_is_faster else self.ratio.inverse


def matches(base: Side, other: Side, measures: Sequence[Measure] = MEASURES) -> Iterator[Match]:
    """Each of some measures that both have of a cell, measure by measure, in order of the base's cells.

    Which differ is judged of all measures together, whichever are asked for: the chance that any of them is
    said to differ between two sides that do not is 5 %, by Holm. No error is
    taken as below half the middle one of its measure.
    """
    every = [
        found
        for measure in MEASURES
        for cell in base.cells
        if (found := _match(cell, measure, base.cells[cell], other.cells.get(cell, ())))
    ]
    tested = [it for it in every if not it.doubts]
    alike = grouped(tested, lambda it: it.measure).values()
    ratios = [ratio for of in alike for ratio in with_least_error([it.ratio for it in of])]
    ordered = [it for of in alike for it in of]
    apart = [it for it, told in zip(ordered, told_apart(ratios), strict=True) if told]
    return (_judged(it, it in apart) for it in every if it.measure in measures)


def _match(cell: str, measure: Measure, base: Sequence[Row], other: Sequence[Row]) -> Match | None:
    """What both have of a measure, not yet judged."""
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
    return Match(cell, measure, below, above, ratio, INCONCLUSIVE, doubts)


def figure(rows: Sequence[Row], measure: Measure) -> Figure:
    """The repeats that have the measure and nothing that disqualifies, or all where none is free.

    All, too, where more requests of the cell failed than one may have that is ranked.
    """
    known = [row for row in rows if measure.of(row) is not None]
    free = [row for row in known if not row.disqualified]
    failed, requests = (sum(row.numbers.get(name, 0.0) for row in rows) for name in ("failures", "requests"))
    kept = known if too_many(failed, requests) or not free else free
    return Figure(tuple(kept), tuple(value for row in kept if (value := measure.of(row)) is not None))


def doubts_of(measure: Measure, figures: Sequence[Figure]) -> Iterator[Doubt]:
    """Why no verdict can rest on them, reasons that come again included."""
    rows = [row for found in figures for row in found.rows]
    for caveat in (caveat for row in rows for caveat in row.disqualified):
        yield Doubt(caveat.code, f"{caveat.code}: {caveat.advice}", invalid=True)
    if any(row.succeeded is not None and row.succeeded < measure.least for row in rows):
        text = f"fewer than {measure.least:,} results in a run are too few for this percentile"
        yield Doubt("few results", f"{UNCONFIRMED}: {text}")
    if few := [found for found in figures if len(found.values) < LEAST_REPEATS]:
        # A rerun would tell, except where a run was published by others.
        fix = "" if any(row.source for found in few for row in found.rows) else f"; {CONFIRM}"
        fewest = plural(min(len(found.values) for found in few), "run")
        yield Doubt(fewest, f"{UNCONFIRMED}: with {fewest} on a side, a difference may be chance{fix}")


def _judged(it: Match, apart: bool) -> Match:
    """With its verdict, given whether its ratio differs significantly from 1."""
    if it.doubts:
        return it
    faster = (it.ratio.ratio > 1) == it.measure.more_is_faster
    return replace(it, verdict=NONE_SHOWN if not apart else FASTER if faster else SLOWER)
