"""The seconds of the running cell: what they say, and when they are folded."""

from __future__ import annotations

import pytest

from swarm.web.seconds import COLUMNS, WAIT_S, Seconds, row_of
from tests.reports.lines import FIRST_SECOND, Record, health_line, phase_line, sample_line, window
from tests.swarm.web_stand import MS, a_book, second_of, tagged

BOOK = a_book()
TAG, ENTRY = tagged(BOOK), BOOK.header["plan"][0]
COUNTED = {"requests": 10, "successes": 10, "images": 10, "executions": 5, "queue_ns": 0, "compute_ns": 0}
LATER = COUNTED | {"requests": 20, "successes": 20, "images": 20, "executions": 10}


def rows(seconds: Seconds, *records: Record, now: float = 0.0) -> list[dict[str, object]]:
    """What is folded while these come, by column."""
    folded = [second for record in records for second in seconds.add(record, now)]
    return [dict(zip(COLUMNS, row_of(second), strict=True)) for second in folded]


def the_rest(seconds: Seconds) -> list[dict[str, object]]:
    return [dict(zip(COLUMNS, row_of(second), strict=True)) for second in seconds.rest()]


def test_a_second_has_the_numbers_of_the_reports_timeline() -> None:
    seconds = Seconds(ENTRY)
    gpus = [{"id": "a", "util_pct": 91.234567, "memory_bytes": 2_000_000_000, "power_w": 300.0}]
    rows(seconds, phase_line(TAG, "measure", "2026-11-21T11:00:00Z"))
    rows(seconds, *second_of(TAG, 0, [40 * MS] * 10, server=COUNTED))
    rows(seconds, *second_of(TAG, 1, [40 * MS] * 9 + [80 * MS], server=LATER, gpus=gpus, pending_requests=3))
    first, second = the_rest(seconds)
    assert (first["t_s"], second["t_s"]) == (FIRST_SECOND, FIRST_SECOND + 1)
    assert (first["cell"], first["repeat"], first["phase"]) == ("onnx-grpc/b1/c2", 1, "measure")
    assert (second["images_per_s"], second["failures_per_s"]) == (10, 0)
    assert second["latency_p50_ms"] == pytest.approx(40, rel=1e-3)
    assert second["latency_p95_ms"] == pytest.approx(80, rel=1e-3)
    assert (second["in_flight"], second["users"], second["worker_cpu_pct"]) == (4, 4, 40.0)
    assert (first["executed_batch"], second["executed_batch"]) == (None, 2.0)
    assert (first["gpu_util_pct"], second["gpu_util_pct"], second["pending_requests"]) == (None, 91.23, 3)


def test_a_second_waits_until_its_records_are_in() -> None:
    seconds = Seconds(ENTRY)
    early = window(TAG, "w0", [40 * MS] * 2, 1)
    late = window(TAG, "w1", [40 * MS] * 3, 1)
    assert rows(seconds, early, now=10.0) == []
    assert rows(seconds, late, now=10.0 + WAIT_S - 0.1) == []
    after = window(TAG, "w0", [], 1) | {"second": FIRST_SECOND + 1}
    assert rows(seconds, after, now=10.0 + WAIT_S) == []
    (folded,) = rows(seconds, after, now=10.0 + 2 * WAIT_S - 0.1)
    assert (folded["images_per_s"], seconds.late) == (5, 0)


def with_a_clock_ahead(by: int, length: int = 40) -> tuple[dict[int, dict[str, object]], Seconds]:
    """What is known at last of each second, where w0's clock is ahead of w1's and the sampler's."""
    seconds, found = Seconds(ENTRY), []
    for at in range(length):
        ahead = window(TAG, "w0", [40 * MS] * 2, 1) | {"second": FIRST_SECOND + by + at}
        right = window(TAG, "w1", [40 * MS] * 3, 1) | {"second": FIRST_SECOND + at}
        sample = sample_line(TAG, FIRST_SECOND + at, pending_requests=1)
        found += rows(seconds, ahead, right, sample, now=float(at))
    return {int(str(row["t_s"])) - FIRST_SECOND: row for row in [*found, *the_rest(seconds)]}, seconds


@pytest.mark.parametrize("by", [1, 3, 10, 25])
def test_a_clock_that_is_ahead_takes_no_second_from_the_others(by: int) -> None:
    found, seconds = with_a_clock_ahead(by)
    told = [(found[at]["images_per_s"], found[at]["pending_requests"]) for at in (0, by - 1, by, 39)]
    assert told == [(3, 1), (3, 1), (5, 1), (5, 1)]
    assert seconds.late == 0


def test_no_second_is_folded_that_is_still_to_come() -> None:
    seconds = Seconds(ENTRY)
    rows(seconds, sample_line(TAG, FIRST_SECOND), now=0.0)
    assert rows(seconds, window(TAG, "w0", [40 * MS], 1) | {"second": FIRST_SECOND + 10}, now=0.0) == []
    (first,) = rows(seconds, sample_line(TAG, FIRST_SECOND + 9), now=9.0)
    assert first["t_s"] == FIRST_SECOND
    assert rows(seconds, sample_line(TAG, FIRST_SECOND + 10), now=10.0) == []
    assert [row["t_s"] - FIRST_SECOND for row in the_rest(seconds)] == [9, 10]


@pytest.mark.parametrize("by", [-3_600, -31, 31, 3_600])
def test_a_clock_that_is_far_off_is_left_out_and_counted(by: int) -> None:
    found, seconds = with_a_clock_ahead(by)
    assert sorted(found) == list(range(40))
    assert {row["images_per_s"] for row in found.values()} == {3}
    assert seconds.late == 40


def test_what_comes_after_its_second_was_folded_folds_it_again() -> None:
    seconds = Seconds(ENTRY)
    rows(seconds, window(TAG, "w0", [40 * MS] * 2, 1), now=0.0)
    (first,) = rows(seconds, window(TAG, "w0", [40 * MS] * 2, 1) | {"second": FIRST_SECOND + 1}, now=WAIT_S)
    assert rows(seconds, window(TAG, "w1", [40 * MS], 1), now=WAIT_S) == []
    again, next_one = the_rest(seconds)
    assert (first["t_s"], first["images_per_s"]) == (FIRST_SECOND, 2)
    assert (again["t_s"], again["images_per_s"]) == (FIRST_SECOND, 3)
    assert next_one["t_s"] == FIRST_SECOND + 1


def test_each_second_is_folded_once_and_in_order() -> None:
    seconds = Seconds(ENTRY)
    at = [FIRST_SECOND + offset for offset in (2, 0, 1)]
    found = [row for second in at for row in rows(seconds, health_line(TAG, "w0", second), now=0.0)]
    found += rows(seconds, sample_line(TAG, FIRST_SECOND + 3), now=WAIT_S)
    found += the_rest(seconds)
    assert [row["t_s"] for row in found] == [FIRST_SECOND + offset for offset in range(4)]
    assert the_rest(seconds) == []


def test_what_is_not_known_is_none_and_never_zero() -> None:
    seconds = Seconds(ENTRY)
    rows(seconds, sample_line(TAG, FIRST_SECOND))
    (row,) = the_rest(seconds)
    unknown = {name for name, value in row.items() if value is None}
    assert unknown == set(COLUMNS) - {"t_s", "cell", "repeat", "phase"}
