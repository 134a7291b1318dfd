"""The axes beyond endpoint, batch and load: channels, link and topology; how cells cross with them."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from swarm.cell import Cell
from swarm.errors import UsageError
from users import channels as kinds

NO_LINK = "none"


@dataclass(frozen=True)
class Topology:
    """So many worker processes on so many client hosts; 0 is all that are there."""

    workers: int = 0
    hosts: int = 0

    @classmethod
    def parse(cls, text: str) -> Topology:
        """`4` workers, or `4@2`: 4 workers on 2 hosts. Raises UsageError."""
        found = re.fullmatch(r"(\d+)(?:@(\d+))?", text.strip())
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

    def cross(self, cells: Iterable[Cell]) -> list[Cell]:
        """Every cell with every value of every axis; a cell keeps what its study has set itself."""
        return [
            self._placed(cell, channels, link, topology)
            for cell in cells
            for channels, link, topology in itertools.product(
                [cell.channels] if cell.channels else self.channels,
                [cell.link] if cell.link else self.links,
                [Topology(cell.workers, cell.hosts)] if cell.workers else self.topologies,
            )
        ]

    def _placed(self, cell: Cell, channels: str, link: str, topology: Topology) -> Cell:
        varied = (
            (cell.variant, bool(cell.variant)),
            (channels, not cell.channels and len(self.channels) > 1),
            (str(topology), not cell.workers and len(self.topologies) > 1),
            (link or NO_LINK, not cell.link and len(self.links) > 1),
        )
        return replace(
            cell,
            channels=channels,
            client=cell.client or self.client,
            workers=topology.workers,
            hosts=topology.hosts,
            link=link,
            variant="/".join(name for name, named in varied if named),
        )


def channels_of(text: str) -> tuple[str, ...]:
    """`shared,pool:4` as two kinds of channels. Raises UsageError."""
    try:
        return tuple(dict.fromkeys(str(kinds.parse(part)) for part in parts_of(text)))
    except ValueError as error:
        raise UsageError(f"--channels {text}: {error}") from error


def links_of(text: str) -> tuple[str, ...]:
    """`lan,wan-a100` as two links, `none` as no link at all."""
    return tuple(dict.fromkeys("" if part == NO_LINK else part for part in parts_of(text)))


def topologies_of(text: str) -> tuple[Topology, ...]:
    """`1,4@2` as two topologies; all workers there are for an empty text. Raises UsageError."""
    if not text.strip():
        return (Topology(),)
    return tuple(dict.fromkeys(Topology.parse(part) for part in parts_of(text)))


def parts_of(text: str) -> Sequence[str]:
    """What stands between commas; one empty part for an empty text."""
    return [part.strip() for part in text.split(",") if part.strip()] or [""]
