"""Histograms as the ledger holds them: HdrHistogram V2 base64, 1 µs to 1 h, 3 significant digits.

Payloads are numbers that are a bucket's count, or minus the width of a gap, many at once: ZigZag LEB128, as
ZigZagEncoding.java of https://github.com/HdrHistogram/HdrHistogram has it.
"""

import zlib
from base64 import b64decode
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from struct import Struct
from struct import error as StructError

import numpy as np
import numpy.typing as npt
from hdrh.histogram import HdrHistogram

from reports.histogram import buckets
from reports.histogram.buckets import NS_PER_US, Buckets, Ints

LOWEST_US = 1
HIGHEST_US = 3_600_000_000
SIGNIFICANT_DIGITS = 3
BUCKETS = 23_552
OUTER, INNER = Struct(">i4x"), Struct(">i8xiqq8x")
"""Heads of the text and of the payload compressed in it: a cookie, then for the payload the bounds, too."""
COOKIES = (0x1C849314, 0x1C849313)
LARGEST = INNER.size + 9 * BUCKETS
"""Bytes of a payload, every bucket filled: zlib makes a thousand times as much of what it is given."""
AT_ONCE, AT_ONCE_BYTES = 2_000, 2_000_000
"""Histograms whose numbers are worked on together, and bytes of their payloads: some 20 MB, 100 at most."""
LEAST_FILLED, FILLED_A_BYTE = 4_000_000, 2
MOST = 2**53
"""Of one value: more has nobody counted, and sums would run over."""
MORE, LOW_BITS, BITS = 0x80, 0x7F, 7
LONGEST = 8
"""Bytes of a number: a ninth would have eight bits, and only counts of 2**55 and more need it."""


class HistogramError(ValueError):
    """Text that is no histogram, or one with other bounds."""


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
    """The one that `encoded_ns` fills and clears: to make its BUCKETS takes longer than all the rest."""
    return HdrHistogram(LOWEST_US, HIGHEST_US, SIGNIFICANT_DIGITS)


def decoded(text: str) -> Buckets:
    """The counts of one histogram; HistogramError where it cannot be decoded."""
    (found,) = decoded_all([text])
    return found


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
    """The counts of many histograms; HistogramError where one is none, or they do not fit into `room`."""
    found: list[Buckets] = []
    for bodies in _at_once(texts):
        made = _buckets_of(bodies)
        if room is not None:
            room.take(made)
        found += made
    return found


def _at_once(texts: Iterable[str]) -> Iterator[list[bytes]]:
    """The numbers in some of the histograms, then in the next."""
    some, size = list[bytes](), 0
    for text in texts:
        some.append(body := _body(text))
        size += len(body)
        if len(some) == AT_ONCE or size > AT_ONCE_BYTES:
            yield some
            some, size = [], 0
    if some:
        yield some


def _body(text: str) -> bytes:
    """The numbers in one histogram, without its heads."""
    try:
        whole = b64decode(text)
        payload = _inflated(whole[OUTER.size :])
        inner, digits, lowest_us, highest_us = INNER.unpack_from(payload)
        if (*OUTER.unpack_from(whole), inner) != COOKIES:
            raise ValueError("it begins otherwise")
    except (ValueError, TypeError, zlib.error, StructError) as error:
        raise HistogramError(f"{str(text)[:24]!r}… is no HdrHistogram ({error})") from error
    bounds = (lowest_us, highest_us, digits)
    if bounds != (LOWEST_US, HIGHEST_US, SIGNIFICANT_DIGITS):
        raise HistogramError(f"{text[:24]!r}… has other bounds than a ledger's: {bounds}")
    return payload[INNER.size :]


def _inflated(compressed: bytes) -> bytes:
    """A payload; zlib.error where it is none, or would be larger than any."""
    inflating = zlib.decompressobj()
    found = inflating.decompress(compressed, LARGEST)
    if not inflating.eof:
        raise zlib.error("it is cut off, or larger than any histogram")
    return found


def merged(texts: Iterable[str]) -> Buckets:
    """The counts of all; HistogramError where one cannot be decoded."""
    return buckets.compact(decoded_all(texts))


def _buckets_of(bodies: Sequence[bytes]) -> list[Buckets]:
    """The counts of each body; HistogramError where some number is cut, too large, or beyond the buckets."""
    stream = np.frombuffer(b"".join(bodies), np.uint8)
    ends = np.cumsum([len(body) for body in bodies])
    if (stream[ends[ends > 0] - 1] >= MORE).any():
        raise HistogramError("a histogram is no HdrHistogram (its last number is cut off)")
    lasts = np.flatnonzero(stream < MORE)
    values = _numbers(stream, lasts)
    # how many numbers there are up to each body's end
    bounds = np.searchsorted(lasts, ends)
    steps = np.where(values < 0, -values, 1)
    reached = np.concatenate([[0], np.cumsum(steps)])
    starts = np.concatenate([[0], bounds[:-1]])
    indices = reached[:-1] - np.repeat(reached[starts], bounds - starts)
    if (reached[bounds] - reached[starts]).max(initial=0) > BUCKETS or values.min(initial=0) < -BUCKETS:
        raise HistogramError("a histogram is no HdrHistogram (it has more buckets than a ledger's)")
    return _split(indices, values, bounds)


def _numbers(stream: npt.NDArray[np.uint8], lasts: Ints) -> Ints:
    """The signed numbers of a stream, each of which ends at one of `lasts`; HistogramError at a large one."""
    if not len(lasts):
        return lasts
    firsts = np.concatenate([[0], lasts[:-1] + 1])
    lengths = lasts - firsts + 1
    if lengths.max() > LONGEST:
        raise HistogramError("a histogram counts more of one value than anybody can")
    places = np.arange(len(stream)) - np.repeat(firsts, lengths)
    folded = np.add.reduceat((stream & LOW_BITS).astype(np.int64) << (BITS * places), firsts)
    signed: Ints = (folded >> 1) ^ -(folded & 1)
    if signed.max() >= MOST:
        raise HistogramError(f"a histogram counts {signed.max()} of one value")
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
