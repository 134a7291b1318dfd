import random
from statistics import fmean

import pytest

from reports import histogram
from tests.reports.builder import encoded

PERCENTS = (50.0, 90.0, 95.0, 99.0, 99.9, 100.0)


@pytest.fixture(scope="module")
def lognormal_ns() -> list[int]:
    generator = random.Random(7)
    return sorted(round(20e6 * generator.lognormvariate(0, 0.8)) for _ in range(20_000))


def test_percentiles_are_within_a_thousandth_of_the_exact_ones(lognormal_ns: list[int]) -> None:
    found = histogram.percentiles_ns(histogram.merged([encoded(lognormal_ns)]), PERCENTS)
    exact = [lognormal_ns[round(len(lognormal_ns) * percent / 100) - 1] for percent in PERCENTS]
    assert found == pytest.approx(exact, rel=1e-3)


def test_merging_parts_is_the_same_as_recording_the_whole(lognormal_ns: list[int]) -> None:
    parts = histogram.merged([encoded(lognormal_ns[::2]), encoded(lognormal_ns[1::2])])
    whole = histogram.merged([encoded(lognormal_ns)])
    assert parts.get_total_count() == 20_000
    assert histogram.percentiles_ns(parts, PERCENTS) == histogram.percentiles_ns(whole, PERCENTS)
    assert histogram.mean_ns(parts) == pytest.approx(fmean(lognormal_ns), rel=1e-3)


@pytest.mark.parametrize(
    ("value_ns", "shown_ns"),
    [(-5, 0), (0, 0), (499, 0), (1_000, 1_000), (10**13, 3.6e12), (10**18, 3.6e12)],
)
def test_no_duration_is_dropped(value_ns: int, shown_ns: float) -> None:
    made = histogram.empty()
    histogram.record_ns(made, value_ns)
    assert made.get_total_count() == 1
    assert histogram.percentiles_ns(made, [50.0]) == pytest.approx([shown_ns], rel=1e-3)


def test_an_empty_histogram_has_no_percentiles() -> None:
    assert histogram.percentiles_ns(histogram.merged([]), [50.0, 99.0]) == [None, None]
    assert histogram.mean_ns(histogram.empty()) is None


@pytest.mark.parametrize("text", ["", "zzzz", "HISTF", "HISTFAAAAAAA", "é"])
def test_what_is_no_histogram_is_named(text: str) -> None:
    with pytest.raises(histogram.HistogramError, match="is no HdrHistogram"):
        histogram.merged([text])
