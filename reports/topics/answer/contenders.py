"""The fastest cell of each way to the model under closed-loop load: what the first screen ranks and draws."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from reports.stats.conditions import condition
from reports.stats.figures import fastest_cell, images_per_s, told_from_best
from reports.stats.log_ratio import LogRatio
from reports.stats.paired import paired_ratio
from reports.stats.percentiles import CellFigure, mean_over
from reports.stats.repeats import Runs, alone, by_repeat, by_way, grouped, repeats_differ, resting_on
from reports.study.study import Study
from reports.summary.summary import Summary


@dataclass(frozen=True)
class Contender:
    """A way's fastest cell: the repeats that count, and their images per second.

    `slower`: whether the repeats show that it is slower than the fastest of all over its link; None where
    they are too few to tell. The fastest itself is not.
    """

    name: str
    runs: Runs
    rate: CellFigure
    slower: bool | None = False

    @property
    def load(self) -> str:
        """batch 8, 1 user."""
        return str(condition(self.runs[0]))

    @property
    def tainted(self) -> bool:
        """Whether nothing may be concluded from it: each of its repeats is invalidated."""
        return all(run.tainted for run in self.runs)

    @property
    def varies(self) -> bool:
        """Whether its repeats differ by more than chance, so that a mean of them says nothing."""
        return repeats_differ(self.runs)

    def over(self, other: "Contender") -> str:
        """Its images per second as a share of another's: 0.94× (0.91–0.97)."""
        return self.against(other).times

    def against(self, other: "Contender") -> LogRatio:
        """The same with all that is known of it: of the repeats that both have, in pairs."""
        return paired_ratio(*(by_repeat(one.runs, images_per_s) for one in (self, other)))


def closed(study: Study) -> list[Summary]:
    """The runs under closed-loop load that were begun, floors left out, and those beside other loads."""
    return alone(run for run in study.started if run.closed and not run.is_floor)


def contenders(study: Study) -> tuple[Contender, ...]:
    """One for each way with a cell that may be ranked, the fastest first, those that are invalidated last."""
    fastest = map(fastest_cell, by_way(study, closed(study)).values())
    rates = ((runs, mean_over(runs, images_per_s)) for runs in fastest)
    found = [_contender(study, runs, rate) for runs, rate in rates if rate]
    ordered = sorted(found, key=lambda one: (one.tainted, -one.rate.value))
    links = grouped((one for one in ordered if not one.tainted), lambda one: one.runs[0].link).values()
    slower = {name: shown for over_link in links for name, shown in _compare(*over_link)}
    return tuple(replace(one, slower=slower.get(one.name, False)) for one in ordered)


def _compare(first: Contender, *others: Contender) -> Iterator[tuple[str, bool | None]]:
    apart = told_from_best(first.runs, [one.runs for one in others])
    return zip((one.name for one in others), apart, strict=True)


def _contender(study: Study, fastest: Runs, rate: CellFigure) -> Contender:
    return Contender(study.named(fastest[0].way), resting_on(fastest, images_per_s), rate)
