"""Windows, progress and single Results reach the ledger; nothing is lost or counted twice on the way."""

import errno
import os
import time
from collections import Counter, defaultdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reports.histogram import buckets, codec
from swarm.distributed.collector import Collector
from swarm.distributed.protocol import PROGRESS, RECORDS
from swarm.distributed.recorder import Recorder
from tests.swarm.distributed.test_recorder import SECOND, result
from tests.swarm.fakes import FakeRunner
from users.errors import ErrorKind, RequestError
from users.load.pacing import LATE_NS
from users.result import Result

CELL = "a/b4/c1"
TAG = (CELL, 1)
KINDS = {"timeout": ErrorKind.TIMEOUT, "reset": ErrorKind.RESET, "rejected": ErrorKind.REJECTED}
RAW = 3
REQUESTS = st.lists(
    st.tuples(
        st.integers(0, 1),
        st.sampled_from(["warm-up", "measure", "drain"]),
        st.sampled_from(["ok", "abandoned", *KINDS]),
        st.booleans(),
        st.integers(1, SECOND),
        st.integers(0, SECOND) | st.integers(0, 3 * SECOND) | st.integers(59 * SECOND, 90 * SECOND),
        st.sampled_from(["", "closed", "all"]),
    ),
    min_size=6,
)
"""Worker, phase, how it ended, whether it began late, begin, duration, and what its worker ships after it."""


def collecting() -> tuple[FakeRunner, Collector, list[dict[str, Any]]]:
    """A runner, the collector of its messages, and the records that the collector has written."""
    runner, seen = FakeRunner(), list[dict[str, Any]]()
    collector = Collector(runner, lambda node: f"w{node[-1]}")  # type: ignore[arg-type]
    collector.listeners.append(seen.append)
    collector.begin_phase([TAG], "measure")
    return runner, collector, seen


def window(ok: int, repeat: int = 1, phase: str = "measure", **failures: int) -> dict[str, Any]:
    """What a worker sends of one second."""
    of_run = {"cell": CELL, "repeat": repeat, "phase": phase}
    timeouts = failures.get("timeout", 0)
    counts = dict.fromkeys(("latency", "service_time", "send_delay"), ok) | {"timeout": timeouts}
    counts["failed"] = sum(failures.values()) - timeouts
    histograms = {name: codec.encoded_ns([5] * times)[0] for name, times in counts.items() if times}
    made = {"kind": "window", "second": 7, "ok": ok, "failures": failures, "histograms": histograms}
    return {"records": [of_run | made], "raw": []}


def progress(ok: int, failed: int, phase: str = "measure") -> dict[str, Any]:
    return {"cell": CELL, "repeat": 1, "phase": phase, "ok": ok, "failed": failed}


class Study:
    """Two workers, what they record and ship, and what it should add up to."""

    def __init__(self) -> None:
        self.runner, self.collector, self.seen = collecting()
        self.recorders = [Recorder(), Recorder()]
        for recorder in self.recorders:
            recorder.raw_left = RAW
        self.told, self.rows = [(0, 0), (0, 0)], list[tuple[int, int]]()

    def ship(self, worker: int, records: list[dict[str, Any]]) -> None:
        """Progress, twice, since a message may come again, and some records."""
        tally, node = self.recorders[worker].tally(CELL, "measure"), f"host_{worker}"
        self.told[worker] = (tally.ok, tally.failed)
        for _ in range(2):
            self.runner.deliver(PROGRESS, progress(tally.ok, tally.failed), node)
        raw = self.recorders[worker].take_raw()
        self.rows += [(worker, user) for rows in raw for user in rows["columns"]["user"]]
        self.runner.deliver(RECORDS, {"records": records, "raw": raw}, node)
        both = tuple(map(sum, zip(*self.told, strict=True)))
        assert (self.collector.ok(TAG), self.collector.failed(TAG)) == both

    def sum(self, name: str) -> int:
        return sum(one[name] for one in self.seen)


@settings(max_examples=40, deadline=None)
@given(REQUESTS)
def test_each_request_is_counted_once_where_it_belongs_whatever_the_order(requests: list[Any]) -> None:
    study, expected, late_ones = Study(), Counter[Any](), Counter[str]()
    of_window = defaultdict[Any, list[Result]](list)
    for number, (worker, phase, end, late, start_ns, service_ns, ships) in enumerate(requests):
        error = RequestError(KINDS[end], "") if end in KINDS else None
        made = result(start_ns, service_ns, number, phase, error, end == "abandoned", LATE_NS + late)
        made = made._replace(server_ns={"compute": 5} if late else {})
        recorder = study.recorders[worker]
        recorder.add(made)
        window = (f"w{worker}", phase, recorder.second(made.end_ns))
        of_window[window].append(made)
        expected[*window, end] += 1
        late_ones[end] += late
        if ships:
            study.ship(worker, recorder.take_all() if ships == "all" else recorder.take_closed(made.end_ns))
    for worker, recorder in enumerate(study.recorders):
        study.ship(worker, recorder.take_all())
    counted, histograms = Counter[Any](), Counter[str]()
    for one in study.seen:
        kinds = {"ok": one["ok"], "abandoned": one["abandoned"], **one["failures"]}
        counted.update({(one["worker"], one["phase"], one["second"], kind): n for kind, n in kinds.items()})
        histograms.update({name: codec.decoded(text).total for name, text in one["histograms"].items()})
    assert counted == expected
    of_end, measured = Counter(end for *_, end in expected.elements()), Counter[str]()
    measured.update(end for _, phase, _, end in expected.elements() if phase == "measure")
    failed = sum(measured[kind] for kind in KINDS)
    assert (study.collector.requests, study.collector.failures) == (measured["ok"] + failed, failed)
    ok, others = of_end["ok"], of_end["reset"] + of_end["rejected"]
    of_success = dict.fromkeys(("latency", "service_time", "send_delay", "decode"), ok)
    assert histograms == Counter({**of_success, "timeout": of_end["timeout"], "failed": others})
    assert (study.sum("images"), study.sum("spread_milli_images")) == (4 * ok, 4_000 * ok)
    assert (study.sum("request_bytes"), study.sum("response_bytes")) == (100 * ok, 10 * ok)
    assert (study.sum("late"), study.sum("server_count")) == (late_ones.total(), late_ones["ok"])
    for worker in (0, 1):
        kept = [number for number, one in enumerate(requests) if one[:2] == (worker, "measure")]
        assert [user for of, user in study.rows if of == worker] == kept[:RAW]
    for window, ended in of_window.items():
        found = [one for one in study.seen if (one["worker"], one["phase"], one["second"]) == window]
        starts = [one["first_start_ns"] for one in found if one["first_start_ns"]]
        assert min(starts) == min(one.start_ns for one in ended)
        assert max(one["last_end_ns"] for one in found) == max(one.end_ns for one in ended)


def test_a_phase_counts_afresh_and_a_study_all_that_was_measured() -> None:
    runner, collector, _ = collecting()
    collector.begin_phase([TAG], "warm-up")
    runner.deliver(PROGRESS, progress(8, 2, "warm-up"))
    runner.deliver(PROGRESS, progress(100, 100, "measure"))
    runner.deliver(RECORDS, window(9, phase="warm-up", timeout=3))
    assert (collector.ok(TAG), collector.failed(TAG)) == (9, 3), "the windows have come later"
    for repeat in (1, 2):
        tag = (CELL, repeat)
        collector.begin_phase([tag], "measure")
        assert (collector.ok(tag), collector.failed(tag)) == (0, 0)
        runner.deliver(PROGRESS, progress(4, 2))
        runner.deliver(RECORDS, window(4, timeout=1, reset=1))
        runner.deliver(RECORDS, window(1, phase="drain", reset=1))
        own = (4, 2) if repeat == 1 else (0, 0)
        assert (collector.ok(tag), collector.failed(tag)) == own, "only its own"
    assert (collector.requests, collector.failures) == (12, 4)
    collector.begin_study(SimpleNamespace(write=id))  # type: ignore[arg-type]
    assert (collector.requests, collector.failures) == (0, 0)


def of_run(message: dict[str, Any], repeat: int) -> dict[str, Any]:
    """The same of the run of that number."""
    if "records" not in message:
        return message | {"repeat": repeat}
    return message | {"records": [record | {"repeat": repeat} for record in message["records"]]}


def test_runs_at_the_same_time_are_counted_apart() -> None:
    runner, collector, seen = collecting()
    other, ended = (CELL, 2), {"kind": "run", "event": "end", "status": "done", "note": "", "cell": CELL}
    collector.begin_phase([TAG, other], "measure")
    for worker in ("host_0", "host_1"):
        runner.deliver(PROGRESS, progress(4, 1), worker)
        runner.deliver(PROGRESS, of_run(progress(7, 0), 2), worker)
    counted = [(collector.ok(tag), collector.failed(tag)) for tag in (TAG, other)]
    assert counted == [(8, 2), (14, 0)]
    for worker in ("host_0", "host_1"):
        runner.deliver(RECORDS, window(5, timeout=1), worker)
        runner.deliver(RECORDS, window(9, repeat=2), worker)
        runner.deliver(RECORDS, window(1, repeat=2, phase="warm-up"), worker)
    counted = [(collector.ok(tag), collector.failed(tag)) for tag in (TAG, other)]
    assert counted == [(10, 2), (18, 0)]
    assert (collector.requests, collector.failures) == (30, 2)
    assert [(one["repeat"], one["worker"]) for one in seen if one["phase"] == "measure"] == [
        *((1, "w0"), (2, "w0"), (1, "w1"), (2, "w1")),
    ]
    collector.write(ended | {"repeat": 1})
    health = {"kind": "health", "cell": CELL, "phase": "drain", "second": 7, "lag": "", "cpu_pct": 1.0}
    runner.deliver(RECORDS, {"records": [health | {"repeat": repeat} for repeat in (1, 2)], "raw": []})
    assert [one["repeat"] for one in seen if one["kind"] == "health"] == [2], "the first is over"


def test_a_full_disk_is_told_at_the_end_though_later_there_is_room_and_events_go_on() -> None:
    runner, collector, seen = collecting()

    def full(record: dict[str, Any]) -> None:
        if not record["failures"]:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    collector.begin_study(SimpleNamespace(write=full))  # type: ignore[arg-type]
    collector.begin_phase([TAG], "measure")
    runner.deliver(RECORDS, window(1))
    runner.deliver(RECORDS, window(0, reset=1))
    said = "the ledger cannot be written (No space left on device); free the disk or name another folder"
    assert (collector.fault, len(seen), collector.ok(TAG), collector.failed(TAG)) == (said, 2, 1, 1)
    collector.begin_study(SimpleNamespace(write=id))  # type: ignore[arg-type]
    assert collector.fault == ""


def test_it_is_known_when_each_worker_was_heard_last() -> None:
    runner, collector, _ = collecting()
    for _ in range(2):
        before = time.monotonic()
        runner.deliver(RECORDS, {"records": [], "raw": []}, "host_1")
        assert before <= collector.heard["host_1"] <= time.monotonic()


def test_percentiles_of_all_workers_together_are_the_exact_ones() -> None:
    services = np.random.default_rng(3).lognormal(np.log(20e6), 0.5, 12_000).astype(np.int64)
    runner, _, seen = collecting()
    for worker in range(4):
        recorder = Recorder()
        for service_ns in services[worker::4].tolist():
            recorder.add(result(0, service_ns))
        runner.deliver(RECORDS, {"records": recorder.take_all(), "raw": []}, f"w{worker}")
    assert {one["worker"] for one in seen} == {"w0", "w1", "w2", "w3"}
    merged = codec.merged(one["histograms"]["service_time"] for one in seen if one["ok"])
    wanted = [50, 95, 99, 99.9]
    exact = np.sort(services)[[round(12_000 * percent / 100) - 1 for percent in wanted]]
    assert buckets.percentiles_ns(merged, wanted) == pytest.approx(list(exact), rel=1e-3)


def test_requests_with_a_traceparent_are_told_by_worker_and_those_of_no_run_are_not() -> None:
    runner, collector, _ = collecting()
    recorder, told = Recorder(), list[Any]()
    recorder.traced_per_s = 9
    collector.on_traced = lambda *heard: told.append(heard)
    recorder.add(result(time.perf_counter_ns(), 10)._replace(trace_id="0af7651916cd43dd8448eb211c80319c"))
    message = {"records": [], "raw": [], **recorder.take_traced(), "untold": 4}
    runner.deliver(RECORDS, message, "w7")
    (rows,) = message["traced"]
    runner.deliver(RECORDS, {**message, "traced": [{**rows, "repeat": 9}]}, "w7")
    assert [(worker, len(rows), untold) for worker, rows, untold in told] == [("w7", 1, 4), ("w7", 0, 4)]
    runner.deliver(RECORDS, {"records": [], "raw": []}, "w7")
    assert len(told) == 2


def test_what_is_of_no_run_is_left_out_and_late_windows_still_count(tmp_path: Path) -> None:
    runner, collector, seen = collecting()
    recorder, kept = Recorder(), list[dict[str, Any]]()
    recorder.raw_left = 9
    recorder.add(result(time.perf_counter_ns(), 10))
    windows, raw = recorder.take_all(), recorder.take_raw()
    of_run = {"cell": CELL, "repeat": 1}
    health = {"kind": "health", **of_run, "phase": "drain", "second": 7, "lag": "", "cpu_pct": 1.0}

    def told() -> list[str]:
        before = len(seen)
        runner.deliver(RECORDS, {"records": [dict(health), *windows], "raw": raw})
        collector.raw.write(tmp_path)
        return [record["kind"] for record in seen[before:]]

    collector.begin_study(SimpleNamespace(write=kept.append), 9)  # type: ignore[arg-type]
    assert told() == [], "it is of the study before"
    collector.begin_phase([("b/b4/c1", 1)], "measure")
    assert (told(), list(tmp_path.iterdir())) == ([], [])
    collector.begin_phase([TAG], "measure")
    assert told() == ["health", "window"]
    assert len(list(tmp_path.iterdir())) == 1
    collector.write({"kind": "run", **of_run, "event": "end", "status": "done", "note": ""})
    assert told() == ["window"], "between two runs workers go on to report health"
    assert kept == seen
    collector.end_study()
    told()
    assert len(kept) == len(seen) - 1
