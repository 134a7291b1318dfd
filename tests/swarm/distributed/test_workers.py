"""Master and workers' messages, on a runner that passes them at once, and which workers carry a cell."""

from locust.runners import STATE_MISSING, MasterRunner

from typing import Any

import gevent
import pytest

from swarm.distributed.protocol import ASK, HELLO, PARTING, REPLY
from swarm.distributed.workers import Workers, seated
from swarm.errors import RunFailedError
from tests.swarm.fakes import NOTHING_DONE, FakeRunner

PARTED = {"parts": [{**NOTHING_DONE, "users": 3}]}


class Node:
    """What Locust knows of a worker."""

    def __init__(self, name: str, state: str = "running") -> None:
        self.id, self.state = name, state


class Nodes(dict[str, Node]):
    """Locust's `clients`."""

    @property
    def all(self) -> Any:
        return list(self.values())


class FakeMaster(FakeRunner, MasterRunner):
    """A MasterRunner without its sockets."""

    def __init__(self, *names: str) -> None:
        FakeRunner.__init__(self)
        self.clients = Nodes({name: Node(name) for name in names})  # type: ignore[assignment]
        self.worker_indexes, self.worker_index_max = {}, 0
        self._users_dispatcher = None

    def __del__(self) -> None:
        """Locust's would look for greenlets."""


@pytest.fixture
def said() -> list[str]:
    return []


def workers_of(runner: FakeMaster, said: list[str]) -> Workers:
    return Workers(runner, said.append)


def test_all_answers(said: list[str]) -> None:
    master = FakeMaster("a_1", "b_2")
    workers = workers_of(master, said)
    asking = gevent.spawn(workers.ask, "cell", {"batch": 4}, 5)
    gevent.sleep(0)
    assert [(kind, data["op"], data["batch"], data["share"], to) for kind, data, to in master.sent] == [
        (ASK, "cell", 4, (0, 2), "a_1"),
        (ASK, "cell", 4, (1, 2), "b_2"),
    ]
    seq = master.sent[0][1]["seq"]
    master.deliver(REPLY, {"seq": seq, "fine": 1}, "a_1")
    master.deliver(REPLY, {"seq": seq, "error": "no"}, "b_2")
    answers = asking.get(timeout=5)
    assert answers.replies["a_1"] == {"fine": 1}
    assert answers.errors == ["b_2: no"]
    assert answers.lost == []


def test_a_worker_that_goes_missing_is_not_waited_for(said: list[str]) -> None:
    master = FakeMaster("a_1", "b_2")
    workers = workers_of(master, said)
    asking = gevent.spawn(workers.ask, "phase", {}, 60)
    gevent.sleep(0)
    master.deliver(REPLY, {"seq": master.sent[0][1]["seq"]}, "a_1")
    master.clients["b_2"].state = STATE_MISSING
    answers = asking.get(timeout=5)
    assert answers.lost == ["b_2"]
    assert workers.taking_part() == ["a_1"]
    workers.drop("b_2")
    assert list(master.clients) == ["a_1"]
    assert master.sent[-1] == ("quit", None, "b_2")


def test_a_silent_worker_is_waited_for_no_longer_than_told(said: list[str]) -> None:
    workers = workers_of(FakeMaster("a_1"), said)
    assert workers.ask("phase", {}, 0.01).lost == ["a_1"]


def test_one_that_parts_is_gone_and_has_answered_the_next_drain(said: list[str]) -> None:
    master = FakeMaster("a_1", "b_2")
    workers = workers_of(master, said)
    master.deliver(PARTING, PARTED, "b_2")
    assert workers.taking_part() == ["a_1"]
    assert workers.ask("phase", {}, 0).replies == {}
    assert workers.ask("drain", {}, 0).replies == {"b_2": PARTED}
    assert workers.ask("drain", {}, 0).replies == {}


def test_one_that_parts_while_it_is_asked_to_drain_has_answered(said: list[str]) -> None:
    master = FakeMaster("a_1")
    workers = workers_of(master, said)
    asking = gevent.spawn(workers.ask, "drain", {}, 5)
    gevent.sleep(0)
    master.deliver(PARTING, PARTED, "a_1")
    answers = asking.get(timeout=5)
    assert (answers.replies, answers.lost) == ({"a_1": PARTED}, [])
    assert workers.ask("drain", {}, 0).replies == {}


def test_those_that_went_missing_unseen_are_forgotten(said: list[str]) -> None:
    master = FakeMaster("a_1", "b_2")
    master.clients["b_2"].state = STATE_MISSING
    workers_of(master, said).drop_missing()
    assert list(master.clients) == ["a_1"]


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (["study"], ["study"]),
        (["study", "cell"], ["study", "cell"]),
        (["study", "cell", "phase"], ["study", "cell", "phase"]),
        (["study", "cell", "phase", "drain"], ["study", "cell"]),
        (["study", "cell", "phase", "cool_down"], ["study", "cell"]),
        (["study", "cell", "phase", "share"], ["study", "cell", "phase"]),
        (["study", "cell", "phase", "cell"], ["study", "cell"]),
    ],
)
def test_a_late_worker_is_told_what_stands(said: list[str], asked: list[str], told: list[str]) -> None:
    master = FakeMaster("a_1")
    workers = workers_of(master, said)
    for op in asked:
        workers.ask(op, {}, 0)
    master.sent.clear()
    master.deliver(HELLO, {}, "b_2")
    assert [(data["op"], to) for _, data, to in master.sent] == [(op, "b_2") for op in told]
    assert {data["share"] for _, data, _ in master.sent} == {(0, 0)}
    workers.forget()
    master.sent.clear()
    master.deliver(HELLO, {}, "c_3")
    assert master.sent == []


def test_a_late_worker_that_cannot_take_part_is_sent_home(said: list[str]) -> None:
    master = FakeMaster("a_1")
    workers = workers_of(master, said)
    workers.ask("study", {}, 0)
    seq = master.sent[0][1]["seq"]
    master.deliver(REPLY, {"seq": seq, "error": "its pictures are others"}, "b_2")
    assert master.sent[-1] == ("quit", None, "b_2")
    assert said == ["worker w0 cannot take part and is dismissed: its pictures are others"]


class Dispatcher:
    """Locust's, as far as who is given users."""

    def __init__(self, nodes: list[Node]) -> None:
        self._worker_nodes = nodes

    def add_worker(self, worker_node: Node) -> None:
        self._worker_nodes.append(worker_node)

    def remove_worker(self, worker_node: Node) -> None:
        self._worker_nodes.remove(worker_node)


def test_only_chosen_workers_have_a_part_until_others_are_chosen(said: list[str]) -> None:
    master = FakeMaster("m_1", "m_2", "m_3")
    workers = workers_of(master, said)
    assert workers.strangers == ["m_1", "m_2", "m_3"]
    for node, host in (("m_1", "near"), ("m_2", "near"), ("m_3", "far")):
        master.deliver(HELLO, {"host": host}, node)
    assert workers.strangers == []
    assert [workers.host(worker) for worker in workers.taking_part()] == ["near", "near", "far"]
    dispatcher = Dispatcher(list(master.clients.values()))
    master._users_dispatcher = dispatcher  # type: ignore[assignment]
    workers.choose(1, 0)
    assert workers.taking_part() == ["m_3"] == [node.id for node in dispatcher._worker_nodes]
    workers.choose(2, 2)
    assert (
        sorted(workers.taking_part())
        == ["m_1", "m_3"]
        == sorted(node.id for node in dispatcher._worker_nodes)
    )
    with pytest.raises(RunFailedError, match="it asks for 4 workers and 3 are there"):
        workers.choose(4, 0)
    workers.forget()
    assert len(workers.taking_part()) == 3 == len(dispatcher._worker_nodes)


def test_a_worker_that_comes_in_the_middle_has_a_part_where_all_have(said: list[str]) -> None:
    master = FakeMaster("m_1", "m_2")
    workers = workers_of(master, said)
    workers.choose(0, 0)
    master.clients["m_3"] = Node("m_3")
    assert workers.taking_part() == ["m_1", "m_2", "m_3"]
    assert workers.keep_seats() == []


def test_a_worker_that_comes_in_the_middle_of_a_cell_for_others_is_sent_home(said: list[str]) -> None:
    master = FakeMaster("m_1", "m_2")
    workers = workers_of(master, said)
    dispatcher = Dispatcher(list(master.clients.values()))
    master._users_dispatcher = dispatcher  # type: ignore[assignment]
    workers.choose(1, 0)
    assert [(data["op"], to) for kind, data, to in master.sent if kind == ASK] == [("rest", "m_2")]
    assert workers.keep_seats() == []
    # Locust gives it users, seat or no seat.
    master.clients["m_3"] = Node("m_3")
    dispatcher.add_worker(master.clients["m_3"])
    assert workers.taking_part() == ["m_1"]
    assert len(workers.keep_seats()) == 1
    assert [node.id for node in dispatcher._worker_nodes] == ["m_1"]
    assert ("quit", None, "m_3") in master.sent


HOSTS = {"h1": ["a", "b", "c"], "h2": ["d"], "h3": ["e", "f"]}


@pytest.mark.parametrize(
    ("workers", "hosts", "found"),
    [
        (0, 0, ["a", "d", "e", "b", "f", "c"]),
        (1, 0, ["a"]),
        (4, 0, ["a", "d", "e", "b"]),
        (3, 2, ["a", "e", "b"]),
        (0, 1, ["a", "b", "c"]),
    ],
)
def test_hosts_give_one_in_their_turn(workers: int, hosts: int, found: list[str]) -> None:
    assert seated(HOSTS, workers, hosts) == found


def test_too_few() -> None:
    with pytest.raises(RunFailedError, match="it asks for 7 workers and 6 are there"):
        seated(HOSTS, 7, 0)
    with pytest.raises(RunFailedError, match="it asks for 6 workers on 2 hosts and 5 are there"):
        seated(HOSTS, 6, 2)
    with pytest.raises(RunFailedError, match="it asks for 4 hosts and 3 are available"):
        seated(HOSTS, 0, 4)
