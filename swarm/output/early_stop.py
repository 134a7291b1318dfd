"""Thresholds that may stop a study: what the measure phase under way says of them, second by second."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from reports.caveats.client import own_slowness
from reports.fold.readable import readable
from reports.format import NS_PER_MS
from reports.gates.absolute import of_seconds
from reports.gates.blocks import MOST_BLOCKS, Block, Seconds
from reports.gates.claim import Claim
from reports.gates.columns import PERCENTILES
from reports.gates.planned import planned_cell
from reports.gates.select import cells_of
from reports.gates.thresholds import Threshold
from reports.gates.verdict import measured
from reports.histogram.buckets import mean_ns, percentiles_ns
from swarm.output.certainty import chance_of, is_certain, look_at
from swarm.output.health_so_far import HealthSoFar

Record = dict[str, Any]


@dataclass(frozen=True)
class Stop:
    """Which threshold stopped the study, and for what: `why` is a sentence without its cell and full stop."""

    threshold: int
    require: str
    cell: str
    repeat: int
    why: str

    def to_record(self) -> Record:
        """As the ledger's footer has it."""
        return dict(vars(self))


class Aborting:
    """Follows a ledger's records; `entries` are those of the plan, one for each cell or more.

    There are to be so many `runs` at most, which share the chance that a threshold stops them wrongly.
    """

    def __init__(self, thresholds: Iterable[Threshold], entries: Iterable[Record], runs: int) -> None:
        self._thresholds, self._runs = tuple(thresholds), runs
        self._plan = {entry["cell"]: entry for entry in entries}
        self._phase: Phase | None = None
        self.stop: Stop | None = None
        """What has become certain, if anything."""

    def on_record(self, record: Record) -> None:
        """Takes in any record; a `phase` begins a phase."""
        if record["kind"] == "plan":
            self._plan |= {entry["cell"]: entry for entry in record["runs"]}
        elif record["kind"] == "phase":
            self._phase = self._begun(record) if record["phase"] == "measure" else None
        elif record["kind"] in ("window", "health") and self._phase and self._phase.has(record):
            self.stop = self.stop or self._phase.add(record)

    def _begun(self, record: Record) -> Phase | None:
        entry = self._plan[record["cell"]]
        planned = {entry["cell"]: planned_cell(entry)}
        chosen = [one for one in self._thresholds if cells_of(one, planned)]
        return Phase(entry["cell"], record["repeat"], chosen, self._runs) if chosen else None


class Phase:
    """A measure phase so far, one of so many `runs`, for the thresholds that are of its cell.

    A second is taken in once a worker tells of the next. What comes later from other workers still counts.
    """

    def __init__(self, cell: str, repeat: int, thresholds: Sequence[Threshold], runs: int) -> None:
        self._cell, self._repeat = cell, repeat
        self._thresholds, self._runs = thresholds, runs
        self._looks = {one.number: 0 for one in thresholds}
        columns = {one.require.column for one in thresholds}
        self._names = {"latency", *(name for of, (name, _) in PERCENTILES.items() if of in columns)}
        self._held: list[Record] = []
        self._health = HealthSoFar()
        self._first_s = self._newest_s = 0
        self._width_s = 1
        self._blocks: dict[int, Block] = {}
        self._whole = Block()

    def has(self, record: Record) -> bool:
        """Whether a worker's second is of it."""
        return (record["cell"], record["repeat"], record["phase"]) == (self._cell, self._repeat, "measure")

    def add(self, record: Record) -> Stop | None:
        """Takes in a second of a worker, and says what is certain with those before it."""
        second, found = record["second"], None
        if second > self._newest_s:
            self._first_s = self._first_s or second
            self._take_in()
            self._newest_s = second
            found = self._look(second - self._first_s)
        if record["kind"] == "window":
            needed = {name: text for name, text in record["histograms"].items() if name in self._names}
            self._held.append({**record, "histograms": needed})
        else:
            self._health.add(record)
        return found

    def _take_in(self) -> None:
        windows = readable(self._held)
        self._whole.add(windows)
        for window in windows:
            self._blocks.setdefault(window["second"] // self._width_s, Block()).add([window])
        self._held = []
        if len(self._blocks) > MOST_BLOCKS:
            self._widen()

    def _widen(self) -> None:
        """Twice the seconds in each block."""
        self._width_s *= 2
        wider: dict[int, Block] = {}
        for at, block in self._blocks.items():
            as_window = {**vars(block), "failures": {"": block.failures}}
            wider.setdefault(at // 2, Block()).add([as_window])
        self._blocks = wider

    def _look(self, elapsed_s: int) -> Stop | None:
        return next(filter(None, (self._look_at(one, elapsed_s) for one in self._thresholds)), None)

    def _look_at(self, threshold: Threshold, elapsed_s: int) -> Stop | None:
        if threshold.counts:
            # Where nothing may fail, one failure says all.
            due = self._whole.failures > 0 and elapsed_s >= (threshold.abort_after_s or 0)
            return self._stop(threshold, self._seconds()) if due else None
        look, before = look_at(threshold, elapsed_s), self._looks[threshold.number]
        self._looks[threshold.number] = look
        if look == before or not self._beyond(threshold):
            return None
        seconds, chance = self._seconds(), chance_of(look, self._runs)
        certain = is_certain(threshold, seconds, self._width_s, chance) and not self._excused(threshold)
        return self._stop(threshold, seconds) if certain else None

    def _seconds(self) -> Seconds:
        blocks = [block for _, block in sorted(self._blocks.items()) if block.ok or block.failures]
        return Seconds(blocks, np.zeros(len(blocks), np.int64))

    def _beyond(self, threshold: Threshold) -> bool:
        """Whether the estimate itself is beyond what is tolerated, as it hardly ever is."""
        whole = self._whole
        if threshold.require.column not in PERCENTILES:
            return whole.failures > threshold.tolerated * (whole.ok + whole.failures)
        name, percent = PERCENTILES[threshold.require.column]
        (value_ns,) = percentiles_ns(whole.histograms[name], [percent]) if whole.ok else (None,)
        return value_ns is not None and value_ns > threshold.tolerated * NS_PER_MS

    def _stop(self, threshold: Threshold, seconds: Seconds) -> Stop:
        evidence = of_seconds(threshold, seconds, 1)
        claim = Claim(threshold=threshold, cell=self._cell, evidence=evidence)
        why = f"{measured(claim)}: the study was stopped"
        return Stop(threshold.number, threshold.require.text, self._cell, self._repeat, why)

    def _excused(self, threshold: Threshold) -> bool:
        """Whether times may be the generator's own, and so say nothing of the server; failures never are."""
        if threshold.require.column not in PERCENTILES:
            return False
        whole = self._whole.histograms["latency"]
        (p95_ns,) = percentiles_ns(whole, [95.0])
        times = {"latency_p95_ns": p95_ns, "latency_mean_ns": mean_ns(whole)}
        return bool(own_slowness(self._health.found, times))
