"""The seconds of a run's measure phase as shares need them: how many requests were beyond a bound in each."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path

import numpy as np
import numpy.typing as npt

from reports.fold.records import readable
from reports.fold.windows import Results
from reports.histogram.buckets import Buckets, middles_ns, together
from reports.ledger.ledger import FILE_NAME, Record, Tag, outline, records_of_runs, tag_of

MOST_BLOCKS = 300
"""Of a run: a longer one has several seconds in each, since a day's would only cost memory."""
MOST_OF_ALL = 50_000
"""Of a study: some 200 MB."""
AT_ONCE = 500
Counts = npt.NDArray[np.float64]
NAMES = frozenset({"latency", "service_time"})


class RunBlocks:
    """What came back in a run, `width_s` seconds in each block."""

    def __init__(self, width_s: int = 1) -> None:
        self.width_s = width_s
        self._blocks: dict[int, Results] = {}

    def add(self, windows: Sequence[Record]) -> None:
        """Takes in windows of the measure phase as a ledger has them."""
        found = defaultdict[int, list[Record]](list)
        for window in readable(windows):
            found[window["second"] // self.width_s].append(window)
        for at, some in found.items():
            self._blocks.setdefault(at, Results(NAMES)).add(some)

    def merge(self, second: int, found: Results) -> None:
        """Takes in what came back in a second."""
        self._blocks.setdefault(second // self.width_s, Results(NAMES)).merge(found)

    def widen(self) -> None:
        """Twice the seconds in each block."""
        narrow, self._blocks = self._blocks, {}
        self.width_s *= 2
        for at, block in narrow.items():
            self._blocks.setdefault(at // 2, Results(NAMES)).merge(block)

    def __len__(self) -> int:
        return len(self._blocks)

    @property
    def failures(self) -> int:
        """Of all of them."""
        return sum(block.failures for block in self._blocks.values())

    @property
    def blocks(self) -> list[Results]:
        """Those with requests in them, in order."""
        found = [self._blocks[at] for at in sorted(self._blocks)]
        return [block for block in found if block.finished]


def read_blocks(directory: Path, most_of_all: int = MOST_OF_ALL) -> dict[Tag, RunBlocks]:
    """The measure phases of all runs of a ledger; LedgerError where it cannot be read."""
    found = outline(directory / FILE_NAME)
    lengths = {tag: len(run.seconds) for tag, run in found.runs.items()}
    least = ceil(sum(lengths.values()) / most_of_all)
    runs = {tag: RunBlocks(max(1, least, ceil(length / MOST_BLOCKS))) for tag, length in lengths.items()}
    waiting = defaultdict[Tag, list[Record]](list)
    for number, record in records_of_runs(found):
        tag = tag_of(record)
        if record["kind"] == "window" and record["phase"] == "measure":
            waiting[tag].append(record)
        if number == found.runs[tag].last or len(waiting[tag]) >= AT_ONCE:
            runs[tag].add(waiting.pop(tag))
    return runs


@dataclass(frozen=True)
class BlockSeries:
    """Blocks of one run or more, in order, and which run each is of."""

    blocks: Sequence[Results]
    runs: npt.NDArray[np.int64]

    @classmethod
    def of(cls, runs: Sequence[RunBlocks]) -> "BlockSeries":
        """Of those that have any."""
        each = [blocks for run in runs if (blocks := run.blocks)]
        numbers = [number for number, blocks in enumerate(each) for _ in blocks]
        return cls([block for blocks in each for block in blocks], np.array(numbers, np.int64))

    def beyond(self, name: str, bound_ns: float) -> tuple[Counts, Counts]:
        """How many successes of each were above a bound in one of NAMES, and how many there were."""
        whole = self.whole(name)
        sizes = [len(block.histogram(name).indices) for block in self.blocks]
        block_of = np.repeat(np.arange(len(sizes)), sizes)
        above = whole.counts * (middles_ns(whole.indices) > bound_ns)
        hits, all_of_them = (np.bincount(block_of, each, len(self.blocks)) for each in (above, whole.counts))
        return hits.astype(np.float64), all_of_them.astype(np.float64)

    def failed(self) -> tuple[Counts, Counts]:
        """How many requests of each failed, and how many came back."""
        failures = [float(block.failures) for block in self.blocks]
        return np.array(failures), np.array([float(block.finished) for block in self.blocks])

    def whole(self, name: str) -> Buckets:
        """All successes of one of NAMES."""
        return together(block.histogram(name) for block in self.blocks)
