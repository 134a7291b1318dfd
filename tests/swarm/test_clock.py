"""The time of day: by the machine's clock as it was when the process began."""

from __future__ import annotations

import time

import pytest

from swarm import clock
from tests.swarm.stand import Stand, a_run


def test_a_clock_that_is_set_moves_no_time_of_day(monkeypatch: pytest.MonkeyPatch) -> None:
    hour_ns, real = 3_600 * 10**9, time.time_ns
    before = clock.wall_ns()
    monkeypatch.setattr(time, "time_ns", lambda: real() + hour_ns)
    assert 0 <= clock.wall_ns() - before < hour_ns / 2
    assert clock.step_s() == pytest.approx(3_600, abs=60)


def test_utc_is_as_ledgers_have_it() -> None:
    assert clock.utc_now().endswith("Z")
    assert len(clock.utc_now()) == len("2026-11-21T11:00:00.000Z")


def test_a_step_is_a_caveat_of_the_run_in_which_it_came_and_of_no_other(stand: Stand) -> None:
    def set_forward() -> None:
        stand.tick()
        stand.step_s = 3_600.4

    stand.clock.on_tick = set_forward
    stand.conductor(a_run(), a_run(seconds=2)).walk()
    found = [(r["code"], r["text"]) for r in stand.records() if r["kind"] == "caveat"]
    assert found == [("clock-stepped", "the master's clock was set by +3,600 s")]
