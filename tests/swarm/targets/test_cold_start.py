"""Which batch sizes are asked for before a cell is measured, and what is told of them."""

from dataclasses import replace
from typing import Any

import pytest

from swarm.plan.cell import Cell
from swarm.targets.cold_start import FirstCalls, sizes_to_call
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
        (1, 4, batcher(32), [1, 2, 3, 4]),
        (1, 16, batcher(8), [1, 2, 3, 4, 5, 6, 7, 8]),
        (4, 3, batcher(11), [4, 8]),
        (8, 2, batcher(4), [8]),
        (4, 3, ALONE, [4]),
        (4, 3, {"batching": None, "max_batch": None}, [4]),
        (4, 3, {"error": "the configuration cannot be read"}, [4]),
    ],
)
def test_sizes_that_a_load_can_bring(batch: int, users: int, serving: Any, sizes: list[int]) -> None:
    assert sizes_to_call(cell(HTTP, batch, users), serving) == sizes


def test_an_open_load_can_bring_about_what_its_users_in_flight_can() -> None:
    rate = Cell(HTTP, 1, 50.0, 10, 1.0, "open", arrivals="constant", max_in_flight=3)
    assert sizes_to_call(rate, batcher(32)) == [1, 2, 3]


class Server:
    """Every first request of a size takes 40 ms for each picture, every other 4; some fail.

    Each of its instances has first requests of its own; they answer in turn.
    """

    def __init__(self) -> None:
        self.called: list[tuple[str, int]] = []
        self.failing: set[int] = set()
        self.instances = 1

    def call(self, endpoint: Endpoint, size: int) -> int:
        first = self.called.count((endpoint.name, size)) < self.instances
        self.called.append((endpoint.name, size))
        if size in self.failing:
            raise RequestError(ErrorKind.TIMEOUT, "no answer")
        return (40 if first else 4) * size


@pytest.fixture
def server() -> Server:
    return Server()


def told(calls: FirstCalls, asked: Cell, serving: dict[str, Any] = ALONE) -> list[tuple[Any, ...]]:
    """What is told of a cell's first calls: the endpoint that sent them, the size, its two times."""
    return [(c.endpoint.name, c.size, c.first_ns, c.second_ns) for c in calls.due(asked, serving)]


def test_a_dear_sum_of_it_is_called_again_and_has_one_time(server: Server) -> None:
    both = [("onnx-http", 4, 160, 16), ("onnx-http", 8, 320, None)]
    assert told(FirstCalls(server.call), cell(HTTP, 4, 2), batcher(32)) == both
    assert server.called == [("onnx-http", 4)] * 2 + [("onnx-http", 8)] * 2


def test_every_instance_pays_before_a_second_time_is_taken(server: Server) -> None:
    """Or each further size would look cheap beside an engine that was built."""
    server.instances = instances = 3
    serving = batcher(32) | {"instances": instances}
    calls = FirstCalls(server.call)
    further = [("onnx-http", size, 40 * size, None) for size in (8, 12, 16, 20, 24)]
    assert told(calls, cell(HTTP, 4, 6), serving) == [("onnx-http", 4, 160, 16), *further]
    assert [server.called.count(("onnx-http", size)) for size in (4, 8, 24)] == [instances + 1] * 3


@pytest.mark.parametrize("serving", [{"instances": None}, {"instances": 0}, {"error": "no answer"}])
def test_unknown_instances_count_as_one(server: Server, serving: dict[str, Any]) -> None:
    assert told(FirstCalls(server.call), cell(HTTP, 4), serving) == [("onnx-http", 4, 160, 16)]
    assert server.called == [("onnx-http", 4)] * 2


def test_the_second_time_is_the_least_of_those_that_followed() -> None:
    times = iter([900, 700, 30, 40])
    calls = FirstCalls(lambda endpoint, size: next(times))
    assert told(calls, cell(), ALONE | {"instances": 3}) == [("onnx-http", 1, 900, 30)]


def test_what_was_called_is_not_called_again(server: Server) -> None:
    calls = FirstCalls(server.call)
    told(calls, cell(HTTP, 4, 2), batcher(32))
    assert told(calls, cell(HTTP, 4, 2), batcher(32)) == []
    assert told(calls, cell(HTTP, 8, 1), batcher(32)) == []
    assert told(calls, cell(HTTP, 4, 3), batcher(32)) == [("onnx-http", 12, 480, None)]


def test_both_protocols_lead_to_one_model(server: Server) -> None:
    calls = FirstCalls(server.call)
    told(calls, cell(HTTP, 4))
    assert told(calls, cell(GRPC, 4)) == []
    assert told(calls, cell(GRPC, 2)) == [("onnx-grpc", 2, 80, 8)]


@pytest.mark.parametrize(
    "other",
    [
        HTTP.floor(),
        SERVICE,
        SERVICE.floor(),
        Endpoint("trt-http", "trt", "http", "fp32", "h:8020", "clip"),
        Endpoint("onnx-grpc", "onnx", "grpc", "fp32", "elsewhere:8011", "clip"),
        replace(HTTP, name="new", address="h:9010", server="new"),
    ],
)
def test_another_model_or_server_is_called_for_itself(server: Server, other: Endpoint) -> None:
    calls = FirstCalls(server.call)
    told(calls, cell(HTTP, 4))
    assert told(calls, cell(other, 4)) == [(other.name, 4, 160, 16)]


def test_a_server_is_one_by_its_name_whatever_its_backend(server: Server) -> None:
    calls = FirstCalls(server.call)
    told(calls, cell(replace(HTTP, server="mine"), 4))
    assert told(calls, cell(replace(HTTP, name="other", backend="triton", server="mine"), 4)) == []
    assert [call.size for call in calls.forget(replace(GRPC, server="mine"))] == []
    assert told(calls, cell(replace(HTTP, server="mine"), 4)) == [("onnx-http", 4, 16, 16)]


def test_the_floors_of_both_protocols_are_one_model(server: Server) -> None:
    calls = FirstCalls(server.call)
    told(calls, cell(HTTP.floor()))
    assert told(calls, cell(GRPC.floor())) == []
    told(calls, cell(SERVICE))
    assert told(calls, cell(SERVICE.floor())) == [("pytorch-http-floor", 1, 40, 4)]


def test_a_first_request_that_was_sent_before_is_told_and_not_sent_again(server: Server) -> None:
    calls = FirstCalls(server.call)
    calls.known(HTTP, 1, 9_000)
    calls.known(GRPC, 1, 7)
    server.called.append(("onnx-http", 1))
    assert told(calls, cell(HTTP)) == [("onnx-http", 1, 9_000, 4)]
    assert server.called == [("onnx-http", 1)] * 2
    assert told(calls, cell(GRPC)) == []


def test_a_known_request_is_told_as_its_senders_whoever_comes_first(server: Server) -> None:
    """And the one that follows is sent as it was, or the two times would not compare."""
    calls = FirstCalls(server.call)
    calls.known(HTTP, 1, 9_000)
    calls.known(GRPC, 1, 7)
    server.called.append(("onnx-http", 1))
    both = [("onnx-http", 1, 9_000, 4), ("onnx-grpc", 2, 80, None)]
    assert told(calls, cell(GRPC, 1, 2), batcher(32)) == both


def test_only_a_servers_very_first_request_opens_it(server: Server) -> None:
    calls = FirstCalls(server.call)
    for endpoint in (HTTP, GRPC, SERVICE, HTTP.floor(), SERVICE.floor()):
        calls.known(endpoint, 1, 9_000)
    cells = [cell(e, batch) for e in (GRPC, SERVICE, HTTP.floor(), SERVICE.floor()) for batch in (4, 1)]
    records = [call.to_record() for asked in cells for call in calls.due(asked, ALONE)]
    opening = [(r["endpoint"], r["batch"]) for r in records if r["opening"]]
    assert opening == [("onnx-http", 1), ("pytorch-http", 1)]
    assert len(records) == 8
    line = {"endpoint": "onnx-grpc", "batch": 4, "first_ns": 160, "second_ns": 16, "opening": False}
    assert records[0] == line


def test_a_sum_that_failed_is_not_called_again(server: Server) -> None:
    calls = FirstCalls(server.call)
    server.failing = {8}
    due = calls.due(cell(HTTP, 4, 3), batcher(32))
    assert next(due).size == 4
    with pytest.raises(RequestError):
        next(due)
    assert told(calls, cell(HTTP, 4, 3), batcher(32)) == [("onnx-http", 12, 480, None)]
    assert told(calls, cell(HTTP, 8), batcher(32)) == []
    assert server.called.count(("onnx-http", 8)) == 1


def test_where_a_cells_own_size_failed_its_sums_are_not_called(server: Server) -> None:
    calls = FirstCalls(server.call)
    server.failing = {4}
    with pytest.raises(RequestError):
        told(calls, cell(HTTP, 4, 3), batcher(32))
    assert told(calls, cell(HTTP, 4, 3), batcher(32)) == []
    assert told(calls, cell(GRPC, 4, 3), batcher(32)) == []
    assert server.called == [("onnx-http", 4)]
    assert told(calls, cell(HTTP, 2), batcher(32)) == [("onnx-http", 2, 80, 8)]


def test_a_second_request_that_failed_does_not_lose_the_first(server: Server) -> None:
    calls = FirstCalls(server.call)
    calls.known(HTTP, 4, 9_000)
    server.failing = {4}
    due = calls.due(cell(HTTP, 4), ALONE)
    first = next(due)
    assert (first.first_ns, first.second_ns) == (9_000, None)
    with pytest.raises(RequestError):
        next(due)
    assert told(calls, cell(HTTP, 4)) == []
    assert server.called == [("onnx-http", 4)]


def test_each_is_told_as_soon_as_it_is_known(server: Server) -> None:
    """A study that is stopped while an engine is being built keeps what was learned before."""
    due = FirstCalls(server.call).due(cell(HTTP, 1, 3), batcher(32))
    assert next(due).size == 1
    assert server.called == [("onnx-http", 1)] * 2
    assert next(due).size == 2
    assert server.called == [("onnx-http", 1)] * 2 + [("onnx-http", 2)]


def test_sizes_that_are_not_dear_end_the_asking() -> None:
    """Three in a row take what their pictures take: nothing is built for a size."""
    asked: list[int] = []

    def call(endpoint: Endpoint, size: int) -> int:
        asked.append(size)
        return 5 * size

    calls, serving = FirstCalls(call), batcher(32) | {"instances": 2}
    assert [c.size for c in calls.due(cell(HTTP, 1, 32), serving)] == [1, 2, 3, 4]
    assert asked == [1, 1, 1, 2, 3, 4]
    assert told(calls, cell(GRPC, 1, 32), serving) == []
    assert told(calls, cell(GRPC, 8, 4), serving) == [("onnx-grpc", 8, 40, 40)]


def test_one_dear_size_begins_the_count_anew() -> None:
    calls = FirstCalls(lambda endpoint, size: 1_000 if size == 4 else 5 * size)
    sizes = [c.size for c in calls.due(cell(HTTP, 1, 32), batcher(32))]
    assert sizes == [1, 2, 3, 4, 5, 6, 7]


def test_a_model_that_was_loaded_again_is_as_new_and_no_other(server: Server) -> None:
    calls = FirstCalls(server.call)
    server.failing = {2}
    for endpoint in (HTTP, SERVICE):
        with pytest.raises(RequestError):
            told(calls, cell(endpoint, 2))
        told(calls, cell(endpoint, 4))
    server.failing = set()
    assert calls.forget(GRPC) == []
    again = [call for batch in (2, 4) for call in calls.due(cell(HTTP, batch), ALONE)]
    told_again = [(call.size, call.reloaded, call.opening) for call in again]
    assert told_again == [(2, True, False), (4, True, False)]
    assert [told(calls, cell(SERVICE, batch)) for batch in (2, 4)] == [[], []]
    even = FirstCalls(lambda endpoint, size: 5 * size)
    for _ in range(2):
        assert [call.size for call in even.due(cell(HTTP, 1, 32), batcher(32))] == [1, 2, 3, 4]
        even.forget(HTTP)
