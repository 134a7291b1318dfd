"""Seconds that are merged: the Summary is the same, the timeline is coarser."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from reports.fold.path import GROWN
from reports.fold.run_records import Bins, planned_runs
from reports.fold.timeline import TimelineSecond, timeline
from reports.ledger.ledger import FILE_NAME, outline
from reports.study.study import coarseness, load_study, notices
from reports.study.summarise import summarise
from reports.summary.summary import Summary
from tests.reports.builder import Book
from tests.reports.lines import (
    FIRST_NS,
    FIRST_SECOND,
    Record,
    drained_line,
    encoded,
    health_line,
    path_line,
    phase_line,
    sample_line,
    start_line,
    triton,
    window,
)

MS, SECONDS, WORKERS = 1_000_000, 23, ("w0", "w1")
TAG = {"cell": "onnx-grpc/b2/c4", "repeat": 1}


def worker_second(chance: Random, at: int, worker: str) -> list[Record]:
    """What came back, and what a worker told of itself and its connections; hardly two are alike."""
    some, second = chance.randrange, FIRST_SECOND + at
    values = [round(chance.lognormvariate(16, 0.7)) for _ in range(some(1, 30))]
    ended = window(TAG, worker, values, 2) | {"second": second, "late": some(3)}
    ended |= {"server_ns": {"queue": some(99), "compute": some(99)}, "server_count": 1} if at % 3 else {}
    ended |= {"failures": {"timeout": 2, "refused": 1}, "out_of_range": {"send": 1}} if at % 7 == 0 else {}
    ended["histograms"] |= {"encode": encoded(values)} | ({} if at % 7 else {"failed": encoded(values[:3])})
    ended |= {"first_start_ns": FIRST_NS + at * 10**9, "last_end_ns": FIRST_NS + at * 10**9 + 987_654_321}
    ended |= {} if at % 5 else {"first_start_ns": 0, "last_end_ns": 0}
    told: Record = {"cpu_pct": chance.uniform(10, 90), "loop_ran_ns": some(10**9), "cpu_wait_ns": 10**6}
    told |= {"span_ns": some(5 * 10**8, 10**9), "gc_max_ns": some(10**6), "in_flight": some(9)}
    told |= {} if at % 4 else {"lag": "", "loop_ran_ns": None}
    lags_ns = [round(chance.lognormvariate(16, 0.7)) for _ in range(50)]
    looks: Record = {
        "rtt_ns": some(10**6, 10**7),
        "min_rtt_ns": some(10**4, 10**5),
        "cwnd_bytes": some(10**5),
    }
    looks |= {"asked": 4, "connections": 3 if at % 5 else 4, "span_ns": some(5 * 10**8, 10**9)}
    grew = {name: some(10**6) for name in sorted(GROWN)} | ({} if at % 6 else {"rtt_ns": None})
    return [
        ended,
        health_line(TAG, worker, second, lags_ns, **told),
        path_line(TAG, worker, second, **looks | grew),
    ]


def sample(chance: Random, at: int) -> Record:
    gpu = {"util_pct": chance.randrange(100), "memory_bytes": chance.randrange(10**9), "power_w": 90.5}
    told: Record = (
        {"server": triton(10 * at, 2, 8 * MS)} if at % 9 else {"missing": ["server: read timed out"]}
    )
    told |= {"host": {"cpu_pct": chance.uniform(0, 99), "tx_bytes": 1_000 * at, "rx_bytes": 10 * at}}
    gpus = [gpu | {"sm_clock_mhz": 1_400}] * 2
    return sample_line(TAG, FIRST_SECOND + at, pending_requests=at, gpus=gpus, **told)


def busy_run(chance: Random, late: int = 0) -> list[Record]:
    """Three phases of two workers, hardly two seconds of which are alike; `late` of the records come late."""
    lines = [start_line(TAG, *WORKERS)]
    for phase, begin in (("warm-up", 0), ("measure", 3), ("drain", SECONDS - 1)):
        lines.append(phase_line(TAG, phase, f"2026-11-21T11:00:{begin:02}Z"))
    for at in range(SECONDS):
        phase = "warm-up" if at < 3 else "measure" if at < SECONDS - 1 else "drain"
        told = [line for worker in WORKERS[at == 11 :] for line in worker_second(chance, at, worker)]
        lines += [line | {"phase": phase} for line in (*told, sample(chance, at))]
    lines.append(health_line(TAG, "w0", FIRST_SECOND + 2, in_flight=7))
    lines += [drained_line(TAG, worker, 2, 99) for worker in WORKERS]
    for _ in range(late):
        lines.append(lines.pop(chance.randrange(4, len(lines) - 9)))
    return [*lines, {"kind": "run", **TAG, "event": "end", "status": "done", "note": ""}]


def written(folder: Path, lines: list[Record]) -> Path:
    book = Book()
    book.plan("onnx-grpc", 2, 4)
    started = [] if any(line["kind"] == "run" for line in lines) else [start_line(TAG)]
    book.records = [*started, *lines]
    return book.write(folder) / FILE_NAME


def folded(ledger: Path, width_s: int, at_once: int) -> tuple[Summary, list[TimelineSecond]]:
    (run,) = planned_runs(outline(ledger), Bins(width_s, FIRST_SECOND - 1), at_once)
    return summarise(run), list(timeline(run, FIRST_SECOND))


def same(found: Any, true: Any) -> bool:
    """Equal, and numbers with a fraction up to what adding in another order makes of them."""
    if is_dataclass(true) and not isinstance(true, type):
        return all(same(getattr(found, each.name), getattr(true, each.name)) for each in fields(true))
    if isinstance(true, Mapping):
        return found.keys() == true.keys() and all(same(found[name], true[name]) for name in true)
    if isinstance(true, tuple):
        return len(found) == len(true) and all(map(same, found, true))
    return bool(found == (pytest.approx(true, rel=1e-12) if isinstance(true, float) else true))


def different(found: Summary, true: Summary) -> list[str]:
    """The names of the fields that are not the same."""
    names = [each.name for each in fields(true)]
    return [name for name in names if not same(getattr(found, name), getattr(true, name))]


@pytest.mark.parametrize("late", [0, 12])
@pytest.mark.parametrize("width_s", [1, 2, 5, 60])
def test_a_run_that_is_merged_while_read_has_the_same_summary(
    tmp_path: Path, width_s: int, late: int
) -> None:
    ledger = written(tmp_path, busy_run(Random(width_s), late))
    (true, _), (merged, _) = folded(ledger, 1, 10**9), folded(ledger, width_s, 1)
    assert different(merged, true) == []
    told = (true.latency.max_ns, true.generator.in_flight, true.generator.loop_delay_ns, true.gpu.power_w)
    assert None not in (true.path, *told)


@pytest.mark.parametrize("at_once", [1, 7, 40])
def test_when_records_are_merged_makes_no_difference(tmp_path: Path, at_once: int) -> None:
    ledger = written(tmp_path, busy_run(Random(at_once), 5))
    (true, seconds), (merged, merged_seconds) = folded(ledger, 4, 10**9), folded(ledger, 4, at_once)
    assert different(merged, true) == []
    assert same(tuple(merged_seconds), tuple(seconds))


def test_a_wider_second_has_rates_per_second_and_the_percentiles_of_all(tmp_path: Path) -> None:
    values = {(0, "w0"): [MS] * 60, (0, "w1"): [9 * MS] * 60, (3, "w0"): [5 * MS], (9, "w0"): [MS]}
    lines = [
        window(TAG, worker, some, 2) | {"second": FIRST_SECOND + at, "failures": {"timeout": 2}}
        for (at, worker), some in values.items()
    ]
    for at, at_end in ((1, 500), (3, 900), (7, 4_900)):
        host = {"cpu_pct": at * 10.0, "tx_bytes": at_end, "rx_bytes": 0}
        gpus = [{"util_pct": at * 10, "power_w": 50.0 * at}]
        lines.append(sample_line(TAG, FIRST_SECOND + at, gpus=gpus, host=host))
    _, found = folded(written(tmp_path, lines), 4, 10**9)
    # the spans begin a second before the study's own
    first, second, third = found
    assert [(one.t_s, one.width_s) for one in found] == [(-1, 4), (3, 4), (7, 4)]
    assert (first.requests_per_s, first.images_per_s, first.failures_per_s) == (30, 60, 1)
    assert [first.latency_p50_ns, first.latency_p95_ns] == pytest.approx([MS, 9 * MS], rel=5e-4)
    assert (second.requests_per_s, second.gpu_util_pct, second.host_cpu_pct) == (0.25, 30, 30)
    assert (second.tx_bytes_per_s, third.tx_bytes_per_s) == (100, 1_000)
    assert (third.requests_per_s, third.latency_p50_ns, third.drawn_p50_ns) == (0.25, None, None)


def test_seconds_are_merged_where_all_runs_or_one_have_too_many(tmp_path: Path) -> None:
    found = outline(written(tmp_path, busy_run(Random(1))))
    assert coarseness(found) == 1
    assert (coarseness(found, 23), coarseness(found, 22), coarseness(found, 5)) == (1, 2, 5)
    assert (coarseness(found, 23, 8), coarseness(found, 8, 23)) == (3, 3)
    (extent,) = found.runs.values()
    for count, seconds, width_s in ((1, 3_600, 1), (1, 3_601, 2), (20, 1_000, 1), (20, 1_001, 2)):
        long = replace(extent, seconds=dict.fromkeys(range(seconds), 1))
        assert coarseness(replace(found, runs={("a", at): long for at in range(count)})) == width_s


def test_a_study_whose_seconds_were_merged_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = written(tmp_path, busy_run(Random(1)))
    fine = load_study(ledger.parent)
    assert fine.coarse == 1
    assert not any("merged" in notice for notice in notices(fine))
    monkeypatch.setattr("reports.study.study.coarseness", lambda found: 6)
    study = load_study(ledger.parent)
    assert (study.coarse, len(fine.timeline), len(study.timeline)) == (6, 23, 4)
    assert list(notices(study))[-1].startswith("Seconds were merged by 6 for the timeline: ")
    assert study.runs == fine.runs


def test_what_each_worker_said_is_let_go_once_the_last_line_of_its_second_was_read(tmp_path: Path) -> None:
    (run,) = planned_runs(outline(written(tmp_path, busy_run(Random(3), 12))), Bins(5, FIRST_SECOND - 1), 1)
    assert [len(here.health.workers) for here in run.seconds.values()] == [0] * 5
    assert [len(span) for span in run.samples.spans.values()] == [1] * 5
    assert {here.shown.users for here in run.seconds.values()} == {8}
