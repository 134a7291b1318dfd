"""Which batch sizes are asked for before a cell is measured, and what is told of them."""

from __future__ import annotations

from typing import Any

import pytest

from swarm.first_calls import FirstCalls, sizes_to_call
from swarm.plan import Cell
from users.endpoint import Endpoint
from users.errors import ErrorKind, RequestError

HTTP = Endpoint("onnx-http", "onnx", "http", "fp32", "h:8010", "clip")
GRPC = Endpoint("onnx-grpc", "onnx", "grpc", "fp32", "h:8011", "clip")
SERVICE = Endpoint("pytorch-http", "pytorch", "http", "jpeg", "h:8002")
ALONE: dict[str, Any] = {"batching": False, "max_batch": 32}


def cell(endpoint: Endpoint = HTTP, batch: int = 1, users: int = 1) -> Cell:
    return Cell(endpoint, batch, users, 10, 1.0)


def batcher(most: int) -> dict[str, Any]:
    return {"batching": True, "max_batch": most}


@pytest.mark.parametrize(
    ("batch", "users", "serving", "sizes"),
    [
        (1, 1, batcher(32), [1]),
        (1, 4, batcher(32), [1, 2, 3, 4]),
        (1, 16, batcher(8), [1, 2, 3, 4, 5, 6, 7, 8]),
        (4, 3, batcher(32), [4, 8, 12]),
        (4, 3, batcher(11), [4, 8]),
        (8, 2, batcher(8), [8]),
        (8, 2, batcher(4), [8]),
        (4, 3, ALONE, [4]),
        (4, 3, {"batching": None, "max_batch": None}, [4]),
        (4, 3, {"error": "the configuration cannot be read"}, [4]),
    ],
)
def test_sizes_that_a_load_can_bring_about(
    batch: int, users: int, serving: dict[str, Any], sizes: list[int]
) -> None:
    assert sizes_to_call(cell(HTTP, batch, users), serving) == sizes


def test_an_open_load_can_bring_about_what_its_users_in_flight_can() -> None:
    rate = Cell(HTTP, 1, 50.0, 10, 1.0, "open", "constant", max_in_flight=3)
    assert sizes_to_call(rate, batcher(32)) == [1, 2, 3]


class Server:
    """Every first request of a size takes 40 ms for each picture, every other 4; some fail."""

    def __init__(self) -> None:
        self.called: list[tuple[str, int]] = []
        self.failing: set[int] = set()

    def call(self, endpoint: Endpoint, size: int) -> int:
        first = (endpoint.name, size) not in self.called
        self.called.append((endpoint.name, size))
        if size in self.failing:
            raise RequestError(ErrorKind.TIMEOUT, "no answer")
        return (40 if first else 4) * size


@pytest.fixture
def server() -> Server:
    return Server()


def test_a_cells_own_size_is_called_twice_and_sums_of_it_once(server: Server) -> None:
    calls = FirstCalls(server.call)
    assert list(calls.due(cell(HTTP, 4, 2), batcher(32))) == [(4, 160, 16), (8, 320, None)]
    assert server.called == [("onnx-http", 4), ("onnx-http", 4), ("onnx-http", 8)]


def test_what_was_called_is_not_called_again(server: Server) -> None:
    calls = FirstCalls(server.call)
    list(calls.due(cell(HTTP, 4, 2), batcher(32)))
    assert list(calls.due(cell(HTTP, 4, 2), batcher(32))) == []
    assert list(calls.due(cell(HTTP, 8, 1), batcher(32))) == []
    assert list(calls.due(cell(HTTP, 4, 3), batcher(32))) == [(12, 480, None)]


def test_both_protocols_lead_to_one_model(server: Server) -> None:
    calls = FirstCalls(server.call)
    list(calls.due(cell(HTTP, 4), ALONE))
    assert list(calls.due(cell(GRPC, 4), ALONE)) == []
    assert list(calls.due(cell(GRPC, 2), ALONE)) == [(2, 80, 8)]


@pytest.mark.parametrize(
    "other",
    [
        HTTP.floor(),
        SERVICE,
        SERVICE.floor(),
        Endpoint("trt-http", "trt", "http", "fp32", "h:8020", "clip"),
        Endpoint("onnx-grpc", "onnx", "grpc", "fp32", "elsewhere:8011", "clip"),
    ],
)
def test_another_model_or_server_is_called_for_itself(server: Server, other: Endpoint) -> None:
    calls = FirstCalls(server.call)
    list(calls.due(cell(HTTP, 4), ALONE))
    assert list(calls.due(cell(other, 4), ALONE)) == [(4, 160, 16)]


def test_the_floors_of_both_protocols_are_one_model(server: Server) -> None:
    calls = FirstCalls(server.call)
    list(calls.due(cell(HTTP.floor()), ALONE))
    assert list(calls.due(cell(GRPC.floor()), ALONE)) == []
    list(calls.due(cell(SERVICE), ALONE))
    assert list(calls.due(cell(SERVICE.floor()), ALONE)) == [(1, 40, 4)]


def test_a_first_request_that_was_sent_before_is_told_and_not_sent_again(server: Server) -> None:
    calls = FirstCalls(server.call)
    calls.known(HTTP, 1, 9_000)
    calls.known(GRPC, 1, 7)
    server.called.append(("onnx-http", 1))
    assert list(calls.due(cell(HTTP), ALONE)) == [(1, 9_000, 4)]
    assert server.called == [("onnx-http", 1)] * 2
    assert list(calls.due(cell(GRPC), ALONE)) == []


def test_one_that_failed_is_tried_again_by_the_next_cell(server: Server) -> None:
    calls = FirstCalls(server.call)
    server.failing = {8}
    due = calls.due(cell(HTTP, 4, 2), batcher(32))
    assert next(due) == (4, 160, 16)
    with pytest.raises(RequestError):
        next(due)
    server.failing = set()
    assert list(calls.due(cell(HTTP, 4, 2), batcher(32))) == [(8, 32, None)]


def test_a_second_request_that_failed_does_not_lose_the_first(server: Server) -> None:
    calls = FirstCalls(server.call)
    calls.known(HTTP, 4, 9_000)
    server.failing = {4}
    with pytest.raises(RequestError):
        next(calls.due(cell(HTTP, 4), ALONE))
    server.failing = set()
    assert list(calls.due(cell(HTTP, 4), ALONE)) == [(4, 9_000, 16)]


def test_each_is_told_as_soon_as_it_is_known(server: Server) -> None:
    """A study that is stopped while an engine is being built keeps what was learned before."""
    due = FirstCalls(server.call).due(cell(HTTP, 1, 3), batcher(32))
    assert next(due) == (1, 40, 4)
    assert server.called == [("onnx-http", 1), ("onnx-http", 1)]


def test_sizes_that_are_not_dear_end_the_asking() -> None:
    """Three in a row take what their pictures take: nothing is built for a size."""
    asked: list[int] = []

    def call(endpoint: Endpoint, size: int) -> int:
        asked.append(size)
        return 5 * size

    calls = FirstCalls(call)
    assert [size for size, _, _ in calls.due(cell(HTTP, 1, 32), batcher(32))] == [1, 2, 3, 4]
    assert asked == [1, 1, 2, 3, 4]
    assert list(calls.due(cell(GRPC, 1, 32), batcher(32))) == []
    assert [size for size, _, _ in calls.due(cell(GRPC, 8, 4), batcher(32))] == [8]


def test_one_dear_size_begins_the_count_anew() -> None:
    calls = FirstCalls(lambda endpoint, size: 1_000 if size == 4 else 5 * size)
    assert [size for size, _, _ in calls.due(cell(HTTP, 1, 32), batcher(32))] == [1, 2, 3, 4, 5, 6, 7]
