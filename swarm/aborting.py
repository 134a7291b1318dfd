"""Thresholds that may stop a study: what the measure phase under way says of them, second by second."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from reports.buckets import mean_ns, percentiles_ns
from reports.doubt.client import own_slowness
from reports.fold.health import health
from reports.fold.readable import readable
from reports.format import NS_PER_MS
from reports.gates.absolute import of_seconds
from reports.gates.blocks import MOST_BLOCKS, Block, Seconds
from reports.gates.claim import Claim
from reports.gates.columns import PERCENTILES
from reports.gates.planned import planned_cell
from reports.gates.select import cells_of
from reports.gates.shares import LEAST_BLOCKS
from reports.gates.thresholds import Threshold
from reports.gates.verdict import measured

CERTAIN = 0.001
"""How likely evidence so strong may be while the bound is kept; a study is not stopped for less."""
BLOCKS_A_LOOK = 100
"""So many blocks more make a close look a second rarer: each takes up to 0.4 ms of a measurement."""
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
    """Follows a ledger's records; `entries` are those of the plan, one for each cell or more."""

    def __init__(self, thresholds: Iterable[Threshold], entries: Iterable[Record]) -> None:
        self._thresholds = tuple(thresholds)
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
        width_s = 1 + int(entry["seconds"]) // MOST_BLOCKS
        return Phase(entry["cell"], record["repeat"], chosen, width_s) if chosen else None


class Phase:
    """A measure phase so far, for the thresholds that are of its cell, in blocks of `width_s` seconds.

    A second is taken in once a worker tells of the next. What comes later from other workers still counts.
    """

    def __init__(self, cell: str, repeat: int, thresholds: Sequence[Threshold], width_s: int) -> None:
        self._cell, self._repeat = cell, repeat
        self._thresholds, self._width_s = thresholds, width_s
        columns = {one.require.column for one in thresholds}
        self._names = {"latency", *(name for of, (name, _) in PERCENTILES.items() if of in columns)}
        self._held: list[Record] = []
        self._health: list[Record] = []
        self._first_s = self._newest_s = self._next_look_s = 0
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
            self._health.append(record)
        return found

    def _take_in(self) -> None:
        windows = readable(self._held)
        self._whole.add(windows)
        for window in windows:
            self._blocks.setdefault(window["second"] // self._width_s, Block()).add([window])
        self._held = []

    def _look(self, elapsed_s: int) -> Stop | None:
        """Closely only where the estimate itself is beyond what is tolerated, as it hardly ever is."""
        due = [one for one in self._thresholds if elapsed_s >= (one.abort_after_s or 0) and self._beyond(one)]
        if not due or elapsed_s < self._next_look_s:
            return None
        blocks = [block for _, block in sorted(self._blocks.items()) if block.ok or block.failures]
        self._next_look_s = elapsed_s + 1 + len(blocks) // BLOCKS_A_LOOK
        seconds = Seconds(blocks, np.zeros(len(blocks), np.int64))
        return next(filter(None, (self._certain(one, seconds) for one in due)), None)

    def _beyond(self, threshold: Threshold) -> bool:
        whole = self._whole
        if threshold.require.column not in PERCENTILES:
            return whole.failures > threshold.tolerated * (whole.ok + whole.failures)
        name, percent = PERCENTILES[threshold.require.column]
        (value_ns,) = percentiles_ns(whole.histograms[name], [percent]) if whole.ok else (None,)
        return value_ns is not None and value_ns > threshold.tolerated * NS_PER_MS

    def _certain(self, threshold: Threshold, seconds: Seconds) -> Stop | None:
        # Where nothing may fail, one failure says all.
        if len(seconds.blocks) < LEAST_BLOCKS and threshold.require.bound > 0:
            return None
        evidence = of_seconds(threshold, seconds, 1)
        if evidence.p_broken > CERTAIN or not evidence.beyond or self._excused(threshold):
            return None
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
        return bool(own_slowness(health(readable(self._health)), times))
