"""What a worker makes of orders, and how Locust's own figures are tuned."""

import pytest

from swarm.tuning import three_digits
from swarm.worker import start_ns

S, MS = 1_000_000_000, 1_000_000


@pytest.mark.parametrize(
    ("ahead_ns", "start"),
    [
        (50 * MS, 7 * S + 50 * MS),
        (0, 7 * S),
        (-200 * MS, 7 * S - 200 * MS),  # the order came late, and so are its first arrivals
        (5 * S, 7 * S),  # the clocks differ: there is no common moment
        (-5 * S, 7 * S),
    ],
)
def test_when_a_phase_begins_here(ahead_ns: int, start: int) -> None:
    assert start_ns(1_000 * S + ahead_ns, 1_000 * S, 7 * S) == start


@pytest.mark.parametrize(
    ("exact", "kept"), [(0.41234, 0.412), (57.44, 57.4), (105.2, 105), (1974.4, 1970), (10_512, 10_500)]
)
def test_locust_keeps_three_digits(exact: float, kept: float) -> None:
    assert three_digits(exact) == kept
