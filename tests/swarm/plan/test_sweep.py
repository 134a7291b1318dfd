"""Cells along the axes of channels, links and topologies."""

from typing import Any

import pytest

from swarm.errors import UsageError
from swarm.plan.cell import Cell, PlannedRun
from swarm.plan.sweep import (
    Axes,
    Topology,
    channels_of,
    instances_of,
    links_of,
    queue_delays_of,
    topologies_of,
)
from users.endpoint import Endpoint

CELL = Cell(Endpoint("a-grpc", "a", "grpc", "fp32", "h:1"), 1, 16, 10, 2.0)


def test_what_options_mean() -> None:
    assert channels_of("shared, pool:4,shared") == ("shared", "pool:4")
    assert links_of("none,wan-a100") == ("", "wan-a100")
    assert links_of("none") == ("",)
    assert topologies_of("") == (Topology(),)
    assert topologies_of("1,4,4@2") == (Topology(1), Topology(4), Topology(4, 2))
    assert [str(topology) for topology in topologies_of("4,4@2")] == ["4w", "4w2h"]


@pytest.mark.parametrize("text", ["0", "x", "2@4", "4@", "-1", "4@2@1"])
def test_topologies_that_make_no_sense(text: str) -> None:
    with pytest.raises(UsageError, match=f"--topology {text}: give worker processes"):
        topologies_of(text)


@pytest.mark.parametrize("text", ["pool", "pool:0", "one"])
def test_channels_that_make_no_sense(text: str) -> None:
    with pytest.raises(UsageError, match=f"--channels shared,{text}: give per-user, per-request, shared"):
        channels_of(f"shared,{text}")


def test_one_value_of_each_names_nothing() -> None:
    (cell,) = Axes(("shared",), ("lan",), (Topology(4, 2),), "library").cross([CELL])
    assert cell.name == "a-grpc/b1/c16"
    assert (cell.channels, cell.link, cell.workers, cell.hosts) == ("shared", "lan", 4, 2)
    assert cell.client == "library"


def test_several_values_cross_and_are_named() -> None:
    cells = Axes(("shared", "pool:4"), ("", "wan"), (Topology(1), Topology(4))).cross([CELL])
    assert [cell.variant for cell in cells] == [
        "shared/1w/none", "shared/4w/none", "shared/1w/wan", "shared/4w/wan",
        "pool:4/1w/none", "pool:4/4w/none", "pool:4/1w/wan", "pool:4/4w/wan",
    ]  # fmt: skip
    assert len({cell.name for cell in cells}) == 8


def test_what_a_study_has_set_itself_stays() -> None:
    own = Cell(CELL.endpoint, 1, 16, 10, 2.0, channels="shared", client="library", workers=1, variant="mine")
    cells = Axes(("per-user", "pool:4"), ("lan", "wan"), (Topology(4), Topology(2))).cross([own])
    assert [cell.name for cell in cells] == ["a-grpc/b1/c16/mine/lan", "a-grpc/b1/c16/mine/wan"]
    assert {(cell.channels, cell.client, cell.workers) for cell in cells} == {("shared", "library", 1)}


TRITON = Endpoint("onnx-http", "onnx", "http", "fp32", "h:8010", "clip")
SERVICE = Endpoint("pytorch-http", "pytorch", "http", "jpeg", "h:8002")


def of(endpoint: Endpoint, **more: Any) -> Cell:
    return Cell(endpoint, 1, 8, 10, 2.0, **more)


def test_what_options_mean_for_servers() -> None:
    assert queue_delays_of(" 0, 500,10000,500") == (0, 500, 10_000)
    assert queue_delays_of("") == (None,)
    assert instances_of("1,2,4") == (1, 2, 4)
    assert instances_of("") == (0,)


@pytest.mark.parametrize("text", ["-1", "1.5", "x", "0;1", "10000001", "٣", "9" * 5000])
def test_queue_delays_that_make_no_sense(text: str) -> None:
    mend = "give whole microseconds up to 10,000,000, e.g. 0,1000,10000"
    with pytest.raises(UsageError) as refused:
        queue_delays_of(text)
    assert str(refused.value).startswith(f"--queue-delay-us {text[:100]}")
    assert str(refused.value).endswith(f"{text[-100:]}: {mend}")


@pytest.mark.parametrize("text", ["0", "65", "two", "1;2"])
def test_instances_that_make_no_sense(text: str) -> None:
    with pytest.raises(UsageError) as refused:
        instances_of(text)
    assert str(refused.value) == f"--instances {text}: give whole numbers from 1 to 64, e.g. 1,2,4"


def test_server_settings_cross_and_are_named_where_there_are_several() -> None:
    several = Axes(queue_delays_us=(0, 500, 10_000), instances=(1, 2)).cross([of(TRITON)])
    assert [cell.variant for cell in several] == [
        *("delay-0ms/1-instance", "delay-0ms/2-instances", "delay-0.5ms/1-instance"),
        *("delay-0.5ms/2-instances", "delay-10ms/1-instance", "delay-10ms/2-instances"),
    ]
    assert [(cell.queue_delay_us, cell.instances) for cell in several[:3]] == [(0, 1), (0, 2), (500, 1)]
    (single,) = Axes(queue_delays_us=(500,), instances=(2,)).cross([of(TRITON)])
    assert (single.variant, single.queue_delay_us, single.instances) == ("", 500, 2)
    (neither,) = Axes().cross([of(TRITON)])
    assert (neither.queue_delay_us, neither.instances) == (None, 0)


def test_what_has_no_model_of_tritons_is_run_once() -> None:
    cells = Axes(("shared", "pool:4"), queue_delays_us=(0, 500)).cross([of(SERVICE), of(TRITON.floor())])
    assert [cell.name for cell in cells] == [
        *("pytorch-http/b1/c8/shared", "pytorch-http/b1/c8/pool:4"),
        *("onnx-http-floor/b1/c8/shared", "onnx-http-floor/b1/c8/pool:4"),
    ]
    assert {cell.queue_delay_us for cell in cells} == {None}


def test_a_studys_own_instances_stay() -> None:
    own = of(TRITON, instances=4, variant="4-instances")
    cells = Axes(queue_delays_us=(0, 500), instances=(1, 2)).cross([own])
    assert [cell.name for cell in cells] == [
        "onnx-http/b1/c8/4-instances/delay-0ms",
        "onnx-http/b1/c8/4-instances/delay-0.5ms",
    ]
    assert {cell.instances for cell in cells} == {4}


def test_a_plan_tells_of_server_settings() -> None:
    record = PlannedRun(of(TRITON, queue_delay_us=500, instances=2), 1).to_record()
    assert (record["queue_delay_us"], record["instances"]) == (500, 2)
