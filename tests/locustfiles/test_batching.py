"""The cells of step 5A, and the requests that its users build themselves."""

from dataclasses import replace

import pytest

from locustfiles.step5a import BatchingSize, Step5a
from swarm.distributed.worker_cell import assignment_of, pool_of
from swarm.plan.cell import Cell, PlannedRun
from swarm.plan.matrix import Size
from tests.pictures import image_set
from tests.presets import preset
from users.backends.registry import codec_of
from users.codecs.base import PLACEHOLDER

BINARY = preset("onnx-http", "h:1", "m")
JSON = preset("onnx-json-http", "h:1", "m")
serialisation_and_batching = Step5a().cells
IMAGES = image_set(3)


def test_serial_cells_are_of_the_library_and_the_delays_of_binary_alone() -> None:
    size = BatchingSize((1, 32), (1, 8), 10, 2, delays_us=(0, 5_000), json_images=64)
    cells = serialisation_and_batching([BINARY, JSON], size)
    floor = serialisation_and_batching([BINARY.floor()], BatchingSize((1,), (1,), 10, 2, delays_us=(0,)))
    assert [cell.name for cell in floor] == ["onnx-http-floor/b1/c1"]
    assert [(cell.name, cell.requests, cell.client, cell.queue_delay_us) for cell in cells] == [
        ("onnx-http/b1/c1", 10, "library", None),
        ("onnx-http/b32/c1", 10, "library", None),
        ("onnx-json-http/b1/c1", 10, "library", None),
        ("onnx-json-http/b32/c1", 3, "library", None),
        ("onnx-http/b1/c1/delay-0ms", 20, "", 0),
        ("onnx-http/b1/c8/delay-0ms", 40, "", 0),
        ("onnx-http/b1/c1/delay-5ms", 20, "", 5_000),
        ("onnx-http/b1/c8/delay-5ms", 40, "", 5_000),
    ]


def test_without_a_limit_json_measures_as_many_as_binary() -> None:
    for size in (Size((32,), (1,), 30, 2), BatchingSize((32,), (1,), 30, 2)):
        assert [cell.requests for cell in serialisation_and_batching([BINARY, JSON], size)] == [30, 30]


@pytest.mark.parametrize("name", ["quick", "full"])
def test_the_studys_sizes(name: str) -> None:
    cells = Step5a().cells([BINARY, JSON], Step5a.sizes[name])
    assert len({cell.name for cell in cells}) == len(cells)
    serial = {(cell.endpoint.payload, cell.batch) for cell in cells if cell.client == "library"}
    assert {("json", 32), ("fp32", 32), ("json", 1), ("fp32", 1)} <= serial
    assert {cell.queue_delay_us for cell in cells} >= {None, 0, 5_000, 20_000}


@pytest.mark.parametrize("request_id", ["", PLACEHOLDER])
def test_a_named_pool_has_the_pictures_and_the_place_of_the_id_but_no_bodies(request_id: str) -> None:
    named, whole = (
        pool_of(codec_of(JSON), IMAGES, 2, None, request_id, by_library)[0] for by_library in (True, False)
    )
    assert [one.indices for one in named] == [one.indices for one in whole] == [(0, 1), (2, 0)]
    assert [one.id_at >= 0 for one in named] == [one.id_at >= 0 for one in whole] == [bool(request_id)] * 2
    assert {one.body for one in named} == {b""}
    assert all(len(one.body) > 1_000_000 for one in whole)


@pytest.mark.parametrize(("client", "size"), [("library", 0), ("prepared", 1)])
def test_only_a_client_that_builds_nothing_is_given_bodies(client: str, size: int) -> None:
    cell = replace(Cell(JSON, 3, 1, 0, 0), client=client, channels="per-user")
    data = {**PlannedRun(cell, 1).to_record(), "endpoint": JSON.to_dict(), "addresses": {}}
    study = {"golden": {}, "trace": False, "timeout_s": 1.0, "min_cosine": 0.999}
    assignment = assignment_of(data, study, IMAGES)
    assert [one.indices for one in assignment.pool] == [(0, 1, 2)]
    assert [bool(one.body) for one in assignment.pool] == [bool(size)]
    assert (assignment.images is None) == bool(size)
