"""The fastest cell of each way to the model under closed-loop load: what the first screen ranks and draws."""

from collections.abc import Sequence
from dataclasses import dataclass

from reports.stats.conditions import condition
from reports.stats.figures import fastest_cell, images_per_s
from reports.stats.log_ratio import GeometricMean, geometric_mean, log_ratio
from reports.stats.repeats import COMPARABLE_RUNS, Runs, by_cell, by_way, resting_on, values
from reports.study.study import Study

NEAR = 0.9
"""Of the faster one's rate."""


@dataclass(frozen=True)
class Contender:
    """A way's fastest cell: the repeats that count, and their images per second."""

    name: str
    runs: Runs
    rate: GeometricMean

    @property
    def load(self) -> str:
        """batch 8, 1 user."""
        return str(condition(self.runs[0]))

    @property
    def repeated(self) -> bool:
        """Whether there are repeats, without which nothing can be confirmed."""
        return len(self.runs) >= COMPARABLE_RUNS

    @property
    def tainted(self) -> bool:
        """Whether nothing may be concluded from it: each of its repeats is invalidated."""
        return all(run.tainted for run in self.runs)

    def near(self, other: "Contender") -> bool:
        """Whether the slower of both has at least 90 % of the faster one's rate."""
        slower, faster = sorted((self.rate.value, other.rate.value))
        return slower >= NEAR * faster

    def rivals(self, other: "Contender") -> bool:
        """Whether the repeats do not show that it is slower than another."""
        return not log_ratio(values(self.runs, images_per_s), values(other.runs, images_per_s)).significant

    def ties(self, other: "Contender") -> bool:
        """Whether repeats of both, which are near each other, do not tell which is faster."""
        return self.near(other) and self.rivals(other) and self.repeated and other.repeated

    def over(self, other: "Contender") -> str:
        """Its images per second as a share of another's: 0.94× (0.91–0.97)."""
        return log_ratio(values(self.runs, images_per_s), values(other.runs, images_per_s)).times


def contenders(study: Study) -> tuple[Contender, ...]:
    """One for each way with a success, the fastest first, those that are invalidated last."""
    closed = [run for run in study.started if run.load == "closed" and not run.is_floor]
    found = [_contender(study, runs) for runs in by_way(study, filter(images_per_s, closed)).values()]
    return tuple(sorted(found, key=lambda one: (one.tainted, -one.rate.value)))


def _contender(study: Study, runs: Runs) -> Contender:
    cells: Sequence[Runs] = list(by_cell(runs).values())
    fastest = resting_on(fastest_cell(cells), images_per_s)
    return Contender(study.named(fastest[0].way), fastest, geometric_mean(values(fastest, images_per_s)))
