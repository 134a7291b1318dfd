"""The axes beyond endpoint, batch and load: channels, link, topology, server settings; how cells cross."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from swarm.errors import UsageError
from swarm.plan.cell import Cell
from users.transport import connections as kinds

NO_LINK = "none"
Value = TypeVar("Value")
Choice = tuple[Mapping[str, Any], str]
"""Fields of a cell, and how a variant names them."""
LONGEST_DELAY_US, MOST_INSTANCES = 10_000_000, 64


@dataclass(frozen=True)
class Topology:
    """So many worker processes on so many client hosts; 0 is all that are there."""

    workers: int = 0
    hosts: int = 0

    @classmethod
    def parse(cls, text: str) -> Topology:
        """`4` workers, or `4@2`: 4 workers on 2 hosts. Raises UsageError."""
        found = re.fullmatch(r"([0-9]{1,5})(?:@([0-9]{1,5}))?", text.strip())
        made = cls(int(found[1]), int(found[2] or 0)) if found else cls()
        if not made.workers or made.hosts > made.workers:
            raise UsageError(
                f"--topology {text}: give worker processes, or WORKERS@HOSTS with a worker for each host,"
                " e.g. 1,4,4@2"
            )
        return made

    def __str__(self) -> str:
        """As a cell's variant names it: `4w`, `4w2h`."""
        return f"{self.workers}w" + (f"{self.hosts}h" if self.hosts else "")


@dataclass(frozen=True)
class Axes:
    """What a study's options name of each axis; one value each, or several to be compared."""

    channels: tuple[str, ...] = (kinds.PER_USER,)
    links: tuple[str, ...] = ("",)
    topologies: tuple[Topology, ...] = (Topology(),)
    client: str = "prepared"
    queue_delays_us: tuple[int | None, ...] = (None,)
    instances: tuple[int, ...] = (0,)

    @property
    def of_servers(self) -> bool:
        """Whether they name settings of the servers' own."""
        return self.queue_delays_us != (None,) or self.instances != (0,)

    def cross(self, cells: Iterable[Cell]) -> list[Cell]:
        """Every cell with every value of every axis that applies; it keeps what its study has set itself."""
        return [
            self._varied(cell, chosen) for cell in cells for chosen in itertools.product(*self._choices(cell))
        ]

    def _choices(self, cell: Cell) -> Iterator[Sequence[Choice]]:
        """What there is to choose for a cell on each axis; its own alone where it has that, or can have none.

        A choice has a name where there are several.
        """
        fixed = not cell.adjustable
        settled = (
            *(cell.channels, cell.link, cell.workers),
            *(fixed or cell.queue_delay_us is not None, fixed or cell.instances),
        )
        choices: tuple[Sequence[Choice], ...] = (
            [({"channels": kind}, kind) for kind in self.channels],
            [({"link": link}, link or NO_LINK) for link in self.links],
            [(vars(topology), str(topology)) for topology in self.topologies],
            [({"queue_delay_us": us}, delay_name(us or 0)) for us in self.queue_delays_us],
            [({"instances": number}, instances_name(number)) for number in self.instances],
        )
        for own, several in zip(settled, choices, strict=True):
            unnamed = {} if own else several[0][0]
            yield several if len(several) > 1 and not own else [(unnamed, "")]

    def _varied(self, cell: Cell, chosen: Sequence[Choice]) -> Cell:
        """The cell with one choice of each axis; its variant has a link's name behind its topology's."""
        settings = {name: value for fields, _ in chosen for name, value in fields.items()}
        channels, link, topology, *of_servers = (name for _, name in chosen)
        names = (cell.variant, channels, topology, link, *of_servers)
        variant = "/".join(name for name in names if name)
        return replace(cell, client=cell.client or self.client, variant=variant, **settings)


def channels_of(text: str) -> tuple[str, ...]:
    """`shared,pool:4` as two kinds of channels. Raises UsageError."""
    try:
        return each(text, lambda part: str(kinds.parse(part)))
    except ValueError as error:
        raise UsageError(f"--channels {text}: {error}") from error


def links_of(text: str) -> tuple[str, ...]:
    """`lan,wan-a100` as two links, `none` as no link at all."""
    return each(text, lambda part: "" if part == NO_LINK else part)


def topologies_of(text: str) -> tuple[Topology, ...]:
    """`1,4@2` as two topologies; all workers there are for an empty text. Raises UsageError."""
    return each(text, Topology.parse) if text.strip() else (Topology(),)


def queue_delays_of(text: str) -> tuple[int | None, ...]:
    """`0,1000` in microseconds; the server's own for an empty text. Raises UsageError."""
    mend = f"give whole microseconds up to {LONGEST_DELAY_US:,}, e.g. 0,1000,10000"
    return _numbers("--queue-delay-us", text, 0, LONGEST_DELAY_US, mend) if text.strip() else (None,)


def instances_of(text: str) -> tuple[int, ...]:
    """`1,2,4` executions at once; the server's own number for an empty text. Raises UsageError."""
    mend = f"give whole numbers from 1 to {MOST_INSTANCES}, e.g. 1,2,4"
    return _numbers("--instances", text, 1, MOST_INSTANCES, mend) if text.strip() else (0,)


def _numbers(option: str, text: str, least: int, most: int, mend: str) -> tuple[int, ...]:
    """The whole numbers between commas, each once. Raises UsageError."""

    def number(part: str) -> int:
        # No more digits than any of them may have: int() reads them in other scripts, and of any length.
        if not re.fullmatch(r"[0-9]{1,9}", part) or not least <= int(part) <= most:
            raise UsageError(f"{option} {text}: {mend}")
        return int(part)

    return each(text, number)


def delay_name(delay_us: int) -> str:
    """As a cell's variant names it: `delay-0ms`, `delay-0.5ms`."""
    return f"delay-{delay_us / 1000:.10g}ms"


def instances_name(instances: int) -> str:
    """As a cell's variant names it: `1-instance`, `2-instances`."""
    return f"{instances}-instance{'s' if instances > 1 else ''}"


def each(text: str, read: Callable[[str], Value]) -> tuple[Value, ...]:
    """What stands between commas, read, each value once; one empty part for an empty text."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    return tuple(dict.fromkeys(map(read, parts or [""])))
