"""HdrHistogram's V2 payloads, many at once: numbers that are a bucket's count, or minus the width of a gap.

They are ZigZag LEB128, as ZigZagEncoding.java of https://github.com/HdrHistogram/HdrHistogram has it.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from reports.histogram.buckets import Buckets, Ints

MORE, LOW_BITS, BITS = 0x80, 0x7F, 7
LONGEST = 8
"""Bytes of a number: a ninth would have eight bits, and only counts of 2**55 and more need it."""


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
