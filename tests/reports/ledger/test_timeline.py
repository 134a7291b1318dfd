"""The seconds of a run, each with what is known of it and nothing else."""

from pathlib import Path
from typing import Any

import pytest

from reports.cells_csv.columns import TIMELINE, render_timeline
from reports.fold.timeline import TimelineSecond, grouped_percentiles
from reports.histogram.buckets import Buckets
from reports.histogram.codec import decoded, encoded_ns
from reports.ledger.ledger import LedgerError
from reports.ledger.records import DURATIONS
from reports.study.study import load_study
from tests.reports.builder import Book
from tests.reports.lines import (
    FIRST_SECOND,
    Record,
    health_line,
    phase_line,
    sample_line,
    start_line,
    triton,
    window,
)

MS = 1_000_000
TAG = {"cell": "onnx-http/b2/c4", "repeat": 1}


def seconds(folder: Path, *lines: Record) -> tuple[TimelineSecond, ...]:
    book = Book()
    tag = book.plan("onnx-http", 2, 4)
    book.records = [start_line(tag), *lines]
    return load_study(book.write(folder)).timeline


def ended(at: int, worker: str, values_ns: list[int], **stated: object) -> Record:
    return window(TAG, worker, values_ns, 2) | {"second": FIRST_SECOND + at} | stated


def alive(at: int, worker: str = "w0", **stated: Any) -> Record:
    return health_line(TAG, worker, FIRST_SECOND + at, **stated)


def sample(at: int, **stated: object) -> Record:
    return sample_line(TAG, FIRST_SECOND + at, **stated)


def test_workers_and_phases_of_a_second_are_merged(tmp_path: Path) -> None:
    (second,) = seconds(
        tmp_path,
        ended(7, "w0", [10 * MS] * 2, phase="warm-up"),
        ended(7, "w0", [20 * MS] * 50, failures={"timeout": 1, "refused": 2}),
        ended(7, "w1", [40 * MS] * 48),
    )
    assert (second.t_s, second.utc, second.phase) == (7, "2026-11-21T11:00:07Z", "measure")
    assert (second.cell, second.repeat, second.endpoint) == ("onnx-http/b2/c4", 1, "onnx-http")
    assert (second.requests_per_s, second.images_per_s, second.failures_per_s) == (100, 200, 3)
    assert [second.latency_p50_ns, second.latency_p95_ns] == pytest.approx([20 * MS, 40 * MS], rel=5e-4)
    assert second.latency_p99_ns is None


def test_a_chart_joins_seconds_of_a_phase_until_they_are_enough() -> None:
    def values(count: int, each_ms: int) -> Buckets:
        return decoded(encoded_ns([each_ms * MS] * count)[0])

    spans = [
        *[("warm-up", values(15, 90)), ("measure", values(15, 10)), ("measure", values(0, 1))],
        *[("measure", values(15, 20)), ("measure", values(25, 30)), ("measure", values(15, 40))],
    ]
    found = grouped_percentiles(spans, 50.0)
    assert [found[0], found[2], found[5]] == [None] * 3
    assert [found[1], found[3], found[4]] == pytest.approx([10 * MS, 10 * MS, 30 * MS], rel=1e-3)


def test_no_second_is_left_out_and_the_unknown_is_none(tmp_path: Path) -> None:
    first, second, third, fourth = seconds(
        tmp_path, ended(0, "w0", [MS]), alive(1), sample(3, pending_requests=2)
    )
    assert [first.t_s, second.t_s, third.t_s, fourth.t_s] == [0, 1, 2, 3]
    # a worker that lives and ships no window finished nothing
    assert [s.requests_per_s for s in (first, second, third, fourth)] == [1, 0, None, None]
    assert (second.failures_per_s, second.latency_p50_ns) == (0, None)
    stated = {name for name, value in vars(third).items() if value not in (None, "")}
    assert stated == {"t_s", "utc", "cell", "repeat", "endpoint", "width_s"}
    assert (fourth.pending_requests, fourth.in_flight) == (2, None)


def test_health_is_summed_or_the_worst_workers(tmp_path: Path) -> None:
    busy = alive(0, "w0", cpu_pct=80.0, lags_ns=[MS] * 100, in_flight=3, users=4)
    (second,) = seconds(tmp_path, busy, alive(0, "w1", cpu_pct=20.0, lags_ns=[5 * MS], in_flight=1, users=2))
    assert (second.in_flight, second.users, second.worker_cpu_pct) == (4, 6, 80.0)
    assert second.loop_lag_ns == pytest.approx(5 * MS, rel=5e-4)


def test_of_two_records_of_a_second_the_last_word_stands(tmp_path: Path) -> None:
    (second,) = seconds(
        tmp_path,
        alive(0, cpu_pct=90.0, span_ns=250 * MS, in_flight=9, users=4),
        alive(0, cpu_pct=50.0, span_ns=750 * MS, in_flight=2, users=4),
        alive(0, "w1", cpu_pct=10.0, in_flight=1, users=3),
    )
    assert (second.in_flight, second.users, second.worker_cpu_pct) == (3, 7, 60.0)


def test_phase_is_the_one_at_the_seconds_end(tmp_path: Path) -> None:
    found = seconds(
        tmp_path,
        phase_line(TAG, "warm-up", "2026-11-21T11:00:01.200Z"),
        phase_line(TAG, "measure", "2026-11-21T11:00:02.999Z"),
        phase_line(TAG, "drain", "2026-11-21T11:00:04.000Z"),
        *(ended(at, "w0", [MS], phase="warm-up") for at in (1, 2)),
        *(ended(at, "w0", [MS]) for at in (2, 3, 4)),
        alive(0, phase="drain"),
    )
    assert [second.phase for second in found] == ["", "warm-up", "measure", "measure", "drain"]


def test_a_gpu_that_was_marked_once_is_the_servers_in_all_seconds(tmp_path: Path) -> None:
    """In the first and the third second the driver names no process; a stranger's GPU is busy."""

    def gpus(*, marked: bool) -> list[Record]:
        mark = {"serves": True} if marked else {}
        return [{"id": "ours", "util_pct": 40.0} | mark, {"id": "theirs", "util_pct": 99.0}]

    found = seconds(tmp_path, *(sample(at, gpus=gpus(marked=at in (1, 3))) for at in range(4)))
    assert [second.gpu_util_pct for second in found] == [40.0] * 4


def test_the_server_is_seen_by_the_difference_of_two_samples(tmp_path: Path) -> None:
    def counters(requests: int, executions: int, queue_ns: int, compute_ns: int) -> Record:
        counted = triton(requests, 2, 0) | {"executions": executions}
        return counted | {"queue_ns": queue_ns, "compute_ns": compute_ns}

    found = seconds(
        tmp_path,
        sample(0, server=counters(100, 50, 10 * MS, 900 * MS)),
        sample(1, server=counters(110, 54, 30 * MS, 950 * MS)),
        sample(2, server=counters(110, 54, 30 * MS, 950 * MS)),
        sample(3, missing=["server: read timed out"]),
        sample(4, server=counters(150, 60, 90 * MS, 990 * MS)),
        sample(5, server=counters(4, 4, MS, MS)),
    )
    of_server = [(s.server_queue_ns, s.server_compute_ns, s.executed_batch) for s in found]
    unknown = (None, None, None)
    # no request in the third second; no neighbour in the fourth and fifth; the server restarted in the last
    assert of_server == [unknown, (2 * MS, 5 * MS, 5.0), unknown, unknown, unknown, unknown]


def test_gpus_and_the_masters_host(tmp_path: Path) -> None:
    gpu = {"id": 0, "util_pct": 30, "memory_bytes": 1_000, "power_w": 90.0, "sm_clock_mhz": 1_400}
    first, second, third = seconds(
        tmp_path,
        sample(
            0,
            gpus=[gpu, gpu | {"util_pct": 50, "sm_clock_mhz": 1_200}],
            host={"tx_bytes": 500, "rx_bytes": 9},
        ),
        sample(1, host={"cpu_pct": 12.5, "tx_bytes": 1_700, "rx_bytes": 9}),
        sample(2, host={"tx_bytes": 3, "rx_bytes": 10}),
    )
    gpus = (first.gpu_util_pct, first.gpu_memory_bytes, first.gpu_power_w, first.gpu_sm_clock_mhz)
    assert gpus == (40, 2_000, 180.0, 1_200)
    assert (first.tx_bytes_per_s, first.rx_bytes_per_s, first.host_cpu_pct) == (None, None, None)
    assert (second.tx_bytes_per_s, second.rx_bytes_per_s, second.host_cpu_pct) == (1_200, 0, 12.5)
    assert second.gpu_util_pct is None
    # counters that went backwards are no rate
    assert (third.tx_bytes_per_s, third.rx_bytes_per_s) == (None, 1)


def test_each_run_has_seconds_of_its_own(tmp_path: Path) -> None:
    book = Book()
    for repeat in (1, 2):
        book.records.append(start_line(book.plan("onnx-http", 2, 4, repeat)))
        spread = {"spread_milli_images": 500} if repeat == 1 else {}
        book.records.append(ended(0, "w0", [MS] * repeat) | {"repeat": repeat} | spread)
    book.plan("onnx-grpc", 2, 4)
    found = load_study(book.write(tmp_path))
    told = [(second.repeat, second.requests_per_s, second.images_per_s) for second in found.timeline]
    assert (told, found.is_spread) == ([(1, 1, 0.5), (2, 2, 4)], True)


def test_the_file_has_the_agreed_columns_and_leaves_the_unknown_empty(tmp_path: Path) -> None:
    book = Book()
    tag = book.plan("onnx-http", 2, 4)
    book.records = [start_line(tag), ended(0, "w0", [1_500_000]), sample(0, gpus=[])]
    heads, row = render_timeline(load_study(book.write(tmp_path))).splitlines()
    assert (heads, len(TIMELINE)) == (",".join(TIMELINE), 28)
    assert row == "0,2026-11-21T11:00:00Z,onnx-http/b2/c4,1,measure,onnx-http,1,2,0,,," + "," * 16


def test_a_broken_histogram_of_a_warm_up_is_one_sentence(tmp_path: Path) -> None:
    broken = ended(0, "w0", [MS], phase="warm-up", histograms=dict.fromkeys(DURATIONS, "zzzz"))
    with pytest.raises(LedgerError, match=r"ledger\.jsonl: a record is not what a ledger holds"):
        seconds(tmp_path, broken)


def test_images_are_of_the_seconds_in_which_they_were_worked_on(tmp_path: Path) -> None:
    first, second, third = seconds(
        tmp_path,
        ended(0, "w0", [MS], spread_milli_images=0),
        ended(1, "w0", [], spread_milli_images=1_500),
        ended(2, "w0", [MS] * 2, spread_milli_images=4_500),
        # a share that came late, and a worker of an older program
        ended(0, "w0", [], spread_milli_images=250),
        ended(0, "w1", [MS] * 2),
    )
    assert [one.images_per_s for one in (first, second, third)] == [4.25, 1.5, 4.5]
    assert [one.requests_per_s for one in (first, second, third)] == [3, 0, 2]
