"""The seconds of a run's measure phase as shares need them: how many requests were beyond a bound in each."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path

import numpy as np
import numpy.typing as npt

from reports.fold.records import readable
from reports.gates.evidence import Counts
from reports.histogram.buckets import Buckets, compact, middles_ns, together
from reports.ledger.ledger import FILE_NAME, Record, Tag, outline, records_of_runs, tag_of

MOST_BLOCKS = 300
"""Of a run: a longer one has several seconds in each, since a day's would only cost memory."""
MOST_OF_ALL = 50_000
"""Of a study: some 200 MB."""
AT_ONCE = 500
NAMES = ("latency", "service_time")
NOTHING = Buckets(np.empty(0, np.int64), np.empty(0, np.int64))


@dataclass
class Block:
    """A second of all workers, or several: its successes by histogram, and its failures."""

    failures: int = 0
    ok: int = 0
    histograms: dict[str, Buckets] = field(default_factory=dict)

    def add(self, windows: Sequence[Record]) -> None:
        """Takes in seconds of workers, whose histograms are decoded."""
        self.failures += sum(sum(window["failures"].values()) for window in windows)
        self.ok += sum(window["ok"] for window in windows)
        for name in NAMES:
            found = [window["histograms"][name] for window in windows if name in window["histograms"]]
            self.histograms[name] = compact([self.histograms.get(name, NOTHING), *found])


class RunBlocks:
    """The blocks of one run, `width_s` seconds in each."""

    def __init__(self, width_s: int = 1) -> None:
        self._width_s = width_s
        self._blocks: dict[int, Block] = {}

    def add(self, windows: Sequence[Record]) -> None:
        """Takes in windows of the measure phase as a ledger has them."""
        found = defaultdict[int, list[Record]](list)
        for window in readable(windows):
            found[window["second"] // self._width_s].append(window)
        for at, some in found.items():
            self._blocks.setdefault(at, Block()).add(some)

    @property
    def blocks(self) -> list[Block]:
        """Those with requests in them, in order."""
        found = [self._blocks[at] for at in sorted(self._blocks)]
        return [block for block in found if block.ok or block.failures]


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

    blocks: Sequence[Block]
    runs: npt.NDArray[np.int64]

    @classmethod
    def of(cls, runs: Sequence[RunBlocks]) -> "BlockSeries":
        """Of those that have any."""
        each = [blocks for run in runs if (blocks := run.blocks)]
        numbers = [number for number, blocks in enumerate(each) for _ in blocks]
        return cls([block for blocks in each for block in blocks], np.array(numbers, np.int64))

    def beyond(self, name: str, bound_ns: float) -> tuple[Counts, Counts]:
        """How many successes of each were above a bound in one of NAMES, and how many there were."""
        whole, which = self.whole(name), self._which(name)
        above = whole.counts * (middles_ns(whole.indices) > bound_ns)
        hits, all_of_them = (np.bincount(which, each, len(self.blocks)) for each in (above, whole.counts))
        return hits.astype(np.float64), all_of_them.astype(np.float64)

    def _which(self, name: str) -> npt.NDArray[np.int64]:
        """The block that each bucket of `whole` is of."""
        sizes = [len(self._of(block, name).indices) for block in self.blocks]
        return np.repeat(np.arange(len(sizes)), sizes)

    def failed(self) -> tuple[Counts, Counts]:
        """How many requests of each failed, and how many came back."""
        failures = [float(block.failures) for block in self.blocks]
        return np.array(failures), np.array([float(block.ok + block.failures) for block in self.blocks])

    def whole(self, name: str) -> Buckets:
        """All successes of one of NAMES."""
        return together(self._of(block, name) for block in self.blocks)

    @staticmethod
    def _of(block: Block, name: str) -> Buckets:
        return block.histograms.get(name, NOTHING)
