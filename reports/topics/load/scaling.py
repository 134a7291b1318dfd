"""How much of n servers', GPUs' or workers' worth is had: the rate of n over n times the rate of one."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from statistics import median

from reports.page.grid import Runs, resting_on
from reports.stats.spread import Spread
from reports.study.study_reports import Study
from reports.summary.summary import Summary
from reports.topics.payloads.matrix import images_per_s

UNITS = ("instances", "GPUs", "workers")


@dataclass(frozen=True)
class Step:
    """Some units: their rate, how many times that of the fewest it is, and what percent of their promise.

    Each is by medians, with the least and the most that the repeats of both allow.
    """

    units: int
    rate: Spread
    times: Spread
    efficiency_pct: Spread


@dataclass(frozen=True)
class Scaling:
    """Runs of one load that differ in a number of units alone, by that number, fewest first."""

    unit: str
    by_units: Mapping[int, Runs]

    @property
    def steps(self) -> tuple[Step, ...]:
        """One for each number of units."""
        pairs = ((units, rate) for units, runs in self.by_units.items() for rate in _rates(runs))
        return efficiencies(pairs)


def efficiencies(pairs: Iterable[tuple[int, float]]) -> tuple[Step, ...]:
    """One step for each number of units, fewest first; of several rates with one number, the median.

    efficiency = (rate(n) ÷ n) ÷ (rate(m) ÷ m), with m the fewest units, usually 1, which have no range: they
    are the measure. Raises ValueError for a number of units or a rate that is not above 0.
    """
    found: dict[int, list[float]] = {}
    for units, rate in pairs:
        if units <= 0 or not rate > 0:
            raise ValueError("efficiency takes units and rates above 0")
        found.setdefault(units, []).append(rate)
    rates = {n: Spread(median(of), min(of), max(of), len(of)) for n, of in sorted(found.items())}
    fewest = min(rates, default=0)
    return tuple(_step(units, rate, fewest, rates[fewest]) for units, rate in rates.items())


def _step(units: int, rate: Spread, fewest: int, base: Spread) -> Step:
    if units == fewest:
        return Step(units, rate, Spread(1, 1, 1), Spread(100, 100, 100))
    return Step(units, rate, _times(rate, base, 1), _times(rate, base, 100 * fewest / units))


def _times(top: Spread, bottom: Spread, factor: float) -> Spread:
    """So many times the ratio, as `reports.stats.spread.over` has it, of rates that are above 0."""
    low, high = top.low / bottom.high, top.high / bottom.low
    runs = min(top.runs, bottom.runs)
    return Spread(factor * top.median / bottom.median, factor * low, factor * high, runs)


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
    how = (run.channels, run.client, run.link, run.congestion, run.queue_delay_us)
    return (*load, *how, *(units_of(run, other) for other in UNITS if other != unit))


def _rates(runs: Runs) -> list[float]:
    return [rate for run in resting_on(runs, images_per_s) if (rate := images_per_s(run))]
