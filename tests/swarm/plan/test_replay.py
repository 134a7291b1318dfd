"""Cells that replay a trace: which endpoint has which, what the options refuse, what workers are told."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from locustfiles.step8 import Step8
from locustfiles.study import Study
from reports.ledger.records import check_planned
from swarm.distributed.worker_cell import traffic_of
from swarm.errors import UsageError
from swarm.launcher.launch_info import LaunchInfo
from swarm.output.gate import Gate
from swarm.plan.cell import Cell, PlannedRun
from swarm.plan.replay import name_of, remarks, shares
from swarm.study.build_schedule import schedule_of
from swarm.study.conductor import CLOCKS_S, Conductor, _measured
from swarm.study.run_phases import orders_of
from swarm.traces.trace import ArrivalTrace, TraceRow, read_trace
from tests.swarm.output.test_results_folder import options
from users.endpoint import Endpoint
from users.load.replay import Replay

HTTP = Endpoint("onnx-http", "onnx", "http", "fp32", "h:1", "clip")
GRPC = Endpoint("onnx-grpc", "onnx", "grpc", "fp32", "h:2", "clip")
MIXED = "time,items\n" + "".join(f"{at / 2},{items}\n" for at, items in enumerate([1, 4] * 4 + [16]))
NAMED = "time,endpoint\n0,onnx-http\n1,onnx-grpc\n2,onnx-http\n3,other\n4,onnx-http\n"


def cells(text: str, *given: str, endpoints: Sequence[Endpoint] = (HTTP, GRPC)) -> list[Cell]:
    Path("burst.csv").write_text(text)
    schedule, size = schedule_of(
        Step8(),
        endpoints,
        options("--replay", "burst.csv", "--repeats", "1", *given),
        LaunchInfo(),
        Gate(print),
    )
    assert size.profile == ""
    return sorted((run.cell for run in schedule.planned), key=lambda cell: cell.name)


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_each_endpoint_replays_all_of_a_trace_that_names_none() -> None:
    grpc, http = cells(MIXED)
    assert [cell.name for cell in (grpc, http)] == [
        f"onnx-{wire}/mix/r2/replay-burst" for wire in ("grpc", "http")
    ]
    assert (http.load, http.arrivals, http.level, http.batch, http.requests) == ("open", "trace", 2, 16, 9)
    assert (http.seconds, http.fixed_s, http.quiet_s) == (4.5, 4.5, 0.5)
    assert (http.replay, http.batch_mix) == ("burst", "1:0.445,4:0.444,16:0.111")
    record = PlannedRun(http, 1).to_record()
    check_planned(record)
    assert record["asked"] == {"width_s": 1, "requests": [2, 2, 2, 2, 1], "seconds": 4.5}


def test_at_a_speed_a_trace_is_as_much_shorter() -> None:
    _, http = cells(MIXED, "--replay-speed", "2")
    assert (http.name, http.replay) == ("onnx-http/mix/r4/replay-burst-x2", "burst-x2")
    assert (http.seconds, http.quiet_s, http.requests) == (2.25, 0.25, 9)
    assert http.trace is not None
    assert list(http.trace.offsets_ns())[:3] == [0, 250_000_000, 500_000_000]


def test_an_endpoint_that_is_named_replays_its_own_rows_and_so_does_its_floor() -> None:
    grpc, floor, http = cells(NAMED, endpoints=[HTTP, GRPC, HTTP.floor()])
    assert [(cell.endpoint.name, cell.requests, cell.batch_mix) for cell in (grpc, floor, http)] == [
        *(("onnx-grpc", 1, ""), ("onnx-http-floor", 3, ""), ("onnx-http", 3, "")),
    ]
    assert (http.name, http.seconds, http.level) == ("onnx-http/b1/r0.6/replay-burst", 5, 0.6)
    assert list(remarks([HTTP, GRPC], read_trace("burst.csv"), "burst.csv")) == [
        "--replay burst.csv: 5 requests in 5 s, 1.00/s on average, at most 1 in a second",
        "--replay burst.csv: times are in s, exact to 1 s, counted from the first row at 0 s",
        "--replay burst.csv: 1 row of other left out: no such endpoint here",
    ]


@pytest.mark.parametrize(
    ("path", "speed", "name"),
    [
        ("/a/day 1.csv", 1, "day-1"),
        ("a.b.jsonl", 1, "a.b"),
        ("é.csv", 0.5, "trace-x0.5"),
        ("x" * 60 + ".csv", 1, "x" * 40),
    ],
)
def test_what_a_trace_is_called(path: str, speed: float, name: str) -> None:
    assert name_of(path, speed) == name


def test_shares_are_thousandths_that_add_up() -> None:
    own = ArrivalTrace.of(
        TraceRow(at / 10, 1 + (at % 3) + 60 * (at == 5)) for at in range(6_000)
    ).of_endpoint("")
    assert own is not None
    assert shares(own) == "1:0.333,2:0.333,3:0.333,63:0.001"


@pytest.mark.parametrize(
    "given",
    [
        *("--rates 5", "--find-rate p99<=9", "--load-profile hold:5"),
        *("--arrivals poisson", "--batches 1", "--batch-mix 1:0.5,4:0.5"),
        *("--picture-mix 224:0.5,512:0.5", "--levels 4", "--seconds 5", "--iterations 5"),
    ],
)
def test_what_the_trace_says_no_option_says(given: str) -> None:
    with pytest.raises(UsageError, match="; leave out --") as refused:
        cells(MIXED, *given.split())
    flag = given.split()[0]
    assert str(refused.value) == f"--replay: the trace says what is sent, and when; leave out {flag}"


@pytest.mark.parametrize(
    ("text", "given", "sentence"),
    [
        (NAMED.replace("x-", "y-"), "", ": names onny-http, onny-grpc, other, and this study has onnx-http"),
        ("time,items\n0,0\n", "", "burst.csv: line 2: items is '0'; give a whole number from 1"),
        (MIXED, "--replay no.csv", "no.csv: cannot be read (No such file or directory); name"),
        (MIXED, "--replay-speed 0", "--replay-speed 0: must be 0.001 to 1,000"),
        (MIXED, "--think 1", "--think: applies to closed-loop load, and no cell uses one"),
    ],
)  # fmt: skip
def test_traces_that_cannot_be_replayed(text: str, given: str, sentence: str) -> None:
    with pytest.raises(UsageError) as refused:
        cells(text, *given.split())
    assert sentence in str(refused.value)


def test_a_speed_needs_a_trace_and_a_batch_an_endpoint_that_takes_it() -> None:
    with pytest.raises(UsageError, match="--replay-speed: applies only to a trace; also give --replay"):
        options("--replay-speed", "2")
    small = replace(HTTP, contract=replace(HTTP.contract, max_batch=8))
    said = "has requests of 16 items, and onnx-http takes at most 8; leave it out by --endpoints, or give"
    with pytest.raises(UsageError, match=said):
        cells(MIXED, endpoints=[small])


def test_workers_get_the_trace_and_measure_as_long_as_it_is() -> None:
    _, http = cells(MIXED)
    run = PlannedRun(http, 1)
    task = Conductor._task(SimpleNamespace(_deps=SimpleNamespace(addresses=lambda cell: {})), run)  # type: ignore[arg-type]
    made = traffic_of(task)
    assert isinstance(made, Replay)
    assert [made.at(number) for number in (0, 1, 8)] == [("b1", 0), ("b4", 1), ("b16", 8)]
    assert list(made.offsets_ns())[-1] == 4_000_000_000
    orders = {phase: orders_of(run, phase, 3, [run]) for phase in ("warm-up", "measure")}
    assert [(one["arrivals"], one["rate"]) for one in orders.values()] == [("trace", 2), ("trace", 2)]
    assert not _measured(run, 9, 4.5)
    assert _measured(run, 0, 4.5 + CLOCKS_S)


def test_a_slow_trace_is_warmed_up_faster() -> None:
    _, http = cells("time\n0\n20\n")
    assert http.level == 0.05
    assert orders_of(PlannedRun(http, 1), "warm-up", 0, [PlannedRun(http, 1)])["rate"] == 1


def test_other_studies_replay_too() -> None:
    Path("burst.csv").write_text(MIXED)
    given = options("--replay", "burst.csv", "--max-in-flight", "7", "--channels", "shared,per-user")
    schedule, _ = schedule_of(Study(), [HTTP], given, LaunchInfo(), Gate(print))
    assert {(run.cell.name, run.cell.users) for run in schedule.planned} == {
        (f"onnx-http/mix/r2/replay-burst/{channels}", 7) for channels in ("shared", "per-user")
    }
