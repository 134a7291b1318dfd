"""The current phase's seconds: those that a verdict looks back at, and no more, however long the phase."""

from __future__ import annotations

import pytest

from reports.histogram import codec
from swarm.distributed.collector import KEPT, PhaseStats

EVERY, HOUR = 3, 3_600
"""Seconds between two that have results, and of the phase."""


@pytest.fixture(scope="module")
def long() -> PhaseStats:
    phase_stats = PhaseStats()
    latency, _ = codec.encoded_ns([20_000_000])
    for second in range(0, HOUR, EVERY):
        worker = {"worker": "w0", "second": 1_000 + second}
        phase_stats.add_window({**worker, "ok": 1, "failures": {}, "histograms": {"latency": latency}})
        phase_stats.add_health(worker)
        phase_stats.add_sample({"server": {"compute_ns": second**2, "executions": second}})
        phase_stats.add_sample({"server": {"compute_ns": second**2, "executions": second}})
    return phase_stats


def test_after_an_hour_only_the_last_minute_is_held(long: PhaseStats) -> None:
    held = (long._finished, long._latencies, long._counters)
    assert [len(one) for one in held] == [KEPT // EVERY, KEPT // EVERY, KEPT]
    assert long.latency.total == HOUR // EVERY


def test_its_seconds_are_the_latest(long: PhaseStats) -> None:
    assert (long.complete, len(long.seconds)) == (HOUR - EVERY, KEPT)
    assert sum(second.finished for second in long.seconds) == KEPT // EVERY


def test_compute_times_are_of_the_latest_readings_between_which_something_ran(long: PhaseStats) -> None:
    last = HOUR - EVERY
    assert len(long.compute_ns) == KEPT - 1
    assert long.compute_ns[-1] == (last**2 - (last - EVERY) ** 2) / EVERY
