"""The cells of a study of growth, and of the locustfile that declares one."""

import pytest

from locustfiles.step6b import GrowthSize, Step6b
from swarm.errors import UsageError
from swarm.plan.cell import Cell
from swarm.plan.matrix import Size
from swarm.plan.sweep import cross
from swarm.study.build_schedule import check_own_axes
from tests.swarm.options.test_parse import options
from users.endpoint import Endpoint

TRITON = Endpoint("onnx-http", "onnx", "http", "fp32", "h:8010", "clip")
SERVICE = Endpoint("pytorch-http", "pytorch", "http", "jpeg", "h:8002")
growth = Step6b().cells
SIZE = GrowthSize((1,), (1, 8, 32), iterations=50, seconds=4, warm_up=8, shared_levels=(32,))


def names(cells: list[Cell]) -> list[str]:
    return [cell.name for cell in cells]


def test_every_level_is_run_on_one_instance_and_the_shared_ones_on_more() -> None:
    cells = growth([TRITON], SIZE)
    assert names(cells) == [
        *("onnx-http/b1/c1/1-instance", "onnx-http/b1/c8/1-instance", "onnx-http/b1/c32/1-instance"),
        *("onnx-http/b1/c32/2-instances", "onnx-http/b1/c32/4-instances"),
    ]
    assert [(cell.instances, cell.requests) for cell in cells] == [
        *((1, 100), (1, 100), (1, 160)),
        *((2, 160), (4, 160)),
    ]
    assert cross(cells, ())[3].instances == 2


def test_other_amounts_leave_the_shared_levels_as_they_are() -> None:
    assert names(growth([TRITON], SIZE.given(iterations=5, seconds=1, warm_up=1, repeats=9))) == names(
        growth([TRITON], SIZE)
    )
    plain = growth([TRITON], Size((1,), (1, 8), 50, 4))
    assert len(plain) == 6, "without shared levels each is run on every number of instances"


def test_an_endpoint_without_a_model_of_tritons_has_each_level_once() -> None:
    cells = growth([SERVICE, TRITON.floor()], SIZE)
    assert names(cells) == [
        *("pytorch-http/b1/c1", "pytorch-http/b1/c8", "pytorch-http/b1/c32"),
        *("onnx-http-floor/b1/c1", "onnx-http-floor/b1/c8", "onnx-http-floor/b1/c32"),
    ]


def test_such_a_study_settles_its_instances_but_not_its_queue_delays() -> None:
    cells = growth([TRITON], SIZE)
    check_own_axes(cells, options("--queue-delay-us", "0,1000"))
    with pytest.raises(UsageError) as refused:
        check_own_axes(cells, options("--instances", "1,2"))
    assert str(refused.value) == "--instances: this study sets it itself; leave it out"
