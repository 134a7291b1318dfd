"""The arms of the study of contention."""

import pytest

from locustfiles.step7_contention import Step7Contention
from swarm.errors import UsageError
from swarm.launcher.launch_info import LaunchInfo
from swarm.output.gate import Gate
from swarm.plan.matrix import Size
from swarm.plan.sweep import Topology
from swarm.study.build_schedule import schedule_of
from swarm.study.shape import StudyShape
from tests.swarm.output.test_results_folder import options
from users.endpoint import Endpoint

HTTP = Endpoint("onnx-http", "onnx", "http", "fp32", "h:1", "m")
GRPC = Endpoint("onnx-grpc", "onnx", "grpc", "fp32", "h:2", "m")
JPEG = Endpoint("pytorch-http", "pytorch", "http", "jpeg", "h:3")
NO_GATE = Gate(print)
contention = Step7Contention().cells
SIZE = Size(batches=(1,), levels=(16,), iterations=30, seconds=15, repeats=3)


class Study(StudyShape):
    name, title, sizes, abstract = "s", "S", {"quick": SIZE}, True

    def cells(self, endpoints, size):  # type: ignore[no-untyped-def]
        return contention(endpoints, size)


def test_every_arm_once_for_a_server_that_speaks_both() -> None:
    cells = contention([JPEG, HTTP, GRPC, HTTP.floor(), GRPC.floor()], SIZE)
    assert [cell.name for cell in cells] == [
        "onnx-http/b1/c16/per-user", "onnx-grpc/b1/c16/shared",
        "onnx-http/b1/c16/shared", "onnx-grpc/b1/c16/per-user",
        "onnx-grpc/b1/c16/pool:4", "onnx-grpc/b1/c16/shared/4w", "onnx-grpc/b1/c16/shared/bbr",
        "onnx-grpc/b1/c16/shared/library", "onnx-grpc/b1/c16/per-user/library",
        "onnx-grpc/b1/c16/same-args/library",
    ]  # fmt: skip
    assert [cell.topology.workers for cell in cells] == [1, 1, 1, 1, 1, 4, 1, 1, 1, 1]
    assert [cell.client for cell in cells] == [*["prepared"] * 7, *["library"] * 3]


def test_grpcio_alone_joins_channels_of_equal_arguments() -> None:
    """So that they are never sent by our own wire, where they would be connections of their own."""
    cells = contention([HTTP, GRPC], SIZE)
    assert {cell.client for cell in cells if cell.channels == "same-args"} == {"library"}
    by_library = {cell.channels for cell in cells if cell.client == "library"}
    by_own_wire = {
        cell.channels for cell in cells if cell.client == "prepared" and cell.topology == Topology(1)
    }
    assert by_library - {"same-args"} <= by_own_wire, (
        "each has the own wire's on as many connections beside it"
    )


def test_a_server_that_speaks_one_is_no_comparison() -> None:
    with pytest.raises(UsageError, match="compares HTTP with gRPC on one server: give it both"):
        contention([HTTP, JPEG], SIZE)


def test_links_cross_with_the_arms_and_repeats_are_the_sizes() -> None:
    offered = {"cubic": "198.18.0.1", "bbr": "198.18.0.2"}
    launch = LaunchInfo(
        hosts=[{"name": "h1"}],
        links=[{"name": "lan"}, {"name": "wan"}],
        addresses={"h1": {"lan": {"cubic": "198.18.0.9"}, "wan": offered}},
    )
    schedule, size = schedule_of(Study(), [HTTP, GRPC], options("--link", "lan,wan"), launch, NO_GATE, 4)
    assert size.repeats == 3
    assert len(schedule.planned) == (9 + 10) * 3, "without BBR where it cannot be had"
    names = {run.cell.name for run in schedule.planned}
    assert {"onnx-grpc/b1/c16/shared/4w/lan", "onnx-grpc/b1/c16/shared/4w/wan"} <= names


@pytest.mark.parametrize("given", [("--channels", "shared"), ("--client", "library"), ("--topology", "4")])
def test_an_option_for_what_the_study_varies_itself(given: tuple[str, str]) -> None:
    with pytest.raises(UsageError, match=f"{given[0]}: this study sets it itself; leave it out"):
        schedule_of(Study(), [HTTP, GRPC], options(*given), LaunchInfo(), NO_GATE)


def test_open_load_has_axes_of_its_own() -> None:
    given = options("--rates", "50", "--channels", "shared,pool:4")
    schedule, _ = schedule_of(Study(), [GRPC], given, LaunchInfo(), NO_GATE)
    assert {run.cell.name for run in schedule.planned} == {
        "onnx-grpc/b1/r50/shared", "onnx-grpc/b1/r50/pool:4",
    }  # fmt: skip


@pytest.mark.parametrize("given", [(), ("--find-rate", "p50<=100", "--topology", "4")])
def test_workers_that_will_not_be_there_are_told_before_anything_runs(given: tuple[str, ...]) -> None:
    with pytest.raises(UsageError, match="asks for 4 workers and 1 will run: use `inferswarm run"):
        schedule_of(Study(), [HTTP, GRPC], options(*given), LaunchInfo(), NO_GATE, 1)
