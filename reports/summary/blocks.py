"""The seconds of a run's measure phase as shares need them: how many requests were beyond a bound in each."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np
import numpy.typing as npt

from reports.fold.run_records import RunRecords
from reports.fold.windows import Results
from reports.histogram.buckets import Buckets, compact, middles_ns, together

MOST_BLOCKS = 300
"""Of a run: a longer one has several seconds in each, since a day's would only cost memory."""
Counts = npt.NDArray[np.float64]
NAMES = frozenset({"latency", "service_time"})


class RunBlocks:
    """What came back in a run, `width_s` seconds in each block."""

    def __init__(self, width_s: int = 1) -> None:
        self.width_s = width_s
        self._blocks: dict[int, Results] = {}
        self._dropped = Counter[int]()
        self.classes: Mapping[str, Results] = {}
        """What came back in all of it, by class, where requests are not all alike."""

    def merge(self, second: int, found: Results) -> None:
        """Takes in what came back in a second."""
        self._blocks.setdefault(second // self.width_s, Results(NAMES)).merge(found)

    def drop(self, second: int, count: int) -> None:
        """Takes in arrivals that were due in a second and never sent."""
        self._blocks.setdefault(second // self.width_s, Results(NAMES))
        self._dropped[second // self.width_s] += count

    def widen(self) -> None:
        """Twice the seconds in each block, before any arrival is known to be dropped."""
        narrow, self._blocks = self._blocks, {}
        self.width_s *= 2
        for at, block in narrow.items():
            self._blocks.setdefault(at // 2, Results(NAMES)).merge(block)

    def of_class(self, label: str) -> "RunBlocks":
        """Its requests of one class, all in one block: their seconds are not told apart."""
        made = RunBlocks()
        made.merge(0, self.classes.get(label, Results(NAMES)))
        return made

    def __len__(self) -> int:
        return len(self._blocks)

    @property
    def failures(self) -> int:
        """Of all of them."""
        return sum(block.failures for block in self._blocks.values())

    @property
    def histograms(self) -> Iterator[Buckets]:
        """Every histogram that is kept."""
        found = (*self._blocks.values(), *self.classes.values())
        return (one for results in found for one in results.histograms.values())

    @property
    def blocks(self) -> list[Results]:
        """Those in which requests came back or were dropped, in order."""
        return [self._blocks[at] for at in self._told]

    @property
    def by_second(self) -> Mapping[int, Results]:
        """The same by their first second, counted from the study's."""
        return {at * self.width_s: self._blocks[at] for at in self._told}

    @property
    def dropped(self) -> list[int]:
        """Arrivals of each of those that were never sent."""
        return [self._dropped[at] for at in self._told]

    @property
    def _told(self) -> list[int]:
        return [at for at in sorted(self._blocks) if self._blocks[at].finished or self._dropped[at]]


def blocks_of(run: RunRecords) -> RunBlocks:
    """The measure phase of a run whose seconds keep NAMES; none is narrower than a second of its timeline."""
    width_s = run.bins.width_s
    blocks = RunBlocks(width_s * ceil(len(run.seconds) / MOST_BLOCKS) if run.seconds else width_s)
    blocks.classes = run.classes
    for at, second in run.seconds.items():
        if found := second.results.get("measure"):
            blocks.merge(at - run.bins.origin, found)
    first = min((at for at, second in run.seconds.items() if "measure" in second.results), default=0)
    for line in run.drained:
        # what older ledgers do not tell the seconds of was dropped at once
        for offset, count in line.get("dropped_by_s") or [(0, line.get("dropped") or 0)]:
            if count:
                blocks.drop(first - run.bins.origin + offset, count)
    return blocks


@dataclass(frozen=True)
class BlockSeries:
    """Blocks of one run or more, in order, which run each is of, and arrivals of each that were dropped."""

    blocks: Sequence[Results]
    runs: npt.NDArray[np.int64]
    dropped: Sequence[int] = ()

    @classmethod
    def of(cls, runs: Sequence[RunBlocks]) -> "BlockSeries":
        """Of those that have any."""
        each = [(blocks, run.dropped) for run in runs if (blocks := run.blocks)]
        numbers = [number for number, (blocks, _) in enumerate(each) for _ in blocks]
        dropped = [count for _, counts in each for count in counts]
        return cls([one for blocks, _ in each for one in blocks], np.array(numbers, np.int64), dropped)

    def beyond(self, name: str, bound_ns: float) -> tuple[Counts, Counts]:
        """How many successes of each were above a bound in one of NAMES, and how many there were."""
        whole = together(block.histogram(name) for block in self.blocks)
        sizes = [len(block.histogram(name).indices) for block in self.blocks]
        block_of = np.repeat(np.arange(len(sizes)), sizes)
        above = whole.counts * (middles_ns(whole.indices) > bound_ns)
        hits, all_of_them = (np.bincount(block_of, each, len(self.blocks)) for each in (above, whole.counts))
        return hits.astype(np.float64), all_of_them.astype(np.float64)

    def failed(self) -> tuple[Counts, Counts]:
        """How many requests of each failed, and how many came back."""
        failures = [float(block.failures) for block in self.blocks]
        return np.array(failures), np.array([float(block.finished) for block in self.blocks])

    def bad(self) -> tuple[Counts, Counts]:
        """How many requests of each were not good by --slo, and how many were due; without one all are bad.

        Good ones succeeded within its limits, due are those that came back and arrivals that were dropped.
        """
        due = np.array([float(block.finished) for block in self.blocks])
        due += np.array(self.dropped or [0] * len(self.blocks), np.float64)
        return due - np.array([float(block.good or 0) for block in self.blocks]), due

    def unanswered(self) -> Counts:
        """How many requests of each failed or were never sent: they are beyond every bound on a latency."""
        failures, _ = self.failed()
        return failures + np.array(self.dropped or [0] * len(self.blocks), np.float64)

    def whole(self, name: str) -> Buckets:
        """All successes of one of NAMES."""
        return compact(block.histogram(name) for block in self.blocks)
