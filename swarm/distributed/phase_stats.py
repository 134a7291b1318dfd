"""The current phase as the master sees it: its seconds, all workers together."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from reports.histogram import codec

KEPT = 60
"""Seconds that are kept one by one: more than any verdict looks back at."""


@dataclass(frozen=True)
class SecondStats:
    """One second of a phase, all workers together; `latencies` are encoded histograms of the successes."""

    finished: int
    latencies: tuple[str, ...]


class PhaseStats:
    """Gathers the windows of one phase.

    Workers' clocks are not compared: each worker's seconds are counted from its own first one in this phase,
    and a second is complete once every worker has told how it fared in it.
    """

    def __init__(self) -> None:
        self._first: dict[str, int] = {}
        self._told: dict[str, int] = {}
        self._finished: dict[int, int] = {}
        self._latencies: dict[int, list[str]] = {}
        self.latency = codec.empty()
        """Of all successes that have come, merged."""
        self._counters: deque[Mapping[str, int]] = deque(maxlen=KEPT)

    def add_window(self, window: Mapping[str, Any]) -> None:
        """One worker's second."""
        at = self._index(window)
        self._finished[at] = self._finished.get(at, 0) + window["ok"] + sum(window["failures"].values())
        if "latency" in window["histograms"]:
            self._latencies.setdefault(at, []).append(window["histograms"]["latency"])
            codec.add(self.latency, window["histograms"]["latency"])
        forget(self._finished, at - KEPT)
        forget(self._latencies, at - KEPT)

    def add_health(self, health: Mapping[str, Any]) -> None:
        """A worker's second is over."""
        self._told[health["worker"]] = self._index(health)

    def _index(self, record: Mapping[str, Any]) -> int:
        first = self._first.setdefault(record["worker"], record["second"])
        return int(record["second"]) - first

    def add_sample(self, sample: Mapping[str, Any]) -> None:
        """The server's counters, where this second's reading has them and it has computed since the last."""
        counters = sample.get("server", {})
        if "compute_ns" not in counters:
            return
        if not self._counters or counters["executions"] != self._counters[-1]["executions"]:
            self._counters.append(counters)

    @property
    def complete(self) -> int:
        """How many seconds are complete, the first not counted."""
        return max(0, min(self._told.values(), default=0))

    @property
    def compute_ns(self) -> list[float]:
        """The server's compute time per execution, from each of the latest readings to the next with any."""
        return [
            (after["compute_ns"] - before["compute_ns"]) / executions
            for before, after in pairwise(self._counters)
            if (executions := after["executions"] - before["executions"]) > 0
        ]

    @property
    def seconds(self) -> list[SecondStats]:
        """The latest complete seconds, without the first, in which the phase began."""
        return [
            SecondStats(self._finished.get(at, 0), tuple(self._latencies.get(at, ())))
            for at in range(max(1, self.complete + 1 - KEPT), self.complete + 1)
        ]


def forget(held: dict[int, Any], last: int) -> None:
    """Drop the seconds up to `last`, which came first: a phase may last for days."""
    while held and (oldest := next(iter(held))) <= last:
        del held[oldest]
