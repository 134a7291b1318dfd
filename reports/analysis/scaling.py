"""How much of n servers', GPUs' or workers' worth is had: the rate of n over n times the rate of one."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from statistics import median

from reports.study import Study
from reports.summary import Summary
from reports.tables.grid import Runs, resting_on
from reports.tables.seeds import images_per_s

UNITS = ("instances", "GPUs", "workers")


@dataclass(frozen=True)
class Step:
    """A rate with some units: how many times that of the fewest it is, and its share of what they promise."""

    units: int
    rate: float
    times: float
    efficiency: float


@dataclass(frozen=True)
class Scaling:
    """Runs of one load that differ in a number of units alone, by that number."""

    unit: str
    by_units: Mapping[int, Runs]

    @property
    def steps(self) -> tuple[Step, ...]:
        """One for each number of units."""
        pairs = ((units, rate) for units, runs in self.by_units.items() for rate in _rates(runs))
        return efficiencies(pairs)


def efficiencies(pairs: Iterable[tuple[int, float]]) -> tuple[Step, ...]:
    """One step for each number of units, fewest first; of several rates with one number, the median.

    efficiency = (rate(n) ÷ n) ÷ (rate(m) ÷ m), with m the fewest units, usually 1. Raises ValueError for a
    number of units or a rate that is not above 0.
    """
    found: dict[int, list[float]] = {}
    for units, rate in pairs:
        if units <= 0 or not rate > 0:
            raise ValueError("efficiency takes units and rates above 0")
        found.setdefault(units, []).append(rate)
    rates = {units: median(found[units]) for units in sorted(found)}
    fewest = min(rates, default=0)
    return tuple(
        Step(units, rate, rate / rates[fewest], rate * fewest / (rates[fewest] * units))
        for units, rate in rates.items()
    )


def scalings(study: Study) -> tuple[Scaling, ...]:
    """Each load that was run with several numbers of instances, GPUs or workers; floors are left out."""
    runs = [run for run in study.started if not run.is_floor and any(_rates([run]))]
    return tuple(found for unit in UNITS for found in _over(unit, runs))


def _over(unit: str, runs: Runs) -> Iterator[Scaling]:
    groups: dict[tuple[object, ...], dict[int, list[Summary]]] = {}
    for run in runs:
        if units := units_of(run, unit):
            groups.setdefault(_else(run, unit), {}).setdefault(units, []).append(run)
    for by_units in groups.values():
        if len(by_units) > 1:
            yield Scaling(unit, dict(sorted(by_units.items())))


def units_of(run: Summary, unit: str) -> int | None:
    """How many of a unit a run had; None where that is not known."""
    if unit == "workers":
        return run.workers
    return run.gpus if unit == "GPUs" else run.serving.instances if run.serving else None


def _else(run: Summary, unit: str) -> tuple[object, ...]:
    """All that must be alike for runs to differ in that unit alone."""
    load = (run.endpoint, run.batch, run.load, run.arrivals, run.level)
    how = (run.channels, run.client, run.link, run.congestion)
    return (*load, *how, *(units_of(run, other) for other in UNITS if other != unit))


def _rates(runs: Runs) -> list[float]:
    return [rate for run in resting_on(runs, images_per_s) if (rate := images_per_s(run))]
