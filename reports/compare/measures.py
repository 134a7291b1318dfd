"""What is compared of a cell: images per second and latencies, each with what a higher one means."""

from dataclasses import dataclass

from reports.caveats.run import ENOUGH
from reports.cells_csv.side import Row


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
