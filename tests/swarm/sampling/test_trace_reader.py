"""Reading trace files: each once, whole, and never longer than the patience lasts."""

from pathlib import Path
from typing import Any

import pytest

from swarm.distributed.collector import Collector
from swarm.distributed.raw_results import packed
from swarm.plan.cell import Cell, PlannedRun
from swarm.sampling.triton_trace import PAUSE_S, TRIES, TraceReader
from swarm.targets.embedded import EmbeddedServers
from tests.swarm.fakes import FakeClock, FakeRunner
from tests.swarm.sampling.test_triton_trace import GRPC, HTTP, ONE, TWO
from users.endpoint import Endpoint
from users.errors import ErrorKind, RequestError
from users.result import Result

EMULATED = Endpoint("emulated-http", "emulated", "http", "fp32", "h:1", "emulated")
PYTORCH = Endpoint("pytorch-http", "pytorch", "http", "jpeg", "h:5")


def result(run: PlannedRun, request_id: str, wait_ns: int = 70_100_000, **more: Any) -> Result:
    times = {"intended_ns": 1, "start_ns": 1, "end_ns": wait_ns + 1}
    return Result(
        run.cell.name, run.repeat, "measure", 0, 1, **times, request_bytes=9,
        phases_ns={"wait": wait_ns}, request_id=request_id, **more,
    )  # fmt: skip


class Bench:
    """A reader of the traces in `folder`, for a collector that keeps 10 requests."""

    def __init__(self, folder: Path) -> None:
        self.trace = folder / "emulated.json"
        self.clock = FakeClock()
        self.told: list[str] = []
        endpoints = (EMULATED, EMULATED.floor(), PYTORCH)
        self.runs = {e.name: PlannedRun(Cell(e, 1, 1, 1, 0), 1) for e in endpoints}
        self.collector = Collector(FakeRunner(), str)  # type: ignore[arg-type]
        self.collector.begin_study(None, 10)  # type: ignore[arg-type]
        self.collector.begin_phase([run.tag for run in self.runs.values()], "measure")
        server = {"http": "h:1", "grpc": "h:2", "trace": str(self.trace)}
        ready = {"endpoints": {"emulated": server, "pytorch": {"url": "http://h:5"}}}
        self.reader = TraceReader(ready, self.collector, self.told.append, self.clock.sleep)

    def file(self, number: int) -> Path:
        return self.trace.with_name(f"{self.trace.name}.{number}")

    def keep(self, *results: Result) -> None:
        for rows in packed(results, 0):
            self.collector.raw.add("w0", rows)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_every_file_is_read_once_and_removed(bench: Bench) -> None:
    run = bench.runs["emulated-http"]
    bench.keep(result(run, ONE), result(run, TWO))
    bench.file(0).write_text(HTTP)
    bench.file(11).write_text(GRPC)
    found = bench.reader.joined(run)
    assert found is not None
    assert (found.requests, found.joined, found.gap) == (2, 2, "")
    assert bench.told == ["h:1"]
    assert list(bench.trace.parent.iterdir()) == []
    assert bench.clock.now == 0


def test_a_file_that_is_still_being_written_is_waited_for(bench: Bench) -> None:
    run = bench.runs["emulated-http"]
    bench.keep(result(run, ONE))
    bench.file(0).write_text(HTTP[:300])

    def write_the_rest() -> None:
        if bench.clock.now > PAUSE_S:
            bench.file(0).write_text(HTTP)

    bench.clock.on_tick = write_the_rest
    found = bench.reader.joined(run)
    assert found is not None
    assert (found.joined, found.gap) == (1, "")
    assert bench.clock.now == pytest.approx(2 * PAUSE_S)


def test_a_broken_file_is_a_gap_of_this_run_and_of_no_other(bench: Bench) -> None:
    run, floor = bench.runs["emulated-http"], bench.runs["emulated-http-floor"]
    bench.keep(result(run, ONE), result(run, TWO), result(floor, "b" * 16))
    bench.file(0).write_text(HTTP)
    bench.file(1).write_text(GRPC[:300])
    found = bench.reader.joined(run)
    assert found is not None
    assert found.joined == 1
    assert found.gap == "1 of 2 requests were found in Triton's trace (emulated.json.1 cannot be read)"
    assert bench.clock.now == pytest.approx(TRIES * PAUSE_S)
    other = bench.reader.joined(floor)
    assert other is not None
    assert other.gap == "0 of 1 requests were found in Triton's trace"


def test_a_server_that_does_not_write_is_named(bench: Bench) -> None:
    def refuse(address: str) -> None:
        raise RequestError(ErrorKind.REFUSED, "")

    run = bench.runs["emulated-http"]
    bench.keep(result(run, ONE))
    bench.reader._write_out = refuse
    found = bench.reader.joined(run)
    assert found is not None
    assert found.gap.endswith("(Triton did not write its last file: refused)")


def test_failures_other_runs_and_requests_without_an_id_are_not_looked_for(bench: Bench) -> None:
    run, floor = bench.runs["emulated-http"], bench.runs["emulated-http-floor"]
    late = result(run, "c" * 16, error=RequestError(ErrorKind.TIMEOUT, "late"))
    abandoned = result(run, "d" * 16, abandoned=True)
    bench.keep(result(run, ONE), late, abandoned, result(run, ""), result(floor, "e" * 16))
    assert bench.collector.raw.waits_ns(run.cell.name, 1) == {ONE: 70_100_000}
    assert bench.collector.raw.waits_ns(run.cell.name, 2) == {}


def test_a_server_that_does_not_trace_has_no_trace(bench: Bench) -> None:
    assert bench.reader.joined(bench.runs["pytorch-http"]) is None
    assert TraceReader({}, bench.collector).joined(bench.runs["emulated-http"]) is None
    assert bench.told == []


@pytest.mark.parametrize(("traced", "said"), [(False, False), (True, True)])
def test_a_server_that_died_while_it_traced(
    traced: bool, said: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    servers = EmbeddedServers(print)
    monkeypatch.setattr(servers, "_traces", Path("traces") if traced else None)
    servers._hear({"event": "died", "server": "onnx", "exit": -11})
    assert servers.fault("onnx").startswith("the embedded onnx server died; see the end of its log above")
    assert servers.fault("onnx").endswith("or leave --trace out") is said
    assert servers.fault("openvino") == ""
