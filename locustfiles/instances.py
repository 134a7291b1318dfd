"""The cells of a study of growth: users on one instance of the model, and on more of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from swarm.plan.cell import Cell
from swarm.plan.matrix import Size
from swarm.plan.sweep import instances_name
from users.endpoint import Endpoint

INSTANCES = (1, 2, 4)


@dataclass(frozen=True)
class GrowthSize(Size):
    """`shared_levels` are those of its levels that are run on each number of instances, not on one alone."""

    shared_levels: tuple[int, ...] = ()


def growth(endpoints: Iterable[Endpoint], size: Size, numbers: Iterable[int] = INSTANCES) -> list[Cell]:
    """Each endpoint at batch 1 with every level of users on the first number of instances; with some on each.

    An endpoint with no model of Triton's behind it has each level once, as it was started.
    """
    first, *more = numbers
    shared = size.shared_levels if isinstance(size, GrowthSize) else size.levels
    cells = []
    for endpoint in endpoints:
        own = [
            Cell(endpoint, 1, level, max(2 * size.iterations, 5 * level), size.seconds)
            for level in size.levels
        ]
        if not own[0].adjustable:
            cells += own
            continue
        cells += [on(cell, first) for cell in own]
        cells += [on(cell, number) for number in more for cell in own if cell.level in shared]
    return cells


def on(cell: Cell, instances: int) -> Cell:
    """The same cell on so many instances."""
    return replace(cell, instances=instances, variant=instances_name(instances))
