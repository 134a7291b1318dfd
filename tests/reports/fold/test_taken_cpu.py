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


def test_sums_of_replicas_behind_one_address_are_not_one_servers(tmp_path: Path) -> None:
    run = folded(
        tmp_path,
        *({**sums(at, throttled_ns=at * S), "identity": f"pod-{at % 2}/1.0"} for at in range(4)),
    )
    assert run.server_cpu == ServerCpu()


@pytest.mark.parametrize(
    ("found", "told"),
    [
        # a server that began anew
        ([(0, {"throttled_ns": 9 * S}), (1, {"throttled_ns": 0}), (4, {"throttled_ns": 9 * S})], ServerCpu()),
        # a time that is too short
        ([(0, {"throttled_ns": 0}), (1, {"throttled_ns": S})], ServerCpu()),
        ([(0, {"throttled_ns": 0})], ServerCpu()),
        # readings that came late, of a group without other figures
        ([(0, {"used_up_ns": 0}), (2, {"used_up_ns": 2.1 * S})], ServerCpu(used_up_pct=100.0)),
        # a host without quotas, and a share of half a core's time
        (
            [(0, {"wanted_ns": 0, "stolen_ns": 0}), (4, {"wanted_ns": S, "stolen_ns": 100 * MS})],
            ServerCpu(stolen_pct=5.0),
        ),
    ],
)
def test_sums_at_both_ends(found: list[tuple[int, dict[str, Any]]], told: ServerCpu) -> None:
    made = CpuReadings()
    for second, sums_told in found:
        made.add(second, sums_told)
    assert made.found == told
