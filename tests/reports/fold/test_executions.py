"""What counters by batch size tell of a server that had to do something for the first time."""

import pytest

from reports.fold.server import (
    Cold,
    Executed,
    batches_of,
    cold,
    excess_ns,
    growth,
    predicted_ns,
    went_backwards,
)

MS = 1_000_000


def sizes(**counted: tuple[int, float]) -> dict[int, Executed]:
    """`b8=(3, 30)`: batch 8 was executed 3 times, in 30 ms together."""
    return {int(name[1:]): Executed(count, round(time_ms * MS)) for name, (count, time_ms) in counted.items()}


def test_counters_are_read_by_size() -> None:
    assert batches_of({"requests": 3}) is None
    assert batches_of({"batches": {"8": [3, 30 * MS], "1": [0, 0]}}) == sizes(b8=(3, 30), b1=(0, 0))


def test_growth_is_per_size_and_leaves_out_what_was_not_executed() -> None:
    before, after = sizes(b1=(5, 50), b2=(1, 9)), sizes(b1=(8, 80), b2=(1, 9), b4=(2, 40))
    assert growth(before, after) == sizes(b1=(3, 30), b4=(2, 40))
    assert not went_backwards(before, after)
    assert went_backwards(after, before)
    assert went_backwards(before, sizes(b1=(4, 40), b2=(1, 9)))


def test_a_prediction_scales_up_from_the_dearest_warm_size_and_never_down() -> None:
    warm = sizes(b1=(10, 50), b4=(10, 120))
    # 5 ms an execution of one, 12 ms of four
    assert predicted_ns(8, warm) == 40 * MS
    assert predicted_ns(2, warm) == 12 * MS


@pytest.mark.parametrize(
    ("count", "time_ms", "excess_ms"),
    [
        (1, 119, 0),
        (1, 121, 81),
        # the first alone would be below 3 times
        (10, 479, 0),
        # 3 and more, but a mean of 1.4 times may be a prediction that is too low
        (10, 560, 0),
        (10, 700, 300),
    ],
)
def test_what_is_dear(count: int, time_ms: float, excess_ms: float) -> None:
    assert excess_ns(Executed(count, round(time_ms * MS)), 40 * MS) == excess_ms * MS


def test_a_hiccup_is_not_dear_however_short_an_execution_is() -> None:
    assert excess_ns(Executed(1, 9 * MS), 0.1 * MS) == 0
    assert excess_ns(Executed(1, 11 * MS), 0.1 * MS) == pytest.approx(10.9 * MS)


def test_a_size_that_was_cold_is_named_with_its_share() -> None:
    before = sizes(b1=(50, 500), b4=(0, 0))
    grown = sizes(b1=(100, 1_000), b4=(1, 1_040))
    assert cold(before, grown) == Cold(pytest.approx(1_000 / 2_040), (4,))


def test_a_new_size_that_was_not_dear_is_not_cold() -> None:
    assert cold(sizes(b1=(50, 500)), sizes(b1=(100, 1_000), b4=(1, 40))) == Cold(0.0, ())
    assert cold(sizes(b1=(50, 500)), sizes(b1=(100, 1_000))) == Cold(0.0, ())


def test_where_no_warm_size_was_executed_what_others_had_cost_is_the_measure() -> None:
    assert cold(sizes(b1=(50, 500)), sizes(b4=(10, 1_400))) == Cold(pytest.approx(1_000 / 1_400), (4,))


def test_without_any_warm_size_the_share_is_not_known() -> None:
    assert cold({}, sizes(b4=(10, 1_400), b1=(1, 5))) == Cold(None, (1, 4))
    assert cold({}, {}) == Cold(None, ())
