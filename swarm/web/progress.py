"""How far a study has come: which run of how many, in which phase, and how long the rest may take."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from reports.ledger.ledger import Record
from swarm.plan.eta import clock, cost_of


class Progress:
    """Counts the runs of a plan, which a search makes longer; times are seconds of one clock."""

    def __init__(self, plan: Sequence[Record], now: float) -> None:
        self.plan = list(plan)
        self.phase = ""
        self._certain = bool(plan)
        """Whether all runs are known beforehand."""
        self._over = False
        self._began, self._ended = now, now
        self._begun = self._done = 0
        self._entry: Record = {}

    def planned(self, entries: Iterable[Record]) -> None:
        """More runs, as a search finds that it needs them."""
        self.plan.extend(entries)

    def begun(self, entry: Record) -> None:
        """The next run."""
        self._entry, self.phase = entry, "preparing"
        self._begun += 1

    def ended(self, status: str, now: float) -> None:
        """The run is over; one that the study's end cut off is not done."""
        if status != "aborted":
            self._done, self._ended = self._begun, now
        self._entry, self.phase = {}, ""

    def over(self) -> None:
        """Nothing is under way, and nothing more will come."""
        self._entry, self.phase, self._over = {}, "", True

    def left(self) -> str:
        """How long the rest takes at the pace so far, in words; empty where that is not known."""
        done, to_do = self.plan[: self._done], self.plan[self._done :]
        if self._over or not self._certain or not done or not to_do:
            return ""
        return clock((self._ended - self._began) * sum(map(cost, to_do)) / sum(map(cost, done)))

    def told(self) -> dict[str, Any]:
        """`runs` is None where nobody knows how many there will be; a `run` beyond `done` has not ended."""
        return {
            "done": self._done,
            "run": self._begun,
            "runs": len(self.plan) if self._certain else None,
            "cell": self._entry.get("cell", ""),
            "repeat": self._entry.get("repeat"),
            "phase": self.phase,
            "left": self.left(),
        }


def cost(entry: Record) -> int:
    """How long a planned run takes, in the arbitrary units of `swarm.plan.eta.cost`."""
    return cost_of(int(entry["batch"]) * int(entry.get("requests") or 0))
