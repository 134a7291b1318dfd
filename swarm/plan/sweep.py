"""The axes beyond endpoint, batch and load: channels, link, topology, server settings; how cells cross."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from swarm.errors import UsageError
from swarm.plan.cell import Cell
from users.transport import connections as kinds

NO_LINK = "none"
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
            self._set_up(self._placed(cell, channels, link, topology), cell, delay_us, instances)
            for cell in cells
            for channels, link, topology, delay_us, instances in itertools.product(
                [cell.channels] if cell.channels else self.channels,
                [cell.link] if cell.link else self.links,
                [Topology(cell.workers, cell.hosts)] if cell.workers else self.topologies,
                self._delays_us(cell),
                [cell.instances] if cell.instances or not cell.adjustable else self.instances,
            )
        ]

    def _delays_us(self, cell: Cell) -> Sequence[int | None]:
        own = cell.queue_delay_us is not None or not cell.adjustable
        return [cell.queue_delay_us] if own else self.queue_delays_us

    def _set_up(self, placed: Cell, cell: Cell, delay_us: int | None, instances: int) -> Cell:
        """Where the cell lacks them, with these settings of its server's; named where there are several."""
        several = (
            delay_us is not None and delay_us != cell.queue_delay_us and len(self.queue_delays_us) > 1,
            instances != cell.instances and len(self.instances) > 1,
        )
        names = (delay_name(delay_us or 0), instances_name(instances))
        parts = (placed.variant, *itertools.compress(names, several))
        variant = "/".join(part for part in parts if part)
        return replace(placed, queue_delay_us=delay_us, instances=instances, variant=variant)

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


def queue_delays_of(text: str) -> tuple[int | None, ...]:
    """`0,1000` in microseconds; the server's own for an empty text. Raises UsageError."""
    if not text.strip():
        return (None,)
    mend = f"give whole microseconds up to {LONGEST_DELAY_US:,}, e.g. 0,1000,10000"
    return tuple(_numbers("--queue-delay-us", text, 0, LONGEST_DELAY_US, mend))


def instances_of(text: str) -> tuple[int, ...]:
    """`1,2,4` executions at once; the server's own number for an empty text. Raises UsageError."""
    if not text.strip():
        return (0,)
    mend = f"give whole numbers from 1 to {MOST_INSTANCES}, e.g. 1,2,4"
    return tuple(_numbers("--instances", text, 1, MOST_INSTANCES, mend))


def _numbers(option: str, text: str, least: int, most: int, mend: str) -> Iterable[int]:
    """The whole numbers between commas, each once. Raises UsageError."""
    parts = parts_of(text)
    # No more digits than any of them may have: int() reads them in other scripts, and of any length.
    if not all(re.fullmatch(r"[0-9]{1,9}", part) and least <= int(part) <= most for part in parts):
        raise UsageError(f"{option} {text}: {mend}")
    return dict.fromkeys(map(int, parts))


def delay_name(delay_us: int) -> str:
    """As a cell's variant names it: `delay-0ms`, `delay-0.5ms`."""
    return f"delay-{delay_us / 1000:.10g}ms"


def instances_name(instances: int) -> str:
    """As a cell's variant names it: `1-instance`, `2-instances`."""
    return f"{instances}-instance{'s' if instances > 1 else ''}"


def parts_of(text: str) -> Sequence[str]:
    """What stands between commas; one empty part for an empty text."""
    return [part.strip() for part in text.split(",") if part.strip()] or [""]
