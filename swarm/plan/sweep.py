"""How what the options name of an axis is read, and how cells cross with it."""

import itertools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from reports.ledger.axes import UNSET
from reports.ledger.axes import Topology as Topology
from swarm.plan.cell import Cell
from users.transport import connections as kinds

NO_LINK = "none"
LONGEST_DELAY_US, MOST_INSTANCES = 10_000_000, 64
Choice = tuple[Mapping[str, Any], str]
"""Fields of a cell, and how a variant names them."""


@dataclass(frozen=True)
class AxisOption:
    """How an option sets the field of its name in cells: to one value, or to several that are compared.

    `read` makes a value of what stands between commas, or raises ValueError with what to give; `name` is how
    a variant names it. `of_servers`: it is of models of Triton's, and no other cell has it.
    """

    read: Callable[[str], Any]
    name: Callable[[Any], str] = str
    of_servers: bool = False

    def values(self, text: str) -> tuple[Any, ...]:
        """What stands between commas, each value once; none for an empty text. Raises ValueError."""
        parts = [part.strip() for part in text.split(",") if part.strip()]
        return tuple(dict.fromkeys(map(self.read, parts or [""]))) if text.strip() else ()

    def settled(self, cell: Cell, field: str) -> bool:
        """Whether the cell has a value of its own, or can have none."""
        return (self.of_servers and not cell.adjustable) or getattr(cell, field) != UNSET[field]


@dataclass(frozen=True)
class Varied:
    """What the options name of one axis; `values` is empty where they name nothing."""

    field: str
    option: AxisOption
    values: tuple[Any, ...]

    def choices(self, cell: Cell) -> Sequence[Choice]:
        """What there is for a cell, with names where there are several; nothing where it has its own."""
        if not self.values or self.option.settled(cell, self.field):
            return [({}, "")]
        several = len(self.values) > 1
        return [({self.field: value}, self.option.name(value) if several else "") for value in self.values]


def cross(cells: Iterable[Cell], axes: Sequence[Varied]) -> list[Cell]:
    """Every cell with every value of every axis that applies; it keeps what its study has set itself."""
    return [
        _varied(cell, chosen)
        for cell in cells
        for chosen in itertools.product(*(axis.choices(cell) for axis in axes))
    ]


def _varied(cell: Cell, chosen: Sequence[Choice]) -> Cell:
    settings = {field: value for fields, _ in chosen for field, value in fields.items()}
    variant = "/".join(name for name in (cell.variant, *(name for _, name in chosen)) if name)
    return replace(cell, **{**settings, "variant": variant})


def channels(text: str) -> str:
    """`pool:4`, as users.transport.connections spells it. Raises ValueError."""
    return str(kinds.parse(text))


def link(text: str) -> str:
    """`lan`; `none` is no link at all."""
    return "" if text == NO_LINK else text


def link_name(link: str) -> str:
    """As a cell's variant names it."""
    return link or NO_LINK


def topology(text: str) -> Topology:
    """`4` workers, or `4@2`: 4 workers on 2 hosts. Raises ValueError."""
    found = re.fullmatch(r"([0-9]{1,5})(?:@([0-9]{1,5}))?", text)
    made = Topology(int(found[1]), int(found[2] or 0)) if found else Topology()
    if not made.workers or made.hosts > made.workers:
        raise ValueError("give worker processes, or WORKERS@HOSTS with a worker for each host, e.g. 1,4,4@2")
    return made


def between(least: int, most: int, give: str) -> Callable[[str], int]:
    """Reads a whole number; raises ValueError with what to give."""

    def read(text: str) -> int:
        # No more digits than any of them may have: int() reads them in other scripts, and of any length.
        if not re.fullmatch(r"[0-9]{1,9}", text) or not least <= int(text) <= most:
            raise ValueError(give)
        return int(text)

    return read


queue_delay = between(
    0, LONGEST_DELAY_US, f"give whole microseconds up to {LONGEST_DELAY_US:,}, e.g. 0,1000,10000"
)
instances = between(1, MOST_INSTANCES, f"give whole numbers from 1 to {MOST_INSTANCES}, e.g. 1,2,4")


def delay_name(delay_us: int) -> str:
    """As a cell's variant names it: `delay-0ms`, `delay-0.5ms`."""
    return f"delay-{delay_us / 1000:.10g}ms"


def instances_name(instances: int) -> str:
    """As a cell's variant names it: `1-instance`, `2-instances`."""
    return f"{instances}-instance{'s' if instances > 1 else ''}"
