"""The time of day: by the machine's clock as it was when the process began."""

import time
from datetime import UTC, datetime

import pytest

from swarm import clock


@pytest.mark.parametrize("by_s", [3_600, -3_600])
def test_a_clock_that_is_set_moves_no_time_of_day(monkeypatch: pytest.MonkeyPatch, by_s: int) -> None:
    before, real = clock.wall_ns(), time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: real() + by_s * 10**9)
    assert 0 <= clock.wall_ns() - before < 60 * 10**9
    assert clock.step_s() == pytest.approx(by_s, abs=60)


def test_utc_is_as_ledgers_have_it() -> None:
    now = datetime.strptime(clock.utc_now(), "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC)
    assert now.timestamp() == pytest.approx(clock.wall_s(), abs=60)
    assert len(clock.utc_now()) == len("2026-11-21T11:00:00.000Z")
