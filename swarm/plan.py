"""What a study will do: cells, and the order of their runs. Pure: no clock, no network."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any, Protocol

from swarm.errors import UsageError
from users.endpoint import Endpoint


@dataclass(frozen=True)
class Cell:
    """endpoint × batch × closed load of `level` users, measured for at least `requests` and `seconds`."""

    endpoint: Endpoint
    batch: int
    level: int
    requests: int
    seconds: float
    load: str = "closed"

    @property
    def name(self) -> str:
        """Its name in ledgers, Locust's tables and reports, e.g. `onnx-grpc/b4/c1`."""
        return f"{self.endpoint.name}/b{self.batch}/c{self.level}"

    @property
    def weight(self) -> int:
        """Images to be embedded: what the time of a run grows with."""
        return self.batch * self.requests


@dataclass(frozen=True)
class Run:
    """One execution of one cell."""

    cell: Cell
    repeat: int

    def to_record(self) -> dict[str, Any]:
        """As the ledger's header lists it."""
        cell = self.cell
        return {
            "cell": cell.name,
            "endpoint": cell.endpoint.name,
            "backend": cell.endpoint.backend,
            "protocol": cell.endpoint.protocol,
            "payload": cell.endpoint.payload,
            "batch": cell.batch,
            "load": cell.load,
            "level": cell.level,
            "repeat": self.repeat,
        }


@dataclass(frozen=True)
class Size:
    """How large a study is: batches at one user, users at batch 1, and the least each cell measures."""

    batches: tuple[int, ...]
    levels: tuple[int, ...]
    iterations: int
    seconds: float

    def with_amounts(self, iterations: int, seconds: float) -> Size:
        """The same with another number of iterations or seconds a cell, where they are not 0."""
        return replace(self, iterations=iterations or self.iterations, seconds=seconds or self.seconds)


class Study(Protocol):
    """What a locustfile declares: a name for folders, a title for people, sizes, and the cells of a size."""

    @property
    def name(self) -> str: ...

    @property
    def title(self) -> str: ...

    @property
    def sizes(self) -> Mapping[str, Size]: ...

    def cells(self, endpoints: Sequence[Endpoint], size: Size) -> list[Cell]:
        """The cells to measure."""


def serial_and_concurrent(endpoints: Iterable[Endpoint], size: Size) -> list[Cell]:
    """The seeds' matrix: each endpoint serial at every batch, then at batch 1 with every level of users.

    One user at batch 1 belongs to both; it is one cell and measured once. Concurrent cells measure twice the
    iterations, as the seeds did, and at least five requests a user.
    """
    cells = []
    for endpoint in endpoints:
        cells += [Cell(endpoint, batch, 1, size.iterations, size.seconds) for batch in size.batches]
        cells += [
            Cell(endpoint, 1, level, max(2 * size.iterations, 5 * level), size.seconds)
            for level in size.levels
            if level > 1
        ]
    return cells


def matching(cells: list[Cell], pattern: str) -> list[Cell]:
    """The cells whose names match a shell pattern; all for an empty one. Raises UsageError where none is."""
    found = [cell for cell in cells if fnmatchcase(cell.name, pattern or "*")]
    if not found:
        names = ", ".join(cell.name for cell in cells)
        raise UsageError(f"--cells {pattern}: matches no cell of this study; they are {names}")
    return found


def order(cells: list[Cell], repeats: int, seed: int) -> list[Run]:
    """All cells once a repeat, each repeat in a seeded order of its own, so that drift hits all alike."""
    runs: list[Run] = []
    for repeat in range(1, repeats + 1):
        shuffled = random.Random(f"{seed}/{repeat}").sample(cells, len(cells))
        runs += [Run(cell, repeat) for cell in shuffled]
    return runs
