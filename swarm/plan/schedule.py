"""Which run comes next: a fixed list, one that grows by whole repeats, or a search that learns from each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from hdrh.histogram import HdrHistogram

from swarm.plan.cell import Cell, PlannedRun
from swarm.plan.matrix import one_repeat, order


class Schedule(Protocol):
    """Which run comes next; it may depend on what came of the last one."""

    @property
    def planned(self) -> Sequence[PlannedRun]:
        """The runs that are certain to come, for the header and for the time left; empty where none is.

        They may become more, at the end.
        """

    def next(self, outcome: Outcome | None) -> PlannedRun | None:
        """The next run after the last one's outcome, or None at the end."""

    def remark(self, outcome: Outcome) -> str:
        """What a run's line on the console is to add."""


@dataclass(frozen=True)
class Outcome:
    """What a search must know of a run: whether it can be trusted, and how its latencies were distributed."""

    run: PlannedRun
    sound: bool
    finished: int
    failed: int
    dropped: int
    latency: HdrHistogram


class FixedSchedule:
    """A schedule that was fixed beforehand."""

    def __init__(self, runs: Sequence[PlannedRun]) -> None:
        self.planned: Sequence[PlannedRun] = tuple(runs)
        self._to_come = iter(self.planned)

    def next(self, outcome: Outcome | None) -> PlannedRun | None:
        """The next of the list."""
        return next(self._to_come, None)

    def remark(self, outcome: Outcome) -> str:
        """Nothing."""
        return ""


class RepeatingSchedule:
    """`repeats` of some cells, then more, one by one, up to `most` of them.

    `is_wanted` is asked at the end of a repeat whether there is to be another one; it is told that one's
    number, and how many there may be from it on.
    """

    def __init__(
        self, cells: list[Cell], repeats: int, most: int, seed: int, is_wanted: Callable[[int, int], bool]
    ) -> None:
        self._cells, self._repeats, self._most, self._seed = cells, repeats, most, seed
        self._is_wanted = is_wanted
        self._begun = 0
        self.planned = order(cells, repeats, seed)

    def next(self, outcome: Outcome | None) -> PlannedRun | None:
        """The next of the repeat, or of one more."""
        if self._begun == len(self.planned):
            self._repeat()
        if self._begun == len(self.planned):
            return None
        self._begun += 1
        return self.planned[self._begun - 1]

    def _repeat(self) -> None:
        number = self._repeats + 1
        if number <= self._most and self._is_wanted(number, self._most - self._repeats):
            self._repeats = number
            self.planned += one_repeat(self._cells, number, self._seed)

    def remark(self, outcome: Outcome) -> str:
        """Nothing."""
        return ""
