"""Which run comes next: a fixed list of runs, one that grows, or a search that learns from each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from hdrh.histogram import HdrHistogram

from swarm.plan.cell import Run


class Programme(Protocol):
    """Which run comes next; it may depend on what came of the last one."""

    @property
    def planned(self) -> Sequence[Run]:
        """The runs that are certain to come, for the header and for the time left; empty where none is.

        They may become more, at the end.
        """

    def next(self, outcome: Outcome | None) -> Run | None:
        """The next run after the last one's outcome, or None at the end."""

    def remark(self, outcome: Outcome) -> str:
        """What a run's line on the console is to add."""


@dataclass(frozen=True)
class Outcome:
    """What a search must know of a run: whether it can be trusted, and how its latencies were distributed."""

    run: Run
    sound: bool
    finished: int
    failed: int
    dropped: int
    latency: HdrHistogram


class Listed:
    """A programme that was fixed beforehand."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self.planned: Sequence[Run] = tuple(runs)
        self._to_come = iter(self.planned)

    def next(self, outcome: Outcome | None) -> Run | None:
        """The next of the list."""
        return next(self._to_come, None)

    def remark(self, outcome: Outcome) -> str:
        """Nothing."""
        return ""
