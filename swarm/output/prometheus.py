"""What a process has measured so far, from the ledger's records: totals, and what was said last."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reports.histogram import codec

BOUNDS_S = (
    *(0.0005, 0.001, 0.0015, 0.002, 0.003, 0.004, 0.005, 0.0075),
    *(0.01, 0.015, 0.02, 0.03, 0.04, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75),
    *(1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 30.0, 60.0),
)
"""Upper bounds of the latency buckets; a last one has none."""
FRESH_S = 5.0
"""What was said once a second, and then no more for so long, holds no more."""
KEEP_S = 300.0
"""A histogram without new results is shown for so long, and again when it gets some: scrapes stay short."""


class Series(NamedTuple):
    """What totals are counted by; repeats of a cell add up."""

    endpoint: str
    cell: str
    phase: str


@dataclass(frozen=True)
class Latency:
    """Successes by bucket, not cumulative, the last without a bound; and the sum of their latencies."""

    counts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(len(BOUNDS_S) + 1, np.int64))
    sum_s: float = 0.0
    heard: float = 0.0

    def plus(self, encoded: str, heard: float) -> Latency:
        """With a window's histogram, heard at this time of the clock. Raises HistogramError."""
        decoded = codec.decoded(encoded)
        buckets = np.searchsorted(ends_of_buckets(), decoded.indices, side="right")
        counts = self.counts.copy()
        np.add.at(counts, buckets, decoded.counts)
        return Latency(counts, self.sum_s + float(middles_s()[decoded.indices] @ decoded.counts), heard)


@dataclass(frozen=True)
class Worker:
    """One worker's last word; a lag of None is one that was not measured."""

    users: int
    in_flight: int
    cpu_pct: float
    lag_p99_s: float | None


@dataclass(frozen=True)
class Snapshot:
    """What is known at one moment; `run` is cell, repeat and phase of the run under way, if one is."""

    ok: Mapping[Series, int]
    failed: Mapping[Series, int]
    images: Mapping[Series, int]
    late: Mapping[Series, int]
    dropped: Mapping[Series, int]
    failures: Mapping[tuple[str, str], int]
    latencies: Mapping[Series, Latency]
    workers: Mapping[str, Worker]
    sample: Mapping[str, Any]
    run: tuple[str, int, str] | None


class Live:
    """Hears records as they are written into the ledger; `clock` counts seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._ok, self._failed, self._images = Counter[Series](), Counter[Series](), Counter[Series]()
        self._late, self._dropped = Counter[Series](), Counter[Series]()
        self._failures = Counter[tuple[str, str]]()
        self._latencies: dict[Series, Latency] = {}
        self._workers: dict[str, tuple[float, Mapping[str, Any]]] = {}
        self._sample: tuple[float, Mapping[str, Any]] = (0.0, {})
        self._run: tuple[float, tuple[str, int, str] | None] = (0.0, None)
        middles_s(), ends_of_buckets()  # made now, and not beside the load

    def on_record(self, record: Mapping[str, Any]) -> None:
        """Any record of a ledger; of those that say nothing here, nothing is kept."""
        hear = {"window": self.on_window, "health": self.on_health, "sample": self.on_sample}
        hear |= {"phase": self._on_phase, "drained": self._on_drained}
        if record["kind"] in hear:
            hear[record["kind"]](record)

    def on_window(self, window: Mapping[str, Any]) -> None:
        """Add a worker's second to the totals."""
        endpoint = endpoint_of(window["cell"])
        series = Series(endpoint, window["cell"], window["phase"])
        self._ok[series] += window["ok"]
        self._failed[series] += sum(window["failures"].values())
        self._images[series] += window["images"]
        self._late[series] += window["late"]
        for kind, count in window["failures"].items():
            self._failures[endpoint, kind] += count
        if "latency" in window["histograms"]:
            before = self._latencies.get(series, Latency())
            self._latencies[series] = before.plus(window["histograms"]["latency"], self._clock())

    def on_health(self, health: Mapping[str, Any]) -> None:
        """Keep a worker's last word."""
        self._workers[health["worker"]] = (self._clock(), health)

    def on_sample(self, sample: Mapping[str, Any]) -> None:
        """Keep what server, GPUs and host said last."""
        self._sample = (self._clock(), sample)
        self._on_phase(sample)

    def _on_drained(self, drained: Mapping[str, Any]) -> None:
        series = Series(endpoint_of(drained["cell"]), drained["cell"], drained["phase"])
        self._dropped[series] += drained.get("dropped") or 0

    def _on_phase(self, record: Mapping[str, Any]) -> None:
        self._run = (self._clock(), (record["cell"], record["repeat"], record["phase"]))

    def snapshot(self) -> Snapshot:
        """Totals, which never fall, and of what changes only what is fresh."""
        now = self._clock()
        fresh = {name: said for name, (at, said) in self._workers.items() if now - at <= FRESH_S}
        sample_at, sample = self._sample
        run_at, run = self._run
        return Snapshot(
            ok=dict(self._ok),
            failed=dict(self._failed),
            images=dict(self._images),
            late=dict(self._late),
            dropped=dict(self._dropped),
            failures=dict(self._failures),
            latencies={of: one for of, one in self._latencies.items() if now - one.heard <= KEEP_S},
            workers={name: worker_of(said) for name, said in fresh.items()},
            sample=sample if now - sample_at <= FRESH_S else {},
            run=run if now - run_at <= FRESH_S else None,
        )


def worker_of(health: Mapping[str, Any]) -> Worker:
    """One worker as its health record says. Raises HistogramError."""
    (lag_ns,) = codec.percentiles_ns(codec.merged([health["lag"]]), [99.0])
    lag_s = None if lag_ns is None else lag_ns / 1e9
    return Worker(health["users"], health["in_flight"], health["cpu_pct"], lag_s)


def endpoint_of(cell: str) -> str:
    """The endpoint's name, with which a cell's begins."""
    return cell.partition("/")[0]


@cache
def lowest_us() -> NDArray[np.float64]:
    """The lowest value that each counter of a ledger's histogram stands for."""
    empty = codec.empty()
    return np.array([empty.get_value_from_index(index) for index in range(empty.counts_len)], np.float64)


@cache
def middles_s() -> NDArray[np.float64]:
    """The middle of the values that each counter stands for."""
    lowest = lowest_us()
    beyond = np.append(lowest[1:], lowest[-1])
    middles: NDArray[np.float64] = (lowest + np.maximum(beyond - 1, lowest)) / 2e6
    return middles


@cache
def ends_of_buckets() -> NDArray[np.int64]:
    """For each bound, the first counter beyond it: its lowest value decides, within 0.1 % of all."""
    return np.searchsorted(lowest_us(), np.array(BOUNDS_S) * 1e6 + 0.5, side="right").astype(np.int64)
