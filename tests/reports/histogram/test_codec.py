import base64
import random
import zlib
from math import ceil
from statistics import fmean

import pytest
from hdrh.histogram import HdrHistogram

from reports.histogram import buckets, codec
from tests.reports.lines import encoded

PERCENTS = (50.0, 90.0, 95.0, 99.0, 99.9, 100.0)
HOUR_NS, MS = 3_600 * 10**9, 1_000_000


@pytest.fixture(scope="module")
def lognormal_ns() -> list[int]:
    generator = random.Random(7)
    return sorted(round(20e6 * generator.lognormvariate(0, 0.8)) for _ in range(20_000))


def recorded_one_by_one(values_ns: list[int]) -> HdrHistogram:
    made = HdrHistogram(codec.LOWEST_US, codec.HIGHEST_US, codec.SIGNIFICANT_DIGITS)
    for value_ns in values_ns:
        made.record_value(min(max(round(value_ns / codec.NS_PER_US), 0), codec.HIGHEST_US))
    return made


def read(made: HdrHistogram) -> buckets.Buckets:
    return codec.decoded(made.encode().decode("ascii"))


def test_percentiles_are_within_half_a_thousandth_of_the_exact_ones(lognormal_ns: list[int]) -> None:
    found = buckets.percentiles_ns(codec.merged([encoded(lognormal_ns)]), PERCENTS)
    exact = [lognormal_ns[ceil(len(lognormal_ns) * percent / 100) - 1] for percent in PERCENTS]
    assert found == pytest.approx(exact, rel=5e-4)


@pytest.mark.parametrize(
    ("total", "percent", "rank"),
    [(1, 50, 1), (2, 50, 1), (3, 50, 2), (100, 99, 99), (101, 99, 100), (1_000, 99.9, 999), (7, 0, 1)],
)
def test_the_nearest_rank_is_rounded_up(total: int, percent: float, rank: int) -> None:
    assert buckets.rank(total, percent) == rank


def test_a_percentile_is_the_middle_of_its_bucket() -> None:
    made = codec.decoded(encoded([1_000, 2_047_000, 2_049_000, 10_000_000]))
    # 2,048 and 2,049 µs share a bucket, and so do 10,000 to 10,007 µs
    assert buckets.percentiles_ns(made, [25, 50, 75, 100]) == [1_000, 2_047_000, 2_048_500, 10_003_500]


@pytest.mark.parametrize("count", [0, 1, 300, 20_000])
def test_many_at_once_are_the_same_text_as_one_by_one(lognormal_ns: list[int], count: int) -> None:
    values_ns = lognormal_ns[:count]
    assert codec.encoded_ns(values_ns) == (recorded_one_by_one(values_ns).encode().decode("ascii"), 0)


def test_the_text_is_what_the_library_itself_reads(lognormal_ns: list[int]) -> None:
    read, made = HdrHistogram.decode(encoded(lognormal_ns)), recorded_one_by_one(lognormal_ns)
    assert (read.get_total_count(), read.get_min_value(), read.get_max_value()) == (
        20_000,
        made.get_min_value(),
        made.get_max_value(),
    )
    assert list(read.counts)[: made.counts_len] == list(made.counts)


@pytest.mark.parametrize("bits", range(1, 32))
def test_every_doubling_has_its_buckets_where_the_library_has_them(bits: int) -> None:
    for value_us in ((1 << bits) - 1, 1 << bits, (1 << bits) + 1):
        made = recorded_one_by_one([value_us * 1_000])
        assert codec.encoded_ns([value_us * 1_000])[0] == made.encode().decode("ascii")
        assert buckets.percentiles_ns(read(made), [50.0]) == pytest.approx([value_us * 1_000], rel=5e-4)


def test_one_text_leaves_nothing_behind_in_the_next(lognormal_ns: list[int]) -> None:
    before = encoded([1_000])
    encoded(lognormal_ns)
    assert encoded([1_000]) == before


@pytest.mark.parametrize(
    ("value_ns", "shown_ns", "outside"),
    [
        (-5, 0, 1),
        (0, 0, 0),
        (499, 0, 0),
        (1_000, 1_000, 0),
        (HOUR_NS, HOUR_NS, 0),
        (HOUR_NS + 1, HOUR_NS, 1),
        (10**18, HOUR_NS, 1),
    ],
)
def test_no_duration_is_dropped_and_those_out_of_range_are_counted(
    value_ns: int, shown_ns: float, outside: int
) -> None:
    text, found = codec.encoded_ns([value_ns])
    assert found == outside
    for made in (codec.merged([text]), read(recorded_one_by_one([value_ns]))):
        assert made.total == 1
        assert buckets.percentiles_ns(made, [50.0]) == pytest.approx([shown_ns], rel=5e-4)


def test_merging_parts_is_the_same_as_recording_the_whole(lognormal_ns: list[int]) -> None:
    texts = [encoded(lognormal_ns[::2]), encoded(lognormal_ns[1::2])]
    parts, whole = codec.merged(texts), codec.merged([encoded(lognormal_ns)])
    assert parts.total == 20_000
    assert buckets.percentiles_ns(parts, PERCENTS) == buckets.percentiles_ns(whole, PERCENTS)
    one_by_one = buckets.EMPTY
    for text in texts:
        one_by_one = buckets.compact([one_by_one, codec.decoded(text)])
    assert one_by_one.total == 20_000
    assert buckets.percentiles_ns(one_by_one, PERCENTS) == buckets.percentiles_ns(whole, PERCENTS)


def test_decoded_parts_together_are_the_same_as_merged_ones(lognormal_ns: list[int]) -> None:
    texts = [encoded(lognormal_ns[::2]), encoded(lognormal_ns[1::2])]
    together, merged = buckets.together(map(codec.decoded, texts)), codec.merged(texts)
    assert together.total == 20_000
    assert buckets.percentiles_ns(together, PERCENTS) == buckets.percentiles_ns(merged, PERCENTS)
    assert buckets.mean_ns(together) == pytest.approx(fmean(lognormal_ns), rel=1e-4)


def test_an_empty_histogram_has_no_percentiles() -> None:
    assert buckets.percentiles_ns(codec.merged([]), [50.0, 99.0]) == [None, None]
    assert codec.decoded(encoded([])).total == 0
    assert buckets.percentiles_ns(buckets.together([]), [50.0]) == [None]


def test_many_are_decoded_as_the_library_does(lognormal_ns: list[int]) -> None:
    texts = [encoded(values) for values in ([], [0], [0] * 70_000, lognormal_ns, [], [HOUR_NS], [MS, 3 * MS])]
    for found, text in zip(codec.decoded_all(texts), texts, strict=True):
        counts = enumerate(HdrHistogram.decode(text).counts)
        assert list(zip(found.indices, found.counts, strict=True)) == [one for one in counts if one[1]]


@pytest.mark.parametrize("text", ["zzzz", "", encoded([1_000])[:-8], encoded([1_000])[:-2] + "=="])
def test_one_that_is_broken_among_many_is_refused(text: str) -> None:
    with pytest.raises(codec.HistogramError, match="is no HdrHistogram"):
        codec.decoded_all([encoded([1_000]), text, encoded([2_000])])


def test_parts_are_put_together_with_each_bucket_once(lognormal_ns: list[int]) -> None:
    parts = codec.decoded_all([encoded(lognormal_ns[start::3]) for start in range(3)])
    found, whole = buckets.compact(parts), codec.decoded(encoded(lognormal_ns))
    assert (found.indices.tolist(), found.counts.tolist()) == (whole.indices.tolist(), whole.counts.tolist())
    assert buckets.compact([]).total == 0


@pytest.mark.parametrize("text", ["", "zzzz", "HISTF", "HISTFAAAAAAA", "é"])
def test_what_is_no_histogram_is_named(text: str) -> None:
    for read in (lambda: codec.merged([text]), lambda: codec.decoded(text)):
        with pytest.raises(codec.HistogramError, match="is no HdrHistogram"):
            read()


def test_a_histogram_with_other_bounds_is_refused() -> None:
    with pytest.raises(codec.HistogramError, match=r"other bounds than a ledger's: \(1, 1000000, 2\)"):
        codec.decoded(HdrHistogram(1, 1_000_000, 2).encode().decode("ascii"))


def test_a_histogram_of_which_only_the_head_is_left_is_unreadable() -> None:
    whole = base64.b64decode(codec.encoded_ns([5_000_000] * 20)[0])
    with pytest.raises(codec.HistogramError, match="is no HdrHistogram"):
        codec.decoded(base64.b64encode(whole[:8]).decode())


def with_numbers(body: bytes) -> str:
    """A text as `encoded_ns` writes it, with such numbers."""
    whole = base64.b64decode(codec.encoded_ns([])[0])
    return base64.b64encode(whole[:8] + zlib.compress(zlib.decompress(whole[8:])[:40] + body)).decode()


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"\x02\x82", "its last number is cut off"),
        (b"\x80" * 8 + b"\x02", "counts more of one value than anybody can"),
        (b"\x80" * 7 + b"\x20", f"counts {2**53} of one value"),
        (b"\x02" * 23_553, "it has more buckets than a ledger's"),
        (b"\xff\xff\x7f", "it has more buckets than a ledger's"),
    ],
)
def test_numbers_that_no_histogram_has_are_refused(body: bytes, why: str) -> None:
    good = with_numbers(b"\x02" * 23_552)
    assert codec.decoded(good).total == 23_552
    with pytest.raises(codec.HistogramError, match=why):
        codec.decoded_all([good, with_numbers(body), good])
