"""How values of a column are written: in its unit, as percent, or as so many times."""

from dataclasses import dataclass

from reports.format import digits
from reports.gates.columns import FAILURE_RATIO, UNEXPLAINED_SHARE

_ENDINGS = {"_ms": " ms", "_pct": " %", "_per_s": "/s", "_bytes": " bytes", "_w": " W"}


@dataclass(frozen=True)
class Unit:
    """What stands behind a number, and what a value is multiplied by to become one."""

    name: str
    factor: float = 1.0

    def number(self, value: float) -> str:
        """To three digits, without the unit."""
        return digits(self.factor * value)

    def text(self, value: float) -> str:
        """With the unit."""
        return f"{self.number(value)}{self.name}"


def unit_of(column: str, ratio: bool) -> Unit:
    """The unit of a column's values, or of ratios of them."""
    if ratio:
        return Unit("×")
    if column in (FAILURE_RATIO, UNEXPLAINED_SHARE):
        return Unit(" %", 100)
    if column == "measure_s":
        return Unit(" s")
    return Unit(next((unit for ending, unit in _ENDINGS.items() if column.endswith(ending)), ""))
