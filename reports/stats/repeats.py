"""What the repeats of a cell say together, with their lowest and highest, and which can be rested on."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Self, TypeVar

from reports.format import NS_PER_MS, milliseconds, with_interval
from reports.stats.paired import ADVISED_REPEATS, LEAST_REPEATS
from reports.stats.shares import LEAST_BLOCKS
from reports.study.study import Study
from reports.summary.batch import Batch, batch_of
from reports.summary.blocks import BlockSeries
from reports.summary.summary import Summary, Way

Key = TypeVar("Key")
Item = TypeVar("Item")
Value = Callable[[Summary], float | None]
Runs = Sequence[Summary]
DIFFER = "repeats-differ"
CONFIRM = f"rerun with --repeats {ADVISED_REPEATS} to confirm"


def grouped(items: Iterable[Item], key: Callable[[Item], Key]) -> dict[Key, list[Item]]:
    """The items, such as runs, of each key, in the order in which the keys come."""
    found: dict[Key, list[Item]] = {}
    for item in items:
        found.setdefault(key(item), []).append(item)
    return found


def ranked(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    """Names with their counts, the most frequent first, and those as frequent by name."""
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def alone(runs: Iterable[Summary]) -> list[Summary]:
    """Those that ran with no other cell at the same time; all where each ran with one."""
    every = list(runs)
    return [run for run in every if not run.together] or every


def by_cell(runs: Iterable[Summary]) -> dict[str, list[Summary]]:
    """The repeats of each cell, by its name."""
    return grouped(runs, lambda run: run.cell)


def by_way(study: Study, runs: Iterable[Summary]) -> dict[Way, list[Summary]]:
    """The runs of each way that has any, in the study's order."""
    return grouped(study.ordered(runs), lambda run: run.way)


def by_batch(study: Study, runs: Iterable[Summary]) -> dict[tuple[Way, Batch], list[Summary]]:
    """Those of each way and batch, likewise."""
    return grouped(study.ordered(runs, batch_of), lambda run: (run.way, batch_of(run)))


def repeats(study: Study) -> str:
    """What the figures of tables are of, and what stands in brackets; empty where there is nothing to say."""
    most = max((run.repeat for run in study.started), default=1)
    if most == 1:
        if all(len(BlockSeries.of([run]).blocks) < LEAST_BLOCKS for run in study.blocks.values()):
            return ""
        return "In brackets behind a percentile is its 95 % CI within one run: it leaves out how runs differ."
    return (
        f"Percentiles are of all requests of up to {most} repeats; other figures with a 95 % CI in brackets "
        "are geometric means of these, those without are medians, where a table says nothing else. "
        "Invalidated repeats count only where all are."
    )


def values(runs: Runs, value: Value) -> list[float]:
    """Those of the repeats that it rests on."""
    return [found for run in resting_on(runs, value) if (found := value(run)) is not None]


def by_repeat(runs: Runs, value: Value) -> dict[int, float]:
    """Those of the repeats that it rests on, by their number; empty where one is 0, as no ratio has that."""
    found = {run.repeat: value(run) or 0.0 for run in resting_on(runs, value)}
    return found if all(found.values()) else {}


def typical(runs: Runs, value: Value) -> float | None:
    """The median over the repeats it rests on; None where there are none."""
    known = values(runs, value)
    return median(known) if known else None


def resting_on(runs: Runs, value: Value) -> Runs:
    """The repeats that have the value and no invalidating caveat, or all that have it where each has one."""
    known = [run for run in runs if value(run) is not None]
    return [run for run in known if not run.tainted] or known


def repeats_differ(runs: Runs) -> bool:
    """Whether the repeats of a cell differ by more than their seconds explain."""
    return any(caveat.code == DIFFER for run in runs for caveat in run.caveats)


def scarcity(counts: Collection[int]) -> str:
    """What a comparison cannot tell when it rests on so many runs of each cell; empty where they suffice."""
    if max(counts) == 1:
        return f"unconfirmed: one run per cell; {CONFIRM}"
    if min(counts) == 1:
        return f"unconfirmed where a cell has one run; {CONFIRM}"
    return hedge(min(counts))


def taints(runs: Runs) -> Iterator[str]:
    """Each caveat that invalidates one of the runs; what to do about it is said once, under Caveats."""
    return (f"invalidated: {caveat.code}" for run in runs for caveat in run.caveats if caveat.tainted)


def delays_paid(runs: Runs) -> Iterator[str]:
    """What a figure of the latency or the rate of one user holds where its server waits for others."""
    for run in runs:
        if run.serving and any(caveat.code == "batching-delay" for caveat in run.caveats):
            saved = milliseconds((run.serving.batching_delay_ns or 0) / NS_PER_MS)
            yield f"a lone request pays the batching delay in full: --queue-delay-us 0 would save {saved} ms"


def absence(runs: Runs) -> str:
    """Why there is no number."""
    if not runs:
        return "not in this study's plan"
    if not any(run.started for run in runs):
        return "not run"
    if any(run.succeeded for run in runs):
        return "not stated by the server"
    ends = {run.status for run in runs if run.started} - {"done"}
    return f"no request succeeded ({', '.join(sorted(ends))})" if ends else "no request succeeded"


@dataclass(frozen=True)
class Spread:
    """What some repeats came to; with one run all three are the same."""

    median: float
    low: float
    high: float
    runs: int = 1

    @classmethod
    def of(cls, values: Sequence[float]) -> Self:
        """Of at least one value."""
        return cls(median(values), min(values), max(values), len(values))

    def scaled(self, factor: float) -> "Spread":
        """So many times as much."""
        return Spread(factor * self.median, factor * self.low, factor * self.high, self.runs)

    def __str__(self) -> str:
        """The median, and where there are several runs their range: 21.7 (20.9–22.4)."""
        low, high = (None, None) if self.runs == 1 else (self.low, self.high)
        return with_interval(self.median, low, high)


def spread_of(runs: Runs, value: Value) -> Spread | None:
    """The spread of a value over the runs that have it; None where none has."""
    found = [known for run in runs if (known := value(run)) is not None]
    return Spread.of(found) if found else None


def over(top: Spread, bottom: Spread) -> Spread | None:
    """The ratio of two medians, with the least and the most that their repeats allow; None over 0."""
    if bottom.low <= 0:
        return None
    ends = (top.low / bottom.high, top.high / bottom.low)
    return Spread(top.median / bottom.median, *ends, min(top.runs, bottom.runs))


def hedge(fewest: int) -> str:
    """What so few runs of each side leave open; empty where they suffice."""
    if fewest < 2:
        return f"with one run behind a figure, this may be chance; {CONFIRM}"
    if fewest < LEAST_REPEATS:
        return f"with fewer than {LEAST_REPEATS} runs per cell, differences may be chance"
    return ""
