"""Queueing by simulation: requests of users who wait, or that arrive by chance, at a server with a queue."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from heapq import heapify, heappop, heappush

import numpy as np

from benchmarks.simulating.truths import Floats, Random, Run

NS_PER_S = 1e9
MANY, LEFT_OUT, SEED = 500_000, 5_000, 1
"""Requests of the run from which true percentiles are read, and of its start that are not counted."""


@dataclass(frozen=True)
class Station:
    """A server of so many `instances`. A free one takes what waits, up to `most_batch`, in order of arrival.

    That takes `base_s`, and `each_s` for each request, times a lognormal factor around 1 whose logarithm has
    the standard deviation `spread`. `slow` are factors of the seconds, by when an execution begins; beyond
    them the last one holds.
    """

    base_s: float
    each_s: float = 0.0
    most_batch: int = 1
    instances: int = 1
    spread: float = 0.0
    slow: tuple[float, ...] = (1.0,)

    def time_s(self, requests: int, began_s: float, normal: float) -> float:
        """What one execution takes."""
        factor = self.slow[min(int(began_s), len(self.slow) - 1)]
        return float((self.base_s + self.each_s * requests) * factor * np.exp(self.spread * normal))

    @property
    def capacity_per_s(self) -> float:
        """Requests a second of full batches, at the factors 1."""
        mean_s = self.base_s + self.each_s * self.most_batch
        return self.instances * self.most_batch / (mean_s * float(np.exp(self.spread**2 / 2)))


@dataclass(frozen=True)
class Requests:
    """When each started and ended, in seconds, in order of their starts."""

    starts_s: Floats
    ends_s: Floats

    @property
    def latencies_s(self) -> Floats:
        """Of each."""
        return self.ends_s - self.starts_s

    def started(self, first_s: float, end_s: float) -> Requests:
        """Those that started from one time on and before another."""
        within = (self.starts_s >= first_s) & (self.starts_s < end_s)
        return Requests(self.starts_s[within], self.ends_s[within])

    def run(self) -> Run:
        """By the seconds in which they ended, from that of the first end on."""
        order = np.argsort(self.ends_s, kind="stable")
        seconds = np.floor(self.ends_s[order]).astype(np.int64)
        edges = np.searchsorted(seconds, np.arange(seconds[0] + 1, seconds[-1] + 1))
        return Run(np.split(self.latencies_s[order] * NS_PER_S, edges))


def closed(users: int, station: Station, seconds: float, random: Random, think_s: float = 0.0) -> Requests:
    """What users send who begin at 0, wait for each reply, and think for a constant time.

    They start nothing after `seconds`; what they started by then comes back.
    """
    return _served(np.zeros(users), station, random, lambda end_s: end_s + think_s, seconds)


def arriving(per_s: float, station: Station, seconds: float, random: Random) -> Requests:
    """Arrivals by chance (Poisson) until `seconds`, all of which come back."""
    count = random.poisson(per_s * seconds)
    return _served(np.sort(random.uniform(0, seconds, count)), station, random, None, seconds)


def _served(
    first_s: Iterable[float],
    station: Station,
    random: Random,
    next_s: Callable[[float], float] | None,
    seconds: float,
) -> Requests:
    waiting, free = [float(at) for at in first_s], [0.0] * station.instances
    heapify(waiting)
    starts, ends, normals = list[float](), list[float](), _normals(random)
    while waiting:
        began_s = max(heappop(free), waiting[0])
        batch = [heappop(waiting)]
        while waiting and len(batch) < station.most_batch and waiting[0] <= began_s:
            batch.append(heappop(waiting))
        end_s = began_s + station.time_s(len(batch), began_s, next(normals))
        heappush(free, end_s)
        starts += batch
        ends += [end_s] * len(batch)
        if next_s is not None and next_s(end_s) < seconds:
            for _ in batch:
                heappush(waiting, next_s(end_s))
    return _in_order(starts, ends)


def _normals(random: Random, at_once: int = 1_000) -> Iterator[float]:
    while True:
        yield from random.standard_normal(at_once).tolist()


def _in_order(starts: list[float], ends: list[float]) -> Requests:
    order = np.argsort(starts, kind="stable")
    return Requests(np.array(starts)[order], np.array(ends)[order])


@lru_cache(maxsize=200)
def true_percentiles_s(station: Station, per_s: float, percents: tuple[float, ...]) -> tuple[float, ...]:
    """Of arrivals at a rate that the station keeps up with, from a long run."""
    found = arriving(per_s, station, MANY / per_s, np.random.default_rng(SEED)).latencies_s[LEFT_OUT:]
    return tuple(np.percentile(found, percents).tolist())
