"""How what the options name of an axis is read, and how cells cross with it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from reports.ledger.axes import NO_LINK, UNSET
from reports.ledger.axes import Topology as Topology
from swarm.plan.cell import Cell


@dataclass(frozen=True)
class AxisOption:
    """How an option sets the field of its name in cells: to one value, or to several that are compared.

    `read` makes a value of what stands between commas, or raises ValueError with what to give. `applies`:
    whether a cell can have one, and `of` what such a cell is of.
    """

    read: Callable[[str], Any]
    applies: Callable[[Cell], bool] = lambda cell: True
    of: str = ""

    def values(self, text: str) -> tuple[Any, ...]:
        """What stands between commas, each value once; none for an empty text. Raises ValueError."""
        parts = [part.strip() for part in text.split(",") if part.strip()]
        return tuple(dict.fromkeys(map(self.read, parts or [""]))) if text.strip() else ()

    def settled(self, cell: Cell, field: str) -> bool:
        """Whether the cell has a value of its own, or can have none."""
        return not self.applies(cell) or getattr(cell, field) != UNSET[field]


@dataclass(frozen=True)
class Varied:
    """What the options name of one axis; `values` is empty where they name nothing."""

    field: str
    option: AxisOption
    values: tuple[Any, ...]

    def over(self, cell: Cell) -> list[Cell]:
        """The cell with each of the values, named where there are several; as it is where it has its own."""
        if not self.values or self.option.settled(cell, self.field):
            return [cell]
        if len(self.values) == 1:
            return [replace(cell, **{self.field: self.values[0]})]
        return [cell.varied(**{self.field: value}) for value in self.values]


def cross(cells: Iterable[Cell], axes: Iterable[Varied]) -> list[Cell]:
    """Every cell with every value of every axis that applies; it keeps what its study has set itself."""
    found = list(cells)
    for axis in axes:
        found = [varied for cell in found for varied in axis.over(cell)]
    return found


def link(text: str) -> str:
    """`lan`; `none` is no link at all."""
    return "" if text == NO_LINK else text
