"""Processor time that was taken away, from the ledger's records to a Summary."""

from pathlib import Path
from typing import Any

import pytest

from reports.fold.server_facts import CpuReadings, ServerCpu
from reports.study.study import load_study
from reports.summary.summary import Summary
from tests.reports.builder import Book
from tests.reports.lines import FIRST_SECOND, Record, health_line, sample_line, triton

MS = 1_000_000
S = 1_000 * MS


def folded(folder: Path, *lines: Record) -> Summary:
    book = Book()
    tag = book.add("onnx-http", 1, 1, {"w0": [10 * MS] * 300}, counters=triton(300, 1, MS))
    book.records += [{**line, **tag} for line in lines]
    return load_study(book.write(folder)).runs[0]


def told(worker: str, at: int, **stated: Any) -> Record:
    return health_line({}, worker, FIRST_SECOND + at, span_ns=S, **stated)


def test_the_worst_worker_is_told_of(tmp_path: Path) -> None:
    run = folded(
        tmp_path,
        told("w0", 0, throttled_ns=100 * MS, cpu_quota=2.0, wanted_ns=2 * S, stolen_ns=100 * MS),
        told("w0", 1, throttled_ns=0, cpu_quota=2.0, wanted_ns=2 * S, stolen_ns=300 * MS),
        told("w1", 0, throttled_ns=300 * MS, cpu_quota=0.5, pressure_ns=250 * MS),
        told("w1", 1, throttled_ns=500 * MS, cpu_quota=0.5, used_up_ns=900 * MS, pressure_ns=150 * MS),
    )
    found = run.generator
    assert (found.throttled_pct, found.cpu_quota, found.used_up_pct) == (40.0, 0.5, 90.0)
    assert (found.stolen_pct, found.pressure_pct) == (10.0, 20.0)


def test_one_stolen_tick_of_an_idle_host_is_little(tmp_path: Path) -> None:
    """10 of 20 ms that were wanted: of half a core's time it is 2 %."""
    run = folded(tmp_path, told("w0", 0, wanted_ns=20 * MS, stolen_ns=10 * MS))
    assert run.generator.stolen_pct == 2.0


def test_waits_for_the_lock_are_a_mean_over_looks(tmp_path: Path) -> None:
    run = folded(
        tmp_path,
        told("w0", 0, lock_looks=9, lock_wait_ns=45 * MS),
        told("w0", 1, lock_looks=1, lock_wait_ns=15 * MS),
        told("w1", 0, lock_looks=0, lock_wait_ns=0),
    )
    assert run.generator.lock_wait_ns == 6 * MS


def test_an_older_ledger_tells_nothing(tmp_path: Path) -> None:
    run = folded(tmp_path, told("w0", 0), sample_line({}), sample_line({}, FIRST_SECOND + 2))
    found = run.generator
    assert (found.throttled_pct, found.cpu_quota, found.stolen_pct) == (None, None, None)
    assert (found.pressure_pct, found.lock_wait_ns) == (None, None)
    assert run.server_cpu == ServerCpu()


@pytest.mark.parametrize("name", ["throttled_ns", "stolen_ns", "lock_wait_ns"])
def test_what_cannot_be_true_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(Exception, match=f"{name} is -1"):
        folded(tmp_path, told("w0", 0, **{name: -1}))


def sums(at: int, **told: Any) -> Record:
    return sample_line({}, FIRST_SECOND + at, server_cpu=told)


def test_a_servers_sums_are_read_at_both_ends_of_the_phase(tmp_path: Path) -> None:
    run = folded(
        tmp_path,
        {**sums(-1, throttled_ns=0, wanted_ns=0, stolen_ns=0, quota=1.0), "phase": "warm-up"},
        sums(0, throttled_ns=7 * S, wanted_ns=90 * S, stolen_ns=5 * S, quota=1.0, shared=True),
        sums(1, throttled_ns=7.9 * S),
        sums(3, throttled_ns=8.5 * S, wanted_ns=96 * S, stolen_ns=8 * S, quota=1.0, shared=True),
    )
    assert run.server_cpu == ServerCpu(quota=1.0, throttled_pct=50.0, shared=True, stolen_pct=50.0)


def readings(*found: tuple[int, dict[str, Any]]) -> ServerCpu:
    made = CpuReadings()
    for second, told in found:
        made.add(second, told)
    return made.found


def test_sums_of_a_server_that_began_anew_tell_nothing() -> None:
    assert (
        readings((0, {"throttled_ns": 9 * S}), (1, {"throttled_ns": 0}), (4, {"throttled_ns": S}))
        == ServerCpu()
    )


def test_sums_of_replicas_behind_one_address_are_not_one_servers(tmp_path: Path) -> None:
    run = folded(
        tmp_path,
        *({**sums(at, throttled_ns=at * S), "identity": f"pod-{at % 2}/1.0"} for at in range(4)),
    )
    assert run.server_cpu == ServerCpu()


def test_one_second_is_too_short() -> None:
    assert readings((0, {"throttled_ns": 0}), (1, {"throttled_ns": S})) == ServerCpu()
    assert readings((0, {"throttled_ns": 0})) == ServerCpu()


def test_a_host_without_quotas() -> None:
    found = readings((0, {"wanted_ns": 0, "stolen_ns": 0}), (4, {"wanted_ns": S, "stolen_ns": MS * 100}))
    assert found == ServerCpu(stolen_pct=5.0)  # of half a core's time
