"""How what the options name of an axis is read, and how cells cross with it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from reports.ledger.axes import NO_LINK, UNSET
from reports.ledger.axes import Topology as Topology
from swarm.plan.cell import Cell
from users.backends.registry import compressions_of, shares_memory
from users.codecs.packing import ALGORITHMS
from users.load.assignment import LIBRARY
from users.load.mix import parse_batches

SYSTEM = "system"
"""Shared memory of the operating system, as Triton and perf_analyzer call it."""


@dataclass(frozen=True)
class AxisOption:
    """How an option sets the field of its name in cells: to one value, or to several that are compared.

    `read` makes a value of what stands between commas, or of all of it if `whole`, or raises ValueError with
    what to give. `applies`: whether a cell can have one, `of` what such a cell is of, and `fits` whether it
    can have this one.
    """

    read: Callable[[str], Any]
    applies: Callable[[Cell], bool] = lambda cell: True
    of: str = ""
    whole: bool = False
    fits: Callable[[Cell, Any], bool] = lambda cell, value: True

    def values(self, text: str) -> tuple[Any, ...]:
        """What stands between commas, each value once; none for an empty text. Raises ValueError."""
        if self.whole:
            return (self.read(text),) if text.strip() else ()
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
        fit = [value for value in self.values if self.option.fits(cell, value)]
        if len(self.values) == 1:
            return [replace(cell, **{self.field: value}) for value in fit] or [cell]
        return [cell.varied(**{self.field: value}) for value in fit] or [cell]


def cross(cells: Iterable[Cell], axes: Iterable[Varied]) -> list[Cell]:
    """Every cell with every value of every axis that applies; it keeps what its study has set itself."""
    found = list(cells)
    for axis in axes:
        found = [varied for cell in found for varied in axis.over(cell)]
    return found


def mixed(cells: Iterable[Cell]) -> list[Cell]:
    """The cells, each once; those that mix batches have the largest, whichever batches their study has."""
    sized = (
        replace(cell, batch=max(parse_batches(cell.batch_mix))) if cell.batch_mix and not cell.trace else cell
        for cell in cells
    )
    return list({cell.name: cell for cell in sized}.values())


def compressed(text: str) -> str:
    """`gzip`; `none` is no compression. Raises ValueError."""
    return _or_none(text, *ALGORITHMS)


def in_shared_memory(text: str) -> str:
    """`system`; `none` is over the wire. Raises ValueError."""
    return _or_none(text, SYSTEM)


def _or_none(text: str, *words: str) -> str:
    if text not in (NO_LINK, *words):
        raise ValueError(
            f"give {', '.join((NO_LINK, *words))}, or {'several of them' if words[1:] else 'both'}"
        )
    return "" if text == NO_LINK else text


def is_compressible(cell: Cell) -> bool:
    """Whether its server takes compressed requests."""
    return bool(compressions_of(cell.endpoint))


def compresses_so(cell: Cell, compression: str) -> bool:
    """Whether its server takes requests compressed so."""
    return not compression or compression in compressions_of(cell.endpoint)


def shares_memory_here(cell: Cell) -> bool:
    """Whether its inputs may lie in shared memory: prepared before any load, all alike, not compressed."""
    otherwise = cell.client == LIBRARY or cell.compression or cell.picture_mix or cell.replay
    return not otherwise and shares_memory(cell.endpoint)


def link(text: str) -> str:
    """`lan`; `none` is no link at all."""
    return "" if text == NO_LINK else text
