"""Latencies in Prometheus' two kinds of buckets, made of HDR counters: classic bounds, and powers of two."""

from dataclasses import dataclass, field
from itertools import accumulate

import numpy as np
from prometheus_client.samples import BucketSpan, NativeHistogram

from reports.histogram.buckets import Buckets, Ints, indices_of, middles_ns

BOUNDS_S = (
    *(0.0005, 0.001, 0.0015, 0.002, 0.003, 0.004, 0.005, 0.0075),
    *(0.01, 0.015, 0.02, 0.03, 0.04, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75),
    *(1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 30.0, 60.0),
)
"""Upper bounds of the classic buckets; the last bucket has none."""
NAMES = (*map(str, BOUNDS_S), "+Inf")
BEYOND = indices_of(np.rint(np.array(BOUNDS_S) * 1e6).astype(np.int64)) + 1
"""For each bound, the first counter beyond it, by its lowest value: exact within 0.1 %."""
SCHEMA = 4
"""A native bucket's upper bound is 2**(2**-SCHEMA), or 1.044, of the one's below it."""
LOWEST, HIGHEST = -20 << SCHEMA, 12 << SCHEMA
"""The native buckets that can be filled: bucket i ends at 2**(i / 2**SCHEMA) s; from 1 µs to 68 minutes."""
ZERO_S = 2.0**-20
"""What is no longer than this, or 0.95 µs, lies in the zero bucket."""
NS_PER_S = 1e9


def _classic() -> Ints:
    return np.zeros(len(NAMES), np.int64)


def _native() -> Ints:
    return np.zeros(HIGHEST - LOWEST + 1, np.int64)


@dataclass
class LatencyBuckets:
    """How many lie in each of NAMES, and in each native bucket, of which the first is the zero bucket."""

    classic: Ints = field(default_factory=_classic)
    native: Ints = field(default_factory=_native)
    sum_ns: int = 0

    @classmethod
    def of(cls, counted: Buckets) -> "LatencyBuckets":
        """Of HDR counters; a counter is put where its middle lies, 0.05 % from any value in it."""
        made, middles = cls(), middles_ns(counted.indices)
        np.add.at(made.classic, np.searchsorted(BEYOND, counted.indices, side="right"), counted.counts)
        powers = np.log2(np.maximum(middles / NS_PER_S, ZERO_S)) * (1 << SCHEMA)
        places = np.clip(np.ceil(powers).astype(np.int64), LOWEST, HIGHEST) - LOWEST
        np.add.at(made.native, places, counted.counts)
        made.sum_ns = round(float(middles @ counted.counts))
        return made

    def add(self, other: "LatencyBuckets", times: int = 1) -> None:
        """Takes in others; takes them out again with -1."""
        self.classic += times * other.classic
        self.native += times * other.native
        self.sum_ns += times * other.sum_ns

    def up_to(self) -> list[tuple[str, float]]:
        """(upper bound, how many lie below it), the last for all."""
        return list(zip(NAMES, accumulate(self.classic.tolist()), strict=True))

    def exponential(self) -> NativeHistogram:
        """As a native histogram: runs of filled buckets, each count as its difference to the one before."""
        filled = np.flatnonzero(self.native[1:]) + 1
        runs = np.split(filled, np.flatnonzero(np.diff(filled) > 1) + 1) if len(filled) else []
        counts = self.native[filled].tolist()
        return NativeHistogram(
            count_value=int(self.native.sum()),
            sum_value=self.sum_ns / NS_PER_S,
            schema=SCHEMA,
            zero_threshold=ZERO_S,
            zero_count=int(self.native[0]),
            pos_spans=_spans(runs),
            pos_deltas=[after - before for before, after in zip([0, *counts], counts, strict=False)],
        )


def _spans(runs: list[Ints]) -> list[BucketSpan]:
    """Of each run how far it begins behind the last one's end, the first behind bucket 0, and its length."""
    ends = [0, *(int(run[-1]) + 1 + LOWEST for run in runs)]
    return [BucketSpan(int(run[0]) + LOWEST - end, len(run)) for end, run in zip(ends, runs, strict=False)]
