"""Histograms as the ledger holds them: HdrHistogram V2 base64, 1 µs to 1 h, 3 significant digits."""

import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache

import numpy as np
import numpy.typing as npt
from hdrh.codec import (
    HdrCookieException,
    HdrHistogramEncoder,
    HdrHistogramSettingsException,
    HdrLengthException,
)
from hdrh.histogram import HdrHistogram

from reports import buckets
from reports.buckets import NS_PER_US, Buckets

LOWEST_US = 1
HIGHEST_US = 3_600_000_000
SIGNIFICANT_DIGITS = 3

_UNREADABLE = (
    *(ValueError, TypeError, IndexError, AssertionError, zlib.error),
    *(HdrCookieException, HdrHistogramSettingsException, HdrLengthException),
)


class HistogramError(ValueError):
    """Text that is no histogram, or one with other bounds."""


class Histograms(Mapping[str, Buckets]):
    """Histograms by name, decoded when first asked for, and once; HistogramError where one cannot be."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts
        self._decoded: dict[str, Buckets] = {}

    def __getitem__(self, name: str) -> Buckets:
        if name not in self._decoded:
            self._decoded[name] = decoded(self._texts[name])
        return self._decoded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)


def empty() -> HdrHistogram:
    """A new histogram with the ledger's bounds."""
    return HdrHistogram(LOWEST_US, HIGHEST_US, SIGNIFICANT_DIGITS)


def encoded_ns(values_ns: Sequence[int]) -> tuple[str, int]:
    """Many durations as the ledger holds them, and how many of them were out of range and so clamped."""
    exact = np.asarray(values_ns, np.int64)
    outside = int(np.count_nonzero((exact < 0) | (exact > HIGHEST_US * NS_PER_US)))
    values_us = np.clip(np.rint(exact / NS_PER_US), 0, HIGHEST_US).astype(np.int64)
    counts = np.bincount(buckets.indices_of(values_us))
    histogram = _scratch()
    used = np.frombuffer(histogram.counts, np.uint64)[: len(counts)]
    histogram.total_count = len(values_us)
    histogram.min_value = int(values_us.min(initial=HIGHEST_US))
    histogram.max_value = int(values_us.max(initial=0))
    used[:] = counts
    try:
        return histogram.encode().decode("ascii"), outside
    finally:
        used[:] = 0


@cache
def _scratch() -> HdrHistogram:
    """The one that `encoded_ns` fills and clears: to make 23,552 counters takes longer than all the rest."""
    return empty()


def decoded(text: str) -> Buckets:
    """The counts of one histogram; HistogramError where it cannot be decoded."""
    try:
        payload = HdrHistogramEncoder.decode(text)
        head = payload.payload
        bounds = (head.lowest_trackable_value, head.highest_trackable_value, head.significant_figures)
        if bounds != (LOWEST_US, HIGHEST_US, SIGNIFICANT_DIGITS):
            raise HistogramError(f"{text[:24]!r}… has other bounds than a ledger's: {bounds}")
        seen = payload.init_counts(_scratch().counts_len)
    except HistogramError:
        raise
    except _UNREADABLE as error:
        raise HistogramError(f"{str(text)[:24]!r}… is no HdrHistogram ({error})") from error
    return _nonzero(np.frombuffer(payload.counts, np.uint64)[: seen["max_nonzero_index"] + 1])


def merged(encoded: Iterable[str]) -> HdrHistogram:
    """One histogram holding the counts of all; HistogramError where one cannot be decoded."""
    total = empty()
    for text in encoded:
        try:
            total.decode_and_add(text)
        except _UNREADABLE as error:
            raise HistogramError(f"{str(text)[:24]!r}… is no HdrHistogram ({error})") from error
    return total


def add(total: HdrHistogram, text: str) -> None:
    """Adds the counts of one to a histogram of the ledger's bounds; HistogramError as `decoded`."""
    found = decoded(text)
    np.frombuffer(total.counts, np.uint64)[found.indices] += found.counts.astype(np.uint64)
    total.total_count += found.total


def percentiles_ns(histogram: HdrHistogram, percents: Iterable[float]) -> list[float | None]:
    """The values at some percentiles; None for each where the histogram is empty."""
    return buckets.percentiles_ns(_nonzero(np.frombuffer(histogram.counts, np.uint64)), list(percents))


def _nonzero(counts: npt.NDArray[np.uint64]) -> Buckets:
    indices = np.flatnonzero(counts)
    return Buckets(indices, counts[indices].astype(np.int64))
