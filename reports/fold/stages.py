"""The stages of a load whose rate changes: their length, their course, and how many arrivals they hold."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Stage:
    """So many seconds from `begin_s` on, whose rate went in a straight line from one to another, in 1/s."""

    name: str
    begin_s: float
    seconds: float
    first_per_s: float
    last_per_s: float

    @property
    def end_s(self) -> float:
        """When the next begins."""
        return self.begin_s + self.seconds

    @property
    def asked_per_s(self) -> float:
        """Its mean rate."""
        return (self.first_per_s + self.last_per_s) / 2

    def arrivals(self, from_s: float, to_s: float) -> float:
        """The integral of its rate over the part of a span that lies in it."""
        low, high = max(from_s, self.begin_s), min(to_s, self.end_s)
        middle = ((low + high) / 2 - self.begin_s) / self.seconds
        return max(0.0, high - low) * (self.first_per_s + (self.last_per_s - self.first_per_s) * middle)


def stages_of(planned: Iterable[Sequence[Any]]) -> tuple[Stage, ...]:
    """The stages of a plan, each with its beginning."""
    found, begin_s = [], 0.0
    for name, seconds, first_per_s, last_per_s in planned:
        found.append(Stage(name, begin_s, seconds, first_per_s, last_per_s))
        begin_s += seconds
    return tuple(found)
