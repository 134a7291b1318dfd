"""The fastest cell of each way to the model under closed-loop load: what the first screen ranks and draws."""

from collections.abc import Sequence
from dataclasses import dataclass

from reports.format import plural
from reports.stats.figures import fastest_cell, images_per_s, not_told_apart
from reports.stats.log_ratio import GeometricMean, geometric_mean, log_ratio
from reports.stats.repeats import Runs, by_cell, by_way, resting_on, values
from reports.study.study import Study
from reports.summary.summary import Summary

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
        return load_said(self.runs[0])

    @property
    def tainted(self) -> bool:
        """Whether nothing may be concluded from it: each of its repeats is invalidated."""
        return all(run.tainted for run in self.runs)

    def ties(self, other: "Contender") -> bool:
        """Whether both have repeats, which do not tell which is faster, and are near each other.

        Few or noisy repeats of rates far apart leave open which is faster: that is no tie.
        """
        near = min(self.rate.value, other.rate.value) >= NEAR * max(self.rate.value, other.rate.value)
        return near and not_told_apart(self.runs, other.runs)

    def over(self, other: "Contender") -> str:
        """Its images per second as a share of another's: 0.94× (0.91–0.97)."""
        return log_ratio(values(self.runs, images_per_s), values(other.runs, images_per_s)).times


def load_said(run: Summary) -> str:
    """A cell's batch and load in words."""
    if run.load == "closed":
        return f"batch {run.batch}, {plural(round(run.level), 'user')}"
    return f"batch {run.batch}, {run.level:g} requests/s"


def contenders(study: Study) -> tuple[Contender, ...]:
    """One for each way with a success, the fastest first, those that are invalidated last."""
    closed = [run for run in study.started if run.load == "closed" and not run.is_floor]
    found = [_contender(study, runs) for runs in by_way(study, filter(images_per_s, closed)).values()]
    return tuple(sorted(found, key=lambda one: (one.tainted, -one.rate.value)))


def _contender(study: Study, runs: Runs) -> Contender:
    cells: Sequence[Runs] = list(by_cell(runs).values())
    fastest = resting_on(fastest_cell(cells), images_per_s)
    return Contender(study.named(fastest[0].way), fastest, geometric_mean(values(fastest, images_per_s)))
