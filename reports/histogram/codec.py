"""Histograms as the ledger holds them: HdrHistogram V2 base64, 1 µs to 1 h, 3 significant digits.

Payloads are numbers that are a bucket's count, or minus the width of a gap, many at once: ZigZag LEB128, as
ZigZagEncoding.java of https://github.com/HdrHistogram/HdrHistogram has it.
"""

import zlib
from base64 import b64decode
from collections.abc import Iterable, Iterator, Sequence
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

from reports.histogram import buckets
from reports.histogram.buckets import NS_PER_US, Buckets, Ints

LOWEST_US = 1
HIGHEST_US = 3_600_000_000
SIGNIFICANT_DIGITS = 3
OUTER_TEXT = 12
"""Characters that hold the outer head."""
OUTER_HEAD, INNER_HEAD = 8, 40
"""Bytes before the compressed payload, and of those that the payload itself begins with."""
LARGEST = INNER_HEAD + 9 * 23_552
"""Bytes of a payload, every bucket filled: zlib makes a thousand times as much of what it is given."""
AT_ONCE, AT_ONCE_BYTES = 2_000, 2_000_000
"""Histograms whose numbers are worked on together, and bytes of their payloads: some 20 MB, 100 at most."""
LEAST_FILLED, FILLED_A_BYTE = 4_000_000, 2
MOST = 2**53
"""Of one value: more has nobody counted, and sums would run over."""
_UNREADABLE = (
    *(ValueError, TypeError, IndexError, AssertionError, RuntimeError, OverflowError, zlib.error),
    *(HdrCookieException, HdrHistogramSettingsException, HdrLengthException),
)
MORE, LOW_BITS, BITS = 0x80, 0x7F, 7
LONGEST = 8
"""Bytes of a number: a ninth would have eight bits, and only counts of 2**55 and more need it."""


class HistogramError(ValueError):
    """Text that is no histogram, or one with other bounds."""


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
        _inflated(b64decode(text)[OUTER_HEAD:])
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
    counts = np.frombuffer(payload.counts, np.uint64)[: seen["max_nonzero_index"] + 1]
    if counts.max(initial=0) >= MOST:
        raise HistogramError(f"a histogram counts {counts.max()} of one value")
    indices = np.flatnonzero(counts)
    return Buckets(indices, counts[indices].astype(np.int64))


class Room:
    """How many filled buckets the histograms of so many bytes of a ledger may have.

    Studies have some 0.04 a byte; who packs a hundred into one is after our memory.
    """

    def __init__(self, size: int) -> None:
        self._left = LEAST_FILLED + FILLED_A_BYTE * size

    def take(self, some: Iterable[Buckets]) -> None:
        """HistogramError where these are too many."""
        self._left -= sum(len(one.indices) for one in some)
        if self._left < 0:
            raise HistogramError("its histograms are fuller than those of any study of its length")


def decoded_all(texts: Iterable[str], room: Room | None = None) -> list[Buckets]:
    """The counts of many histograms, as `decoded` gives them one by one, in a quarter of the time.

    HistogramError where one is none, or where they do not fit into `room`.
    """
    found: list[Buckets] = []
    for some, payloads in _at_once(texts):
        made = _decoded_at_once(some, payloads) or [decoded(text) for text in some]
        if room is not None:
            room.take(made)
        found += made
    return found


def _at_once(texts: Iterable[str]) -> Iterator[tuple[list[str], list[bytes]]]:
    """Some after the other, with their payloads; an empty one of what is no histogram."""
    some, payloads, size = list[str](), list[bytes](), 0
    for text in texts:
        some.append(text)
        payloads.append(payload := _payload_of(text))
        size += len(payload)
        if len(some) == AT_ONCE or size > AT_ONCE_BYTES:
            yield some, payloads
            some, payloads, size = [], [], 0
    if some:
        yield some, payloads


def _payload_of(text: str) -> bytes:
    try:
        return _inflated(b64decode(text)[OUTER_HEAD:])
    except (ValueError, TypeError, zlib.error):
        return b""


def _decoded_at_once(texts: Sequence[str], payloads: Sequence[bytes]) -> list[Buckets] | None:
    """None where any of them is not just what `encoded_ns` writes; then `decoded` knows better."""
    outer, cookie, bounds = _own_head()
    own = all(
        payload[:4] == cookie
        and payload[8:INNER_HEAD] == bounds
        and b64decode(text[:OUTER_TEXT])[:4] == outer
        for text, payload in zip(texts, payloads, strict=True)
    )
    bodies = [payload[INNER_HEAD:] for payload in payloads]
    return buckets_of(bodies, _scratch().counts_len) if own else None


def _inflated(compressed: bytes) -> bytes:
    """A payload; zlib.error where it is none, or would be larger than any."""
    inflating = zlib.decompressobj()
    found = inflating.decompress(compressed, LARGEST)
    if not inflating.eof:
        raise zlib.error("it is cut off, or larger than any histogram")
    return found


@cache
def _own_head() -> tuple[bytes, bytes, bytes]:
    """How every histogram of ours begins, and its payload before and after the length that stands in it."""
    wrap = b64decode(empty().encode())
    payload = zlib.decompress(wrap[OUTER_HEAD:])
    return wrap[:4], payload[:4], payload[8:INNER_HEAD]


def merged(texts: Iterable[str]) -> Buckets:
    """The counts of all; HistogramError where one cannot be decoded."""
    return buckets.compact(decoded_all(texts))


def buckets_of(bodies: Sequence[bytes], room: int) -> list[Buckets] | None:
    """The counts of each payload; None where some number is cut, too long, or beyond `room` buckets."""
    stream = np.frombuffer(b"".join(bodies), np.uint8)
    ends = np.cumsum([len(body) for body in bodies])
    lasts = np.flatnonzero(stream < MORE)
    values = _numbers(stream, lasts)
    # how many numbers there are up to each payload's end
    bounds = np.searchsorted(lasts, ends)
    if values is None or (stream[ends[ends > 0] - 1] >= MORE).any():
        return None
    steps = np.where(values < 0, -values, 1)
    reached = np.concatenate([[0], np.cumsum(steps)])
    starts = np.concatenate([[0], bounds[:-1]])
    indices = reached[:-1] - np.repeat(reached[starts], bounds - starts)
    if (reached[bounds] - reached[starts]).max(initial=0) > room or values.min(initial=0) < -room:
        return None
    return _split(indices, values, bounds)


def _numbers(stream: npt.NDArray[np.uint8], lasts: Ints) -> Ints | None:
    """The signed numbers of a stream, each of which ends at one of `lasts`; None where one is too long."""
    firsts = np.concatenate([[0], lasts[:-1] + 1]) if len(lasts) else lasts
    lengths = lasts - firsts + 1
    used = int(lasts[-1]) + 1 if len(lasts) else 0
    if used != len(stream) or lengths.max(initial=0) > LONGEST:
        return None
    if not used:
        return lasts
    places = np.arange(used) - np.repeat(firsts, lengths)
    folded = np.add.reduceat((stream & LOW_BITS).astype(np.int64) << (BITS * places), firsts)
    signed: Ints = (folded >> 1) ^ -(folded & 1)
    return signed


def _split(indices: Ints, values: Ints, bounds: Ints) -> list[Buckets]:
    """Each payload's own part, without its gaps."""
    filled = values > 0
    ends = np.concatenate([[0], np.cumsum(filled)])[bounds].tolist()
    indices, counts = indices[filled], values[filled]
    return [
        Buckets(indices[first:end], counts[first:end])
        for first, end in zip([0, *ends[:-1]], ends, strict=True)
    ]
