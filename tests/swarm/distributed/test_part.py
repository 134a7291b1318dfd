"""Two cells at the same time on one worker: real users of a local runner, told apart in all that is told."""

from locust.env import Environment
from locust.runners import LocalRunner

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import gevent
import numpy as np
import pytest

from swarm.clock import wall_ns
from swarm.distributed import worker
from swarm.distributed.part import scheduled_ns
from swarm.distributed.protocol import PROGRESS, RECORDS
from swarm.distributed.worker import Worker
from swarm.distributed.worker_cell import user_classes_of
from swarm.distributed.workers import Workers
from swarm.study.dependencies import Users
from tests.swarm.distributed.test_worker import EMULATED, IMAGES, ONNX, orders_for, study_of, task
from users.codecs.base import PreparedRequest
from users.load import user as user_module
from users.load.user import InferenceUser
from users.result import Result
from users.transport.base import Reply, Transport

ROWS = np.eye(16, 512, dtype=np.float32)
MIX = "1:0.5,2:0.5"
S = 1_000_000_000


class Answering(Transport):
    """Answers each request after 2 ms."""

    def open(self) -> None:
        """Nothing to connect to."""

    def exchange(self, prepared: PreparedRequest) -> Reply:
        gevent.sleep(0.002)
        return Reply(ROWS[: len(prepared.indices)], 64)

    def close(self) -> None:
        """Nothing to close."""


class OneProcess:
    """A master's side and a worker in one process; `results` of all requests that came back."""

    def __init__(self) -> None:
        self.environment = Environment(user_classes=[type("AnyUser", (InferenceUser,), {})])
        self.runner: LocalRunner = self.environment.create_local_runner()
        self.results: list[Result] = []
        self.records: list[dict[str, Any]] = []
        self.environment.events.request.add_listener(lambda result, **_: self.results.append(result))
        self.runner.register_message(RECORDS, lambda msg, **_: self.records.extend(msg.data["records"]))
        self.runner.register_message(PROGRESS, lambda **_: None)
        self.workers = Workers(self.runner, print)
        self.worker = Worker(self.environment, self.runner)
        self.users = Users(self.environment, self.runner)

    def ask(self, op: str, **data: Any) -> dict[str, Any]:
        answers = self.workers.ask(op, data, 10)
        assert answers.errors == []
        return answers.replies["local"]

    def begin(self, *cells: dict[str, Any]) -> None:
        """A study whose first run has these cells."""
        self.ask("study", **study_of())
        self.ask("cell", cells=list(cells))
        self.users.spawn(*(cell["users"] for cell in cells))

    def phase(self, op: str, *orders: dict[str, Any]) -> dict[str, Any]:
        return self.ask(op, orders=list(orders), start_utc_ns=wall_ns(), patience_s=5)

    def came_back(self, phase: str) -> Counter[str]:
        """How many requests of a phase, by cell."""
        return Counter(one.cell for one in self.results if one.phase == phase)

    def shipped(self, phase: str) -> Counter[str]:
        found = Counter[str]()
        for one in self.records:
            if one["kind"] == "window" and one["phase"] == phase:
                found[one["cell"]] += one["ok"]
        return found

    def wait_for(self, phase: str, least: int) -> None:
        """Until so many of each of two cells have come back."""
        with gevent.Timeout(20):
            while len(found := self.came_back(phase)) < 2 or min(found.values()) < least:
                gevent.sleep(0.005)


@pytest.fixture
def process(monkeypatch: pytest.MonkeyPatch) -> Iterator[OneProcess]:
    monkeypatch.setattr(worker, "load_images", lambda folder, texts, pool_bytes, kinds: IMAGES)
    monkeypatch.setattr(user_module, "client", Answering)
    made = OneProcess()
    yield made
    made.runner.quit()


CLOSED = task(ONNX, cell="onnx-http/mix/c2", users=2, batch_mix=MIX)
OPEN = task(EMULATED, cell="emulated-http/b2/r200", users=3, load="open", level=200.0, arrivals="constant")


def both(phase: str) -> list[dict[str, Any]]:
    seed = f"3/1/{phase}/order"
    return [
        orders_for(phase, users=2, order_seed=seed),
        orders_for(phase, users=3, order_seed=seed, arrivals="constant", rate=200),
    ]


def test_two_cells_at_the_same_time_are_sent_and_told_apart(process: OneProcess) -> None:
    process.begin(CLOSED, OPEN)
    own = [made.assignment for made in user_classes_of(process.environment)[:2]]
    assert [one and (one.cell, one.users) for one in own] == [(CLOSED["cell"], 2), (OPEN["cell"], 3)]
    process.phase("phase", *both("warm-up"))
    process.wait_for("warm-up", 5)
    process.ask("mark")
    process.phase("phase", *both("measure"))
    process.wait_for("measure", 30)
    cooled = process.phase("cool_down", *both("drain"))
    told = process.ask("drain", patience_s=5)["parts"]
    cells = [CLOSED["cell"], OPEN["cell"]]
    measured = [process.came_back("measure")[cell] for cell in cells]
    assert cooled["succeeded"] == measured
    assert [one["finished"] for one in told] == [one["sent"] for one in told] == measured
    assert [one["abandoned"] for one in told] == [0, 0]
    assert [one["due"] is None for one in told] == [True, False], "each has a load of its own"
    assert told[0]["users"] == 2
    assert told[1]["due"] == measured[1]
    assert told[1]["phase_ns"] == pytest.approx(measured[1] / 200 * S, rel=0.3)
    assert {one.ok for one in process.results} == {True}
    for phase in ("warm-up", "measure", "drain"):
        assert process.shipped(phase) == process.came_back(phase)
    process.users.spawn()
    assert [one.users for one in own if one] == [0, 0]


def test_a_mix_goes_by_number_and_another_cell_beside_it_is_as_it_was(process: OneProcess) -> None:
    process.begin(CLOSED, OPEN)
    process.phase("phase", *both("measure"))
    process.wait_for("measure", 60)
    process.ask("drain", patience_s=5)
    mixed = [one for one in process.results if one.cell == CLOSED["cell"]]
    assert {(one.request_class, one.images) for one in mixed} == {("b1", 1), ("b2", 2)}
    assignment = process.worker._parts[0].assignment
    assert assignment.traffic is not None
    order = assignment.traffic.ordered("3/1/measure/order")
    expected = Counter(order.at(number)[0] for number in range(len(mixed)))
    assert Counter(one.request_class for one in mixed) == expected, "no number is left out or sent twice"
    assert {(one.request_class, one.images) for one in process.results if one.cell == OPEN["cell"]} == {
        ("", 2)
    }


def test_a_schedule_split_between_two_cells_is_sent_once(process: OneProcess) -> None:
    cells = [
        task(ONNX, cell="onnx-http/b2/r180", users=4),
        task(EMULATED, cell="emulated-http/b2/r20", users=4),
    ]
    process.begin(*cells)
    split = {"shares": [0.8, 0.2], "split_seed": "s", "arrivals": "constant", "rate": 400}
    process.phase("phase", *(orders_for("measure", part=part, **split) for part in range(2)))
    process.wait_for("measure", 30)
    told = process.ask("drain", patience_s=5)["parts"]
    sent = sorted(one.intended_ns for one in process.results)
    assert len(sent) == sum(one["due"] for one in told)
    gaps_ns = {after - before for before, after in pairwise(sent)}
    assert gaps_ns == {S // 400}, "each arrival has gone to one of the two"


def test_a_worker_without_a_part_answers_with_none(process: OneProcess) -> None:
    process.begin(CLOSED, OPEN)
    process.ask("rest")
    assert process.ask("drain", patience_s=1)["parts"] == []
    assert process.phase("cool_down", *both("drain")) == {}


def test_a_run_that_is_stopped_before_its_first_phase_is_drained(process: OneProcess) -> None:
    process.begin(CLOSED, OPEN)
    told = process.ask("drain", patience_s=5)["parts"]
    assert [(one["phase_ns"], one["sent"], one["abandoned"]) for one in told] == [(0, 0, 0)] * 2


@pytest.mark.parametrize(
    ("seconds", "arrivals", "rate", "phase_s", "scheduled_s"),
    [
        # 31 arrivals, the last of them at 3 s, are 10 a second
        (0, "constant", 10, 3.011, 3.1),
        (0, "constant", 10, 3.0, 3.0),
        (0, "constant", 0.05, 1.0, 20.0),
        (0, "poisson", 10, 3.011, 3.011),
        (0, "", 10, 3.011, 3.011),
        (12, "trace", 10, 12.13, 12),
        (12, "trace", 10, 5.5, 5.5),
        (4, "constant", 10, 4.02, 4),
    ],
)
def test_a_rate_is_over_the_schedules_own_time(
    seconds: float, arrivals: str, rate: float, phase_s: float, scheduled_s: float
) -> None:
    orders = orders_for("measure", seconds=seconds, arrivals=arrivals, rate=rate)
    assert scheduled_ns(round(phase_s * S), orders) == pytest.approx(scheduled_s * S, abs=1)
