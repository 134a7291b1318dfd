"""Histograms: written and read as the library does, merged without a loss, and percentiles of them."""

import base64
import zlib
from collections.abc import Sequence
from itertools import chain
from statistics import fmean
from typing import Any

import numpy as np
import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import example, given
from hypothesis import strategies as st

from reports.histogram import buckets, codec
from reports.histogram.buckets import Buckets
from tests.bad_input import tried
from tests.reports.lines import encoded

PERCENTS = (50.0, 90.0, 95.0, 99.0, 99.9, 100.0)
HOUR_NS = 3_600 * 10**9
EDGES = st.builds(
    lambda bits, off: ((1 << bits) + off) * 1_000, st.integers(1, 31), st.sampled_from((-1, 0, 1))
)
DURATIONS = st.lists(st.integers(0, 9_000) | EDGES | st.integers(-1_000, HOUR_NS + 10**9), max_size=12)
WHOLE = base64.b64decode(codec.encoded_ns([])[0])
FULL = b"\x02" * codec.BUCKETS
"""The numbers of a histogram with one value in each bucket."""


def clamped(values_ns: Sequence[int]) -> list[int]:
    return [min(max(value_ns, 0), HOUR_NS) for value_ns in values_ns]


def held(found: Buckets) -> list[tuple[int, int]]:
    return list(zip(found.indices.tolist(), found.counts.tolist(), strict=True))


@tried(25)
@given(DURATIONS)
@example([-1, 0, 499, 500, 1_500, 2_500, HOUR_NS, HOUR_NS + 1, 10**18])
@example([0] * 300)
def test_many_at_once_are_written_as_the_library_writes_them_one_by_one(values_ns: list[int]) -> None:
    """Those out of range are clamped and counted, and nothing of one text is left behind in the next."""
    made = HdrHistogram(codec.LOWEST_US, codec.HIGHEST_US, codec.SIGNIFICANT_DIGITS)
    for value_ns in clamped(values_ns):
        made.record_value(round(value_ns / 1_000))
    text, outside = codec.encoded_ns(values_ns)
    assert text == made.encode().decode("ascii")
    assert outside == sum(not 0 <= value_ns <= HOUR_NS for value_ns in values_ns)
    counts, found = np.frombuffer(made.counts, np.uint64), codec.decoded(text)
    assert held(found) == [(at, counts[at]) for at in np.flatnonzero(counts)]


@tried(40)
@given(st.lists(DURATIONS, max_size=6))
@example([[1_000, 2_000], [2_000, 3_000]])
@example([[], []])
def test_parts_are_the_whole_in_whatever_order_and_groups_they_are_merged(parts: list[list[int]]) -> None:
    values_ns = sorted(clamped([*chain(*parts)]))
    whole, texts = codec.decoded(encoded(values_ns)), [encoded(part) for part in parts]
    each = codec.decoded_all(texts)
    groups = buckets.compact([buckets.compact(each[2:]), buckets.compact(each[:2])])
    for merged in (codec.merged(texts), codec.merged(reversed(texts)), groups):
        assert held(merged) == held(whole)
    together = buckets.together(each)
    assert together.total == len(values_ns)
    for found in (together, whole):
        told = [*buckets.percentiles_ns(found, PERCENTS), buckets.mean_ns(found)]
        if not values_ns:
            assert told == [None] * 7
        else:
            exact = [values_ns[buckets.rank(len(values_ns), percent) - 1] for percent in PERCENTS]
            assert told == pytest.approx([*exact, fmean(values_ns)], rel=5e-4, abs=500)


@pytest.mark.parametrize("percent", [50.0, 90.0, 95.0, 99.0, 99.9])
def test_the_rank_of_a_percentile_is_the_least_that_has_so_many_at_or_below_it(percent: float) -> None:
    totals = range(1, 6_001)
    assert [buckets.rank(total, percent) for total in totals] == [
        -(-total * round(10 * percent) // 1_000) for total in totals
    ]
    assert (buckets.rank(7, 0), buckets.rank(7, 100)) == (1, 7)


def test_a_percentile_is_the_middle_of_its_bucket() -> None:
    made = codec.decoded(encoded([1_000, 2_047_000, 2_049_000, 10_000_000]))
    # 2,048 and 2,049 µs share a bucket, and so do 10,000 to 10,007 µs
    assert buckets.percentiles_ns(made, [25, 50, 75, 100]) == [1_000, 2_047_000, 2_048_500, 10_003_500]


def test_very_many_histograms_are_all_read_in_their_order() -> None:
    texts = [encoded([at * 1_000]) for at in range(7)]
    assert [held(found) for found in codec.decoded_all(texts * 300)] == [[(at, 1)] for at in range(7)] * 300
    assert held(codec.merged(texts * 300)) == [(at, 300) for at in range(7)]
    totals = [found.total for found in codec.decoded_all([with_numbers(FULL), *texts[:3]] * 90)]
    assert totals == [codec.BUCKETS, 1, 1, 1] * 90


def test_a_ledger_has_room_for_4_million_filled_buckets_and_for_two_a_byte() -> None:
    def filled(count: int) -> Buckets:
        return Buckets(*[np.broadcast_to(np.int64(1), count)] * 2)

    room = codec.Room(10)
    room.take([filled(3_000_000), filled(1_000_000)])
    room.take([filled(20)])
    for take in (lambda: room.take([filled(1)]), lambda: codec.decoded_all([encoded([1_000])], room)):
        with pytest.raises(codec.HistogramError, match="are fuller than those of any study of its length"):
            take()


@pytest.mark.parametrize(
    "text",
    [
        *("", "zzzz", "HISTF", "HISTFAAAAAAA", "é", None, 7),
        *(encoded([1_000])[:-8], encoded([1_000])[:-2] + "=="),
        base64.b64encode(WHOLE[:8]).decode(),
        base64.b64encode(b"\0" + WHOLE[1:]).decode(),
        base64.b64encode(WHOLE[:8] + zlib.compress(b"\0" + zlib.decompress(WHOLE[8:])[1:])).decode(),
        base64.b64encode(WHOLE[:8] + zlib.compress(bytes(10_000_000))).decode(),
    ],
)
def test_one_that_is_broken_among_many_is_refused_and_named(text: Any) -> None:
    for read in (codec.decoded_all, codec.merged):
        with pytest.raises(codec.HistogramError, match=rf"^'{str(text)[:24]}.*'… is no HdrHistogram \("):
            read([encoded([1_000]), text, encoded([2_000])])


@pytest.mark.parametrize("bounds", [(1, 3_600_000_000, 2), (1, 1_000_000, 3), (2, 3_600_000_000, 3)])
def test_a_histogram_with_other_bounds_is_refused(bounds: tuple[int, int, int]) -> None:
    with pytest.raises(codec.HistogramError) as refused:
        codec.decoded(HdrHistogram(*bounds).encode().decode("ascii"))
    assert str(refused.value).endswith(f"has other bounds than a ledger's: {bounds}")


def with_numbers(body: bytes) -> str:
    """A text as `encoded_ns` writes it, with such numbers."""
    return base64.b64encode(WHOLE[:8] + zlib.compress(zlib.decompress(WHOLE[8:])[:40] + body)).decode()


@pytest.mark.parametrize(
    ("body", "counts"),
    [
        (FULL, [1] * codec.BUCKETS),
        (b"\xff\xef\x02", []),  # a gap as wide as all buckets
        (b"\xfe" + b"\xff" * 6 + b"\x1f", [2**53 - 1]),
    ],
)
def test_the_largest_numbers_are_read(body: bytes, counts: list[int]) -> None:
    assert codec.decoded(with_numbers(body)).counts.tolist() == counts


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"\x02\x82", "is no HdrHistogram (its last number is cut off)"),
        (b"\x80" * 8 + b"\x02", "counts more of one value than anybody can"),
        (b"\x80" * 7 + b"\x20", f"counts {2**53} of one value"),
        (FULL + b"\x02", "is no HdrHistogram (it has more buckets than a ledger's)"),
        (b"\xff\xef\x02\x02", "is no HdrHistogram (it has more buckets than a ledger's)"),
        (b"\xff\xff\x7f", "is no HdrHistogram (it has more buckets than a ledger's)"),
    ],
)
def test_numbers_that_no_histogram_has_are_refused(body: bytes, why: str) -> None:
    good = with_numbers(FULL)
    with pytest.raises(codec.HistogramError) as refused:
        codec.decoded_all([good, with_numbers(body), good])
    assert str(refused.value) == f"a histogram {why}"
