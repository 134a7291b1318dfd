"""Studies whose load has a course: where options say of which, and where they have no say."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from locustfiles.step6b import Step6b
from locustfiles.step7 import Step7
from locustfiles.step8 import Step8
from locustfiles.study import Study
from reports.ledger.axes import ranks
from reports.ledger.records import MOST_RUNS
from swarm.errors import UsageError
from swarm.launcher.launch_info import LaunchInfo
from swarm.output.gate import Gate
from swarm.plan.cell import Cell
from swarm.plan.matrix import Size, every_batch_and_level, order
from swarm.plan.rate_search import MOST_STEPS, START_PER_S
from swarm.plan.schedule import Schedule
from swarm.study.build_schedule import check_cells, schedule_of, varies_servers
from swarm.study.shape import StudyShape
from tests.swarm.output.test_results_folder import options
from users.endpoint import Endpoint

HTTP = Endpoint("pytorch-http", "pytorch", "http", "jpeg", "h:3")
NO_GATE = Gate(print)


class Asked:
    """A gate that wants repeats up to the third, and what it and others were asked."""

    def __init__(self) -> None:
        self.told: list[object] = []

    def check(self, cells: Sequence[Cell], endpoints: Sequence[Endpoint], runs: int) -> None:
        self.told.append((len(cells), list(endpoints), runs))

    def wants(self, number: int, left: int) -> bool:
        return number <= 3

    def schedule(self, *given: str, **more: object) -> tuple[Schedule, Size]:
        made = replace(options(*given), **more)  # type: ignore[arg-type]
        servers = lambda cells: self.told.append([cell.name for cell in cells])  # noqa: E731
        return schedule_of(Study(), [HTTP], made, LaunchInfo(), self, 2, servers)  # type: ignore[arg-type]


def cells(study: StudyShape, *given: str) -> Sequence[Cell]:
    schedule, _ = schedule_of(study, [HTTP], options(*given), LaunchInfo(), NO_GATE)
    return [run.cell for run in schedule.planned]


def test_options_say_how_much_how_often_and_in_which_order() -> None:
    asked = Asked()
    amounts = "--iterations 7 --seconds 4 --warm-up 2 --repeats 2 --batches 2 --levels 1,3 --seed 6"
    schedule, size = asked.schedule(*amounts.split())
    assert size == Size((2,), (1, 3), 7, 4, 2, 2)
    assert asked.told == [["pytorch-http/b2/c1", "pytorch-http/b2/c3"], (2, [HTTP], 4)]
    planned = [(run.cell.name, run.repeat, run.cell.requests, run.cell.seconds) for run in schedule.planned]
    expected = order(every_batch_and_level([HTTP], size), 2, seed=6)
    assert planned == [(run.cell.name, run.repeat, run.cell.requests, 4) for run in expected]
    assert {requests for _, _, requests, _ in planned} == {7, 15}


def test_repeats_are_added_while_the_gate_wants_them_and_there_may_be_more() -> None:
    for most, repeats in ((5, 3), (2, 2), (0, 1)):
        asked = Asked()
        schedule, _ = asked.schedule("--repeats", "1", "--levels", "1", repeat_until_decided=most)
        assert asked.told[-1] == (1, [HTTP], most or 1)
        assert sum(len(schedule.next([])) for _ in range(9)) == repeats
    said = "--repeat-until-decided 2: every cell is run 3 times anyway; it must be at least 3"
    with pytest.raises(UsageError, match=said):
        Asked().schedule("--repeats", "3", repeat_until_decided=2)


def test_a_study_has_no_more_runs_than_can_be_told_apart() -> None:
    levels = ",".join(map(str, range(1, 1 + MOST_RUNS // 1_000)))
    Asked().schedule("--levels", levels, "--repeats", "1000")
    with pytest.raises(UsageError, match=f"--cells: .* cells, 1001 times each, are .*{MOST_RUNS:,} at most"):
        Asked().schedule("--levels", levels, "--repeats", "1001")
    rates = ",".join(map(str, range(1, 2 + MOST_RUNS // MOST_STEPS)))
    with pytest.raises(UsageError, match=f"--cells: .* cells, {MOST_STEPS} times each"):
        Asked().schedule("--find-rate", "p99<=100", "--batches", rates)


@pytest.mark.parametrize(
    ("given", "varies"),
    [
        *(("", False), ("--queue-delay-us 0", True), ("--instances 2", True)),
        *(("--instances 2 --cells onnx-http/*", True), ("--instances 2 --cells pytorch-http/*", False)),
    ],
)
def test_whether_servers_are_set_otherwise_is_known_before_there_are_any(given: str, varies: bool) -> None:
    made = options(*given.split())
    assert varies_servers(Study(), [ONNX, HTTP], made) is varies
    assert varies_servers(Study(), [ONNX.floor(), HTTP], made) is False


def test_step_8_has_a_peak_and_a_course_of_its_own() -> None:
    (cell,) = cells(Step8())
    assert (cell.name, cell.profile) == ("pytorch-http/b1/r4/profile", "ramp:20,hold:40,cool:20")
    assert (cell.arrivals, cell.max_in_flight, cell.channels) == ("constant", 100, "per-request")
    (cell,) = cells(Step8(), "--study", "full")
    assert (cell.level, cell.seconds) == (20, 600)


def test_options_say_the_peaks_the_course_and_the_arrivals() -> None:
    load = "--rates 8,16 --load-profile ramp:5,hold:9 --arrivals poisson --max-in-flight 7"
    found = cells(Step8(), *load.split())
    assert sorted(cell.level for cell in found) == [8, 16]
    assert {(cell.profile, cell.arrivals, cell.max_in_flight) for cell in found} == {
        ("ramp:5,hold:9", "poisson", 7)
    }
    assert {cell.channels for cell in found} == {"per-request"}


def test_the_header_states_the_course_that_is_run() -> None:
    given = options()
    _, size = schedule_of(Step8(), [HTTP], given, LaunchInfo(), NO_GATE)
    assert given.resolved(size).to_record()["load_profile"] == "ramp:20,hold:40,cool:20"


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (("--seconds", "5"), "--seconds: the load profile sets how long to measure; leave it out"),
        (("--channels", "shared"), "--channels: this study sets it itself; leave it out"),
        (("--rates", "0.1"), "--rates 0.1: with a load profile, the rate must be at least 0.5 requests/s"),
    ],
)
def test_what_a_course_settles(given: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        cells(Step8(), *given)
    assert str(caught.value) == sentence


def test_a_search_is_at_rates_that_stay() -> None:
    schedule, _ = schedule_of(Step8(), [HTTP], options("--find-rate", "p95<=100"), LaunchInfo(), NO_GATE)
    (run,) = schedule.next([])
    assert (run.cell.profile, run.cell.variant) == ("", "")
    assert (run.cell.level, run.cell.requests, run.cell.batch) == (START_PER_S, 200, 1)
    given = ("--find-rate", "p99<=100", "--rates", "30", "--batches", "4")
    begun, _ = schedule_of(Step8(), [HTTP], options(*given), LaunchInfo(), NO_GATE)
    (run,) = begun.next([])
    assert (run.cell.level, run.cell.requests, run.cell.batch) == (30, 1_000, 4)


@pytest.mark.parametrize("asked", ["1", "499"])
def test_a_search_takes_enough_requests_for_its_percentile(asked: str) -> None:
    said = f"--iterations {asked}: p99 takes 500 results; give as many, or leave it out for 1,000"
    with pytest.raises(UsageError) as caught:
        cells(Step7(), "--find-rate", "p99<=100", "--iterations", asked)
    assert str(caught.value) == said
    found, _ = schedule_of(
        Step7(), [HTTP], options("--find-rate", "p99<=100", "--iterations", "500"), LaunchInfo(), NO_GATE
    )
    (run,) = found.next([])
    assert run.cell.requests == 500


def test_any_study_takes_a_course_with_rates() -> None:
    given = ("--repeats", "1", "--rates", "30", "--load-profile", "hold:5", "--channels", "per-request")
    (cell,) = cells(Step7(), *given)
    assert (cell.name, cell.seconds, cell.channels) == ("pytorch-http/b1/r30/profile", 5, "per-request")
    said = "--load-profile: give its peaks, too: --rates in requests/s, or --levels in users"
    with pytest.raises(UsageError, match=said):
        cells(Step7(), "--load-profile", "hold:5")


def test_without_rates_a_course_is_that_of_the_users() -> None:
    given = ("--repeats", "1", "--levels", "16,64", "--load-profile", "steps:4x5")
    found = sorted(cells(Step7(), *given, "--think", "exponential:0.5"), key=lambda cell: cell.level)
    assert [(cell.name, cell.load, cell.users, cell.seconds, cell.think) for cell in found] == [
        (f"pytorch-http/b1/c{users}/profile", "closed", users, 20, "exponential:0.5") for users in (16, 64)
    ]
    assert found[0].course is not None
    assert [stage.last for stage in found[0].course.stages] == [4, 8, 12, 16]
    assert names(Study(), *given[2:], "--batches", "2") == {
        "pytorch-http/b2/c16/profile", "pytorch-http/b2/c64/profile"
    }  # fmt: skip
    empty = "points:0=1,5=1,5=0,26=0"
    said = "--load-profile: at a peak of 16, it asks for less than one user for 21 s on end; let that be 20 s"
    with pytest.raises(UsageError, match=said):
        cells(Step7(), "--levels", "16", "--load-profile", empty)
    with pytest.raises(UsageError, match=r"at a peak of 16, it asks for less than 0.05 requests/s for 21 s"):
        cells(Step7(), "--rates", "16", "--load-profile", empty)


def test_think_times_are_an_axis_of_closed_load() -> None:
    found = cells(
        Step7(), "--repeats", "1", "--levels", "8", "--batches", "1", "--think", "0,0.5,exponential:0.5"
    )
    assert [cell.name for cell in sorted(found, key=ranks) if cell.level == 8] == [
        f"pytorch-http/b1/c8/think-{think}s" for think in ("0", "0.5", "exponential-0.5")
    ]
    with pytest.raises(UsageError, match="--think: applies to closed-loop load, and no cell uses one"):
        cells(Step7(), "--rates", "50", "--think", "1")


ONNX = Endpoint("onnx-http", "onnx", "http", "fp32", "h:1", "clip")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--instances", "2"), "--instances: applies to Triton's models, and no cell uses one"),
        (("--queue-delay-us", "0"), "--queue-delay-us: applies to Triton's models"),
    ],
)
def test_settings_that_no_server_would_take_are_refused(given: tuple[str, str], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        cells(Step7(), *given)


def test_a_floor_does_not_hide_that_a_study_settles_its_instances() -> None:
    asked = [ONNX, ONNX.floor()]
    with pytest.raises(UsageError, match="--instances: this study sets it itself"):
        schedule_of(Step6b(), asked, options("--instances", "2"), LaunchInfo(), NO_GATE)
    schedule, _ = schedule_of(Step6b(), asked, options("--queue-delay-us", "0"), LaunchInfo(), NO_GATE)
    found = {(run.cell.endpoint.name, run.cell.queue_delay_us) for run in schedule.planned}
    assert found == {("onnx-http", 0), ("onnx-http-floor", None)}


def test_arrivals_are_an_axis_of_open_load() -> None:
    given = ("--repeats", "1", "--rates", "50", "--arrivals", "constant,poisson", "--max-in-flight", "9")
    found = cells(Step7(), *given)
    assert sorted((cell.name, cell.arrivals, cell.max_in_flight) for cell in found) == [
        ("pytorch-http/b1/r50/constant", "constant", 9),
        ("pytorch-http/b1/r50/poisson", "poisson", 9),
    ]
    assert {(cell.arrivals, cell.max_in_flight) for cell in cells(Step7())} == {("", 0)}, "closed load"


def names(study: StudyShape, *given: str) -> set[str]:
    return {cell.name for cell in cells(study, *given)}


def test_batches_and_levels_of_options_are_those_of_any_study() -> None:
    given = ("--batches", "2,3", "--levels", "5")
    assert names(Step7(), *given) == {f"pytorch-http/{cell}" for cell in ("b2/c1", "b3/c1", "b1/c5")}
    assert names(Study(), *given) == {f"pytorch-http/{cell}" for cell in ("b2/c5", "b3/c5")}
    assert names(Study(), "--batches", "2,3", "--levels", "5", "--cells", "*/b2/*") == {"pytorch-http/b2/c5"}
    assert names(Study(), "--batches", "2,3", "--levels", "1") == {"pytorch-http/b2/c1", "pytorch-http/b3/c1"}


def test_open_load_is_of_the_batches_that_are_asked_for() -> None:
    assert names(Step7(), "--rates", "50") == {"pytorch-http/b1/r50"}
    both = {"pytorch-http/b1/r50", "pytorch-http/b8/r50"}
    assert names(Step7(), "--rates", "50", "--batches", "1,8") == both
    assert names(Study(), "--rates", "50", "--batches", "1,8") == both
    assert names(Study(), "--rates", "50") == {"pytorch-http/b1/r50"}


def test_batches_that_an_endpoint_does_not_take_are_said_once() -> None:
    said: list[str] = []
    small = replace(HTTP, contract=replace(HTTP.contract, max_batch=4))
    given = options("--batches", "1,8", "--levels", "1,2")
    schedule, _ = schedule_of(Study(), [small], given, LaunchInfo(), NO_GATE, say=said.append)
    assert {run.cell.batch for run in schedule.planned} == {1}
    assert said == ["pytorch-http takes at most 4 items per request: batch 8 is left out"]
    with pytest.raises(
        UsageError, match="--batches: pytorch-http takes at most 4 items per request; give --batches up to 4"
    ):
        schedule_of(Study(), [small], options("--batches", "8"), LaunchInfo(), NO_GATE)
    mixed = options("--batch-mix", "1:0.5,8:0.5")
    with pytest.raises(UsageError, match="--batch-mix: pytorch-http takes at most 4 items per request; give"):
        schedule_of(Study(), [small], mixed, LaunchInfo(), NO_GATE)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--cells", "nonsense"), "there are b1/c1, b8/c1, b1/c8 of pytorch-http"),
        (("--cells", "pytorch-http"), "closest: pytorch-http/*, "),
        (("--cells", "*/b16/c1"), "there are b1/c1, b8/c1"),
        (("--cells", "*/c1", "--rates", "5"), "there are b1/r5 of pytorch-http"),
    ],
)
def test_a_pattern_of_no_cell_is_refused_before_there_are_servers(given: tuple[str, ...], said: str) -> None:
    with pytest.raises(UsageError) as refused:
        check_cells(Step7(), [HTTP], options(*given))
    assert str(refused.value).startswith(f"--cells {given[1]}: matches no cell of this study; {said}")


def test_a_pattern_of_some_cell_is_taken_whatever_else_decides() -> None:
    check_cells(Step7(), [HTTP], options("--cells", "*/b16/c1", "--batches", "16"))
    check_cells(Step7(), [HTTP], options("--cells", "*/b1/c1/shared", "--channels", "shared,per-user"))
    check_cells(Step7(), [], options())
