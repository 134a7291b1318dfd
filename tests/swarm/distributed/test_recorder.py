"""Results become windows; windows reach the ledger; nothing is lost on the way."""

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reports.histogram import buckets, codec
from reports.ledger.ledger import LedgerWriter
from reports.ledger.records import check_record
from swarm.distributed.collector import Collector
from swarm.distributed.protocol import PROGRESS, RECORDS
from swarm.distributed.recorder import SPREAD_S, Recorder
from tests.reading import read_ledger
from tests.swarm.fakes import FakeRunner
from users.errors import ErrorKind, RequestError
from users.load.pacing import LATE_NS
from users.result import Result

SECOND = 1_000_000_000


def result(
    start_ns: int,
    service_ns: int,
    user: int = 0,
    phase: str = "measure",
    error: RequestError | None = None,
    abandoned: bool = False,
    delay_ns: int = 1_000_000,
) -> Result:
    return Result(
        cell="a/b4/c1",
        repeat=1,
        phase=phase,
        user=user,
        images=4,
        intended_ns=start_ns - delay_ns,
        start_ns=start_ns,
        end_ns=start_ns + service_ns,
        request_bytes=100,
        response_bytes=10,
        error=error,
        abandoned=abandoned,
        phases_ns={"decode": 3_000_000},
        server_ns={"compute": 5},
    )


@pytest.fixture
def recorder() -> Recorder:
    made = Recorder()
    made._anchor_ns = 1_000 * SECOND  # the wall clock then shows 1,000 s at monotonic zero
    return made


def test_a_window_per_second_and_phase(recorder: Recorder) -> None:
    recorder.add(result(100, 10))
    recorder.add(result(SECOND - 5, 10))
    recorder.add(result(200, 10, phase="warm-up"))
    records = recorder.take_all()
    assert [(r["phase"], r["second"], r["ok"]) for r in records] == [
        ("measure", 1000, 1),
        ("measure", 1001, 1),
        ("warm-up", 1000, 1),
    ]
    assert recorder.take_all() == []


def test_only_closed_seconds_are_taken_early(recorder: Recorder) -> None:
    recorder.add(result(100, 10))
    assert recorder.take_closed(SECOND - 1) == []
    assert len(recorder.take_closed(SECOND)) == 1


def test_counts_bytes_and_parts(recorder: Recorder) -> None:
    recorder.add(result(100, 20_000_000))
    recorder.add(result(200, 30_000_000, error=RequestError(ErrorKind.TIMEOUT, "late")))
    recorder.add(result(300, 40_000_000, abandoned=True))
    (window,) = recorder.take_all()
    assert (window["ok"], window["failures"], window["abandoned"]) == (1, {"timeout": 1}, 1)
    assert (window["images"], window["request_bytes"], window["response_bytes"]) == (4, 100, 10)
    assert (window["server_ns"], window["server_count"]) == ({"compute": 5}, 1)
    assert (window["first_start_ns"], window["last_end_ns"]) == (100, 300 + 40_000_000)
    assert set(window["histograms"]) == {"latency", "service_time", "send_delay", "decode", "timeout"}
    latency = codec.merged([window["histograms"]["latency"]])
    assert latency.total == 1
    assert buckets.percentiles_ns(latency, [50])[0] == pytest.approx(21e6, rel=1e-3)
    decode = codec.merged([window["histograms"]["decode"]])
    assert buckets.percentiles_ns(decode, [50])[0] == pytest.approx(3e6, rel=1e-3)
    timeout = codec.merged([window["histograms"]["timeout"]])
    assert buckets.percentiles_ns(timeout, [50])[0] == pytest.approx(31e6, rel=1e-3)


def test_failures_and_timeouts_have_histograms_of_their_own(recorder: Recorder) -> None:
    for kind in (ErrorKind.REFUSED, ErrorKind.RESET, ErrorKind.TIMEOUT):
        recorder.add(result(100, 10_000_000, error=RequestError(kind, "")))
    (window,) = recorder.take_all()
    counts = {name: codec.merged([text]).total for name, text in window["histograms"].items()}
    assert counts == {"failed": 2, "timeout": 1}
    assert window["failures"] == {"refused": 1, "reset": 1, "timeout": 1}


def test_codes_and_words_of_refusals_are_counted(recorder: Recorder) -> None:
    for code, again, what in (
        ("429", "2", "queue"),
        ("429", "soon", ""),
        ("503", None, "rate"),
        ("", None, ""),
    ):
        recorder.add(result(100, 10, error=RequestError(ErrorKind.REJECTED, "", code, again, what)))
    recorder.add(result(200, 10))
    recorder.add(result(SECOND + 1, 10))
    first, second = recorder.take_all()
    assert first["failures"] == {"rejected": 4}
    assert first["failure_codes"] == {"429": 2, "503": 1}
    assert first["refused_for"] == {"queue": 1, "rate": 1}
    assert (first["retry_after"], first["retry_after_s"]) == (2, 2)
    assert not {"failure_codes", "refused_for", "retry_after", "retry_after_s"} & second.keys()
    check_record(first | {"worker": "w0"})


def test_requests_that_made_a_connection_are_counted(recorder: Recorder) -> None:
    made = {"send": 1_000, "wait": 5_000, "connect": 2_000_000}
    for phases_ns in (made, made, {"send": 1_000, "wait": 5_000}):
        recorder.add(result(100, 10_000_000)._replace(phases_ns=phases_ns))
    (window,) = recorder.take_all()
    assert window["connects"] == 2
    connect = codec.merged([window["histograms"]["connect"]])
    assert connect.total == 2
    assert buckets.percentiles_ns(connect, [50])[0] == pytest.approx(2e6, rel=1e-3)


def test_late_starts_are_counted(recorder: Recorder) -> None:
    for delay_ns in (0, LATE_NS, LATE_NS + 1):
        recorder.add(result(100, 10, delay_ns=delay_ns))
    (window,) = recorder.take_all()
    assert window["late"] == 1


def test_users_and_progress(recorder: Recorder) -> None:
    for start in (0, 100, 200):
        recorder.add(result(start, 50, user=1))
    recorder.add(result(1000, 500, user=2))
    recorder.add(result(5000, 500, user=3, abandoned=True))
    tally = recorder.tally("measure")
    assert (tally.ok, tally.failed, tally.abandoned, tally.finished) == (4, 0, 1, 4)
    assert tally.users_ns == {1: (0, 250), 2: (1000, 1500)}
    assert tally.spans_ns(recorder.tally("drain")) == 250 + 500
    recorder.add(result(300, 50, user=1)._replace(phase="drain"))
    recorder.add(result(400, 50, user=1)._replace(phase="drain"))
    # the time that user 1 took for itself until its next request belongs to the one before
    assert tally.spans_ns(recorder.tally("drain")) == 300 + 500
    recorder.begin_cell()
    assert recorder.tally("measure").finished == 0


def test_what_began_in_the_warm_up_counts_there_although_it_ends_later(recorder: Recorder) -> None:
    recorder.add(result(100, 50, user=1))
    recorder.add(result(0, 200, user=2)._replace(phase="warm-up"))
    assert [recorder.tally(phase).finished for phase in ("warm-up", "measure")] == [1, 1]


def test_a_result_outside_the_histogram_is_counted_and_said(recorder: Recorder) -> None:
    recorder.add(result(100, 2 * 3600 * SECOND))
    recorder.add(result(100, 10, delay_ns=-5))
    short, *_, long = recorder.take_all()
    assert codec.merged([long["histograms"]["service_time"]]).total == 1
    assert (short["out_of_range"], long["out_of_range"]) == (
        {"send_delay": 1},
        {"latency": 1, "service_time": 1},
    )


def test_many_results_through_recorder_and_collector(tmp_path: Path) -> None:
    """Percentiles from windows of four workers, merged, against the exact ones."""
    services = np.random.default_rng(3).lognormal(np.log(20e6), 0.5, 40_000).astype(np.int64)
    runner = FakeRunner()
    collector = Collector(runner, lambda worker: worker)  # type: ignore[arg-type]
    ledger = LedgerWriter(tmp_path / "ledger.jsonl")
    ledger.write({"kind": "header", "version": 1})
    collector.begin_study(ledger)
    collector.begin_phase("a/b4/c1", 1, "measure")
    for worker in range(4):
        recorder = Recorder()
        start = time.perf_counter_ns()
        for service in services[worker::4]:
            recorder.add(result(start, int(service)))
            start += int(service)
        runner.deliver(RECORDS, {"records": recorder.take_all(), "raw": recorder.take_raw()}, f"w{worker}")
    ledger.close()
    assert (collector.ok, collector.failed) == (40_000, 0)
    assert (collector.requests, collector.failures) == (40_000, 0)
    windows = read_ledger(tmp_path / "ledger.jsonl").of_kind("window")
    assert sum(window["ok"] for window in windows) == 40_000
    assert {window["worker"] for window in windows} == {"w0", "w1", "w2", "w3"}
    merged = codec.merged(window["histograms"]["service_time"] for window in windows if window["ok"])
    wanted = [50, 95, 99, 99.9]
    exact = np.sort(services)[[round(40_000 * percent / 100) - 1 for percent in wanted]]
    assert buckets.percentiles_ns(merged, wanted) == pytest.approx(list(exact), rel=1e-3)


def test_what_idle_workers_tell_of_the_study_before_is_left_out(tmp_path: Path) -> None:
    runner = FakeRunner()
    collector = Collector(runner, str)  # type: ignore[arg-type]
    recorder, seen = Recorder(), list[dict[str, Any]]()
    collector.listeners.append(seen.append)
    for study, cell in enumerate(("a/b4/c1", "b/b4/c1")):
        ledger = LedgerWriter(tmp_path / f"{study}.jsonl")
        collector.begin_study(ledger, 9)
        recorder.add(result(time.perf_counter_ns(), 10))  # of a/b4/c1
        records, raw = recorder.take_all(), recorder.take_raw()
        runner.deliver(RECORDS, {"records": records, "raw": raw}, "w0")
        assert seen == []
        collector.begin_phase(cell, 1, "measure")
        runner.deliver(RECORDS, {"records": records, "raw": raw}, "w0")
        assert len(seen) == (1 if study == 0 else 0)
        seen.clear()
        ledger.close()


def test_between_two_runs_what_workers_do_is_of_none_and_late_windows_still_count() -> None:
    runner, seen = FakeRunner(), list[dict[str, Any]]()
    collector = Collector(runner, str)  # type: ignore[arg-type]
    collector.begin_phase("a/b4/c1", 1, "measure")
    recorder = Recorder()
    recorder.add(result(time.perf_counter_ns(), 10))
    (late,) = recorder.take_all()
    tag = {"cell": late["cell"], "repeat": late["repeat"]}
    idle = {"kind": "health", **tag, "phase": "drain", "second": late["second"], "lag": "", "cpu_pct": 1.0}
    collector.listeners.append(seen.append)
    runner.deliver(RECORDS, {"records": [dict(idle)], "raw": []}, "w0")
    collector.write({"kind": "run", **tag, "event": "end", "status": "done", "note": ""})
    runner.deliver(RECORDS, {"records": [dict(idle), late], "raw": []}, "w0")
    assert [record["kind"] for record in seen] == ["health", "run", "window"]


def test_progress_of_another_phase_is_not_counted() -> None:
    runner = FakeRunner()
    collector = Collector(runner, lambda worker: worker)  # type: ignore[arg-type]
    collector.begin_phase("a", 1, "measure")
    told = {"cell": "a", "repeat": 1, "phase": "measure", "ok": 3, "failed": 1}
    runner.deliver(PROGRESS, told, "w0")
    runner.deliver(PROGRESS, {**told, "ok": 5}, "w0")
    runner.deliver(PROGRESS, {**told, "ok": 2}, "w1")
    runner.deliver(PROGRESS, {**told, "phase": "warm-up", "ok": 100}, "w1")
    assert (collector.ok, collector.failed) == (7, 2)


def spread(records: list[dict[str, Any]]) -> list[tuple[int, int, int]]:
    """Of each window its second, counted from the first, its images, and the thousandths spread to it."""
    return [(one["second"] - 1_000, one["images"], one["spread_milli_images"]) for one in records]


def test_images_are_spread_over_the_seconds_of_their_request(recorder: Recorder) -> None:
    recorder.add(result(SECOND * 3 // 4, SECOND * 3 // 2))
    recorder.add(result(SECOND * 5 // 2, SECOND // 10))
    records = recorder.take_all()
    # of 1.5 s a quarter in the first second, a whole one, a quarter: 4 images × 1/6, 4/6, 1/6
    assert spread(records) == [(0, 0, 666), (1, 0, 2_667), (2, 8, 4_667)]
    assert (records[0]["ok"], records[0]["histograms"], records[0]["first_start_ns"]) == (0, {}, 0)
    check_record(records[0])


def test_a_share_that_comes_late_to_a_second_is_shipped_once_a_second(recorder: Recorder) -> None:
    recorder.add(result(SECOND // 2, SECOND // 4))
    assert spread(recorder.take_closed(SECOND)) == [(0, 4, 4_000)]
    for end_ns in (SECOND * 5 // 4, SECOND * 3 // 2, SECOND * 7 // 4):
        recorder.add(result(SECOND // 2, end_ns - SECOND // 2))
        assert recorder.take_closed(end_ns) == []
    assert spread(recorder.take_closed(2 * SECOND)) == [(0, 0, 2_666 + 2_000 + 1_600), (1, 12, 5_734)]
    assert recorder.take_all() == []


def test_spread_images_add_up_whatever_the_lengths_and_the_shipping(recorder: Recorder) -> None:
    generator, shipped = np.random.default_rng(7), list[dict[str, Any]]()
    ends = np.sort(generator.integers(0, 30 * SECOND, 400))
    for end_ns in ends.tolist():
        service_ns = int(generator.integers(0, 90 * SECOND))
        recorder.add(result(end_ns - service_ns, service_ns))
        shipped += recorder.take_closed(end_ns)
    shipped += recorder.take_all()
    assert sum(one["spread_milli_images"] for one in shipped) == 1_000 * 4 * 400
    assert sum(one["images"] for one in shipped) == 4 * 400


@pytest.mark.parametrize("seconds", [61, 100, 300])
def test_of_a_longer_request_the_earlier_share_is_spread_over_the_seconds_that_are_told(
    recorder: Recorder, seconds: int
) -> None:
    recorder.add(result(0, seconds * SECOND - 1))
    found = spread(recorder.take_all())
    assert [second for second, _, _ in found] == list(range(seconds - SPREAD_S, seconds))
    # no wave: 4 images in 60 seconds, 66.67 thousandths each
    assert {milli for _, _, milli in found} == {66, 67}
    assert sum(milli for _, _, milli in found) == 4_000


def test_failures_have_no_images_to_spread(recorder: Recorder) -> None:
    recorder.add(result(0, 3 * SECOND, error=RequestError(ErrorKind.TIMEOUT, "late")))
    recorder.add(result(0, 3 * SECOND, abandoned=True))
    assert spread(recorder.take_all()) == [(3, 0, 0)]
