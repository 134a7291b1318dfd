"""Seconds that are merged: the Summary is the same, the timeline is coarser."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest

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
    phase_line,
    sample_line,
    start_line,
    triton,
)

MS, SECONDS, WORKERS = 1_000_000, 23, ("w0", "w1")
TAG = {"cell": "onnx-grpc/b2/c4", "repeat": 1}


def durations(chance: Random, count: int) -> str:
    return encoded([round(chance.lognormvariate(16, 0.7)) for _ in range(count)])


def window(chance: Random, at: int, worker: str, phase: str) -> Record:
    ok = chance.randrange(1, 30)
    texts = {name: durations(chance, ok) for name in ("latency", "service_time", "send_delay", "encode")}
    failures = {"timeout": 2, "refused": 1} if chance.random() < 0.3 else {}
    texts |= {"failed": durations(chance, 3)} if failures else {}
    line = {"kind": "window", **TAG, "worker": worker, "phase": phase, "second": FIRST_SECOND + at, "ok": ok}
    line |= {"failures": failures, "abandoned": 0, "late": chance.randrange(3), "images": 2 * ok}
    line |= {"request_bytes": 1_000 * ok, "response_bytes": 100 * ok, "histograms": texts}
    line |= {
        "server_ns": {"queue": 5 * ok, "compute": 7 * ok} if at % 3 else {},
        "server_count": ok if at % 3 else 0,
    }
    line |= {
        "out_of_range": {"send": 1} if at == 7 else {},
        "first_start_ns": FIRST_NS + at * 10**9 if at % 5 else 0,
    }
    return line | {"last_end_ns": FIRST_NS + at * 10**9 + 987_654_321 if at % 5 else 0}


def health(chance: Random, at: int, worker: str, phase: str) -> Record:
    line = {"kind": "health", **TAG, "worker": worker, "phase": phase, "second": FIRST_SECOND + at}
    line |= {"cpu_pct": chance.uniform(10, 90), "loop_ran_ns": chance.randrange(10**9), "cpu_wait_ns": 10**6}
    line |= {
        "lag": durations(chance, 50) if at % 4 else "",
        "gc_pauses": 1,
        "gc_max_ns": chance.randrange(10**6),
    }
    line |= {"span_ns": chance.randrange(5 * 10**8, 10**9)} if at % 6 else {"loop_ran_ns": None}
    return line | {"in_flight": chance.randrange(9), "users": 4}


def path(chance: Random, at: int, worker: str, phase: str) -> Record:
    line = {"kind": "path", **TAG, "worker": worker, "phase": phase, "second": FIRST_SECOND + at}
    line |= {"span_ns": chance.randrange(5 * 10**8, 10**9), "asked": 4, "connections": 3 if at % 5 else 4}
    line |= {
        name: chance.randrange(10**6) for name in ("bytes_sent", "bytes_received", "bytes_retransmitted")
    }
    line |= {name: chance.randrange(10**3) for name in ("segments_out", "segments_in", "retransmits")}
    line |= {name: chance.randrange(10**8) for name in ("busy_ns", "rwnd_limited_ns", "sndbuf_limited_ns")}
    looks = {"rtt_ns": chance.randrange(10**6, 10**7), "min_rtt_ns": chance.randrange(10**4, 10**5)}
    looks |= {"cwnd_bytes": chance.randrange(10**5), "delivery_bytes_per_s": chance.randrange(10**8)}
    return line | (looks if at % 7 else {"rtt_ns": None})


def sample(chance: Random, at: int, phase: str) -> Record:
    line: Record = {"kind": "sample", **TAG, "phase": phase, "second": FIRST_SECOND + at}
    line |= {"server": triton(10 * at, 2, 8 * MS)} if at % 9 else {"missing": ["server: read timed out"]}
    gpu = {"util_pct": chance.randrange(100), "memory_bytes": chance.randrange(10**9), "power_w": 90.5}
    host = {"cpu_pct": chance.uniform(0, 99), "tx_bytes": 1_000 * at, "rx_bytes": 10 * at}
    return line | {"pending_requests": at, "gpus": [gpu | {"sm_clock_mhz": 1_400}] * 2, "host": host}


def busy_run(chance: Random, late: int = 0) -> list[Record]:
    """Three phases of two workers, hardly two seconds of which are alike; `late` of the records come late."""
    lines: list[Record] = [{"kind": "run", **TAG, "event": "start", "workers": list(WORKERS), "hosts": 1}]
    for phase, begin in (("warm-up", 0), ("measure", 3), ("drain", SECONDS - 1)):
        lines.append(phase_line(TAG, phase, f"2026-11-21T11:00:{begin:02}Z"))
    for at in range(SECONDS):
        phase = "warm-up" if at < 3 else "measure" if at < SECONDS - 1 else "drain"
        for worker in WORKERS[: 1 if at == 11 else 2]:
            lines += [kind(chance, at, worker, phase) for kind in (window, health, path)]
        lines.append(sample(chance, at, phase))
    lines += [health(chance, 2, "w0", "measure"), *(drained_line(TAG, worker, 2, 99) for worker in WORKERS)]
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
    assert None not in (
        true.path,
        true.latency.max_ns,
        true.generator.in_flight,
        true.generator.loop_delay_ns,
        true.gpu.power_w,
    )


@pytest.mark.parametrize("at_once", [1, 7, 40])
def test_when_records_are_merged_makes_no_difference(tmp_path: Path, at_once: int) -> None:
    ledger = written(tmp_path, busy_run(Random(at_once), 5))
    (true, seconds), (merged, merged_seconds) = folded(ledger, 4, 10**9), folded(ledger, 4, at_once)
    assert different(merged, true) == []
    assert same(tuple(merged_seconds), tuple(seconds))


def test_a_wider_second_has_rates_per_second_and_the_percentiles_of_all(tmp_path: Path) -> None:
    def ended(at: int, worker: str, values: list[int]) -> Record:
        texts = dict.fromkeys(("latency", "service_time", "send_delay"), encoded(values))
        counts = {"ok": len(values), "images": 2 * len(values), "request_bytes": 0, "response_bytes": 0}
        line = {"kind": "window", **TAG, "worker": worker, "phase": "measure", "second": FIRST_SECOND + at}
        return line | counts | {"failures": {"timeout": 2}, "abandoned": 0, "histograms": texts}

    lines = [
        ended(0, "w0", [MS] * 60),
        ended(0, "w1", [9 * MS] * 60),
        ended(3, "w0", [5 * MS]),
        ended(9, "w0", [MS]),
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
