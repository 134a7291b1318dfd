"""The seconds of a run's measure phase as shares need them: how many requests were beyond a bound in each."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from reports.buckets import Buckets, compact, middles_ns, together
from reports.fold.readable import readable
from reports.gates.shares import Counts
from reports.ledger import FILE_NAME, Record, Tag, outline, records_of_runs, tag_of

MOST_BLOCKS = 300
"""Of a run: a longer one has several seconds in each, since a day's would only cost memory."""
AT_ONCE = 500
NAMES = ("latency", "service_time")
NOTHING = Buckets(np.empty(0, np.int64), np.empty(0, np.int64))


@dataclass
class Block:
    """A second of all workers, or several: its successes by histogram, and its failures."""

    failures: int = 0
    ok: int = 0
    histograms: dict[str, Buckets] = field(default_factory=dict)

    def add(self, window: Record) -> None:
        """Takes in a worker's second, whose histograms are decoded."""
        self.failures += sum(window["failures"].values())
        self.ok += window["ok"]
        for name in NAMES:
            if name in window["histograms"]:
                old = self.histograms.get(name, NOTHING)
                self.histograms[name] = compact([old, window["histograms"][name]])


class RunBlocks:
    """The blocks of one run, `width_s` seconds in each."""

    def __init__(self, width_s: int = 1) -> None:
        self._width_s = width_s
        self._blocks: dict[int, Block] = {}

    def add(self, windows: Iterable[Record]) -> None:
        """Takes in windows of the measure phase as a ledger has them."""
        for window in readable(list(windows)):
            self._blocks.setdefault(window["second"] // self._width_s, Block()).add(window)

    @property
    def blocks(self) -> list[Block]:
        """Those with requests in them, in order."""
        found = [self._blocks[at] for at in sorted(self._blocks)]
        return [block for block in found if block.ok or block.failures]


def read_blocks(directory: Path, wanted: Iterable[Tag]) -> dict[Tag, RunBlocks]:
    """The measure phases of some runs of a ledger; LedgerError where it cannot be read."""
    found = outline(directory / FILE_NAME)
    runs = {
        tag: RunBlocks(1 + len(found.runs[tag].seconds) // MOST_BLOCKS) for tag in wanted if tag in found.runs
    }
    waiting: dict[Tag, list[Record]] = {tag: [] for tag in runs}
    for _, record in records_of_runs(found):
        tag = tag_of(record)
        if tag in runs and record["kind"] == "window" and record["phase"] == "measure":
            waiting[tag].append(record)
            if len(waiting[tag]) >= AT_ONCE:
                runs[tag].add(waiting.pop(tag))
                waiting[tag] = []
    for tag, windows in waiting.items():
        runs[tag].add(windows)
    return runs


@dataclass(frozen=True)
class Seconds:
    """Blocks of one run or more, in order, and which run each is of."""

    blocks: Sequence[Block]
    runs: npt.NDArray[np.int64]

    @classmethod
    def of(cls, runs: Sequence[RunBlocks]) -> "Seconds":
        """Of all of them."""
        each = [run.blocks for run in runs]
        numbers = [number for number, blocks in enumerate(each) for _ in blocks]
        return cls([block for blocks in each for block in blocks], np.array(numbers, np.int64))

    def beyond(self, name: str, bound_ns: float) -> tuple[Counts, Counts]:
        """How many successes of each were above a bound in one of NAMES, and how many there were."""
        found = [block.histograms.get(name, NOTHING) for block in self.blocks]
        above = [float(one.counts[middles_ns(one.indices) > bound_ns].sum()) for one in found]
        return np.array(above), np.array([float(one.total) for one in found])

    def failed(self) -> tuple[Counts, Counts]:
        """How many requests of each failed, and how many came back."""
        failures = [float(block.failures) for block in self.blocks]
        return np.array(failures), np.array([float(block.ok + block.failures) for block in self.blocks])

    def whole(self, name: str) -> Buckets:
        """All successes of one of NAMES."""
        return together(block.histograms.get(name, NOTHING) for block in self.blocks)
