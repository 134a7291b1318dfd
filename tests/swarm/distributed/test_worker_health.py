"""The generator's health, on a clock that only sleeping moves."""

import gc
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from gevent.monkey import get_original

from reports.histogram import buckets, codec
from swarm.distributed.shipper import (
    LOOK_S,
    LOOKS_A_LOCK,
    GcPauses,
    WorkerHealth,
    loop_thread_ns,
    yield_lock,
)

MS = 1_000_000


class Machine:
    """A clock in ns, a sleep that is late by `lag_ms`, and the processor time used."""

    def __init__(self) -> None:
        self.now_ns = 0
        self.lag_ms = 0.0
        self.used_s = 10.0

    def clock(self) -> int:
        return self.now_ns

    def sleep(self, seconds: float) -> None:
        self.now_ns += round(seconds * 1e9 + self.lag_ms * MS)


@pytest.fixture
def machine() -> Machine:
    return Machine()


def test_lag_is_what_a_sleep_oversleeps(machine: Machine) -> None:
    health = WorkerHealth(machine.clock, machine.sleep, lambda: machine.used_s)
    for machine.lag_ms in (0, 0, 0, 7):
        health.look()
    figures = health.take()
    lags = codec.merged([figures["lag"]])
    assert lags.total == 4
    assert buckets.percentiles_ns(lags, [50.0, 100.0]) == pytest.approx([0, 7e6], rel=1e-3)


def test_processor_time_is_a_share_of_one_core_since_the_last_look(machine: Machine) -> None:
    health = WorkerHealth(machine.clock, machine.sleep, lambda: machine.used_s)
    for used_s, share in ((10.5, 50), (12.0, 150)):
        machine.now_ns += 1_000_000_000
        machine.used_s = used_s
        assert health.take()["cpu_pct"] == share


def test_collections_are_counted_and_timed(machine: Machine) -> None:
    pauses = GcPauses(machine.clock)
    pauses("stop", {})
    for pause_ms in (3, 5):
        pauses("start", {})
        machine.now_ns += pause_ms * MS
        pauses("stop", {})
    assert pauses.take() == {"gc_pauses": 2, "gc_ns": 8 * MS, "gc_max_ns": 5 * MS}
    assert pauses.take() == {"gc_pauses": 0, "gc_ns": 0, "gc_max_ns": 0}


def test_real_collections_are_seen(machine: Machine) -> None:
    health = WorkerHealth()
    gc.collect()
    assert health.take()["gc_pauses"] >= 1


def test_an_idle_second_has_no_lags(machine: Machine) -> None:
    health = WorkerHealth(machine.clock, machine.sleep, lambda: 0.0)
    machine.sleep(LOOK_S)
    assert codec.merged([health.take()["lag"]]).total == 0


def waits_of(machine: Machine, readings: Iterator[tuple[int, int] | None]) -> WorkerHealth:
    return WorkerHealth(machine.clock, machine.sleep, lambda: 0.0, lambda: next(readings))


def test_waiting_for_a_processor_is_told_as_growth(machine: Machine) -> None:
    health = waits_of(machine, iter([(0, waited_ns) for waited_ns in (500, 700, 1_000_700, 1_000_700)]))
    assert [health.take()["cpu_wait_ns"] for _ in range(3)] == [200, 1_000_000, 0]


def test_waiting_for_a_processor_is_left_out_where_it_is_not_known(machine: Machine) -> None:
    health = waits_of(machine, iter([None, None, (50, 700), (90, 900), None]))
    taken = [health.take() for _ in range(4)]
    assert [figures.get("cpu_wait_ns") for figures in taken] == [None, None, 200, None]
    assert [figures.get("loop_ran_ns") for figures in taken] == [None, None, 40, None]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("100049 2383758 2\n", (100049, 2383758)),
        ("100049 0 2\n", (100049, 0)),
        ("0 0 0\n", None),
        ("", None),
        ("1 x 2", None),
    ],
)
def test_what_the_kernel_tells_of_waiting(text: str, told: tuple[int, int] | None, tmp_path: Path) -> None:
    file = tmp_path / "schedstat"
    file.write_text(text)
    assert loop_thread_ns(file) == told


def test_systems_without_the_file_tell_nothing_of_waiting(tmp_path: Path) -> None:
    assert loop_thread_ns(tmp_path / "schedstat") is None


def test_waits_for_the_interpreter_lock_are_looked_at_now_and_then(machine: Machine) -> None:
    def wait() -> None:
        machine.now_ns += 5 * MS

    health = WorkerHealth(machine.clock, machine.sleep, lambda: 0.0, lambda: None, yield_lock=wait)
    for _ in range(3 * LOOKS_A_LOCK - 1):
        health.look()
    assert health.take()["lock_looks"] == 2
    health.look()
    figures = health.take()
    assert (figures["lock_looks"], figures["lock_wait_ns"]) == (1, 5 * MS)


def test_a_wait_for_a_processor_is_not_one_for_the_lock(machine: Machine) -> None:
    """Of 5 ms the loop ran for 1 and was ready to run for 3."""
    readings = iter([(0, 0), (10 * MS, 20 * MS), (11 * MS, 23 * MS), (11 * MS, 23 * MS)])

    def wait() -> None:
        machine.now_ns += 5 * MS

    health = WorkerHealth(machine.clock, machine.sleep, lambda: 0.0, lambda: next(readings), yield_lock=wait)
    for _ in range(LOOKS_A_LOCK):
        health.look()
    assert health.take()["lock_wait_ns"] == MS


def test_what_was_taken_is_told_beside_it(machine: Machine) -> None:
    taken: dict[str, float | int] = {"cpu_quota": 0.5, "throttled_ns": 38}
    health = WorkerHealth(machine.clock, machine.sleep, lambda: 0.0, taken=lambda: taken)
    assert taken.items() <= health.take().items()


def test_a_thread_that_runs_python_keeps_the_lock() -> None:
    """It gives it up when it is asked to, after 5 ms; alone, a process has it back at once."""
    alone = min(lock_wait_ns() for _ in range(20))
    stop: list[int] = []
    get_original("_thread", "start_new_thread")(burn, (stop,))
    deadline, longest = time.monotonic() + 10, 0
    try:
        # It has to run first, and the loop may have the lock back before it notices.
        while longest < 2 * MS and time.monotonic() < deadline:
            longest = max(longest, lock_wait_ns())
    finally:
        stop.append(1)
    assert alone < MS
    assert longest >= 2 * MS


def burn(stop: list[int]) -> None:
    while not stop:
        sum(range(1_000))


def lock_wait_ns() -> int:
    began_ns = time.perf_counter_ns()
    yield_lock()
    return time.perf_counter_ns() - began_ns
