"""The users of several cells, spawned by Locust's own runners: each cell's are spread over all workers."""

from locust.env import Environment
from locust.runners import LocalRunner, MasterRunner, WorkerRunner

from collections.abc import Callable, Iterator

import gevent
import pytest

from swarm.distributed.worker_cell import MOST_AT_ONCE, user_classes_of
from swarm.study.dependencies import Users
from users.load.user import InferenceUser


def an_environment() -> Environment:
    """With a user class of its own, whose users wait for what they are to send."""
    environment = Environment(user_classes=[type("AnyUser", (InferenceUser,), {})])
    for user_class in user_classes_of(environment):
        user_class.assigned = True
    return environment


class Study:
    """A master, and workers in the same process."""

    def __init__(self, workers: int) -> None:
        self.environment = an_environment()
        self.master: MasterRunner = self.environment.create_master_runner("127.0.0.1", 0)
        self.users = Users(self.environment, self.master)
        self.workers: list[WorkerRunner] = []
        for _ in range(workers):
            self.add_worker()
        until(lambda: len(self.master.clients.ready) == workers)

    def add_worker(self) -> None:
        """One more."""
        port = self.master.server.port
        self.workers.append(an_environment().create_worker_runner("127.0.0.1", port))

    def counts(self) -> list[dict[str, int]]:
        """The users of each class that there are, worker by worker."""
        return [{name: n for name, n in one.user_classes_count.items() if n} for one in self.workers]


def until(is_so: Callable[[], bool]) -> None:
    with gevent.Timeout(20):
        while not is_so():
            gevent.sleep(0.01)


@pytest.fixture
def study() -> Iterator[Study]:
    made = Study(2)
    yield made
    made.master.quit()
    for worker in made.workers:
        worker.quit()


@pytest.mark.system
def test_the_users_of_each_cell_are_on_every_worker(study: Study) -> None:
    study.users.spawn(8, 100)
    assert study.counts() == [{"AnyUser": 4, "AnyUser2": 50}] * 2
    study.users.spawn()
    until(lambda: study.counts() == [{}, {}])
    study.users.spawn(2, 1, 4)
    found = study.counts()
    assert [one["AnyUser"] for one in found] == [1, 1]
    assert sum(one.get("AnyUser2", 0) for one in found) == 1
    assert [one["AnyUser3"] for one in found] == [2, 2]
    study.users.spawn()
    until(lambda: study.counts() == [{}, {}])
    study.users.spawn(5)
    assert sorted(one["AnyUser"] for one in study.counts()) == [2, 3]


@pytest.mark.system
def test_with_a_worker_that_comes_locust_makes_all_users_the_last_cells(study: Study) -> None:
    """Why cells that run at the same time need the same workers throughout."""
    study.users.spawn(8, 100)
    study.add_worker()
    until(lambda: study.counts() == [{"AnyUser2": 36}] * 3)
    study.users.spawn()
    until(lambda: study.counts() == [{}] * 3)
    study.users.spawn(3, 6)
    assert study.counts() == [{"AnyUser": 1, "AnyUser2": 2}] * 3


def test_in_one_process_each_class_has_its_cells_users() -> None:
    environment = an_environment()
    runner: LocalRunner = environment.create_local_runner()
    users = Users(environment, runner)
    for counts in ((3, 2), (), (1,)):
        users.spawn(*counts)
        found = [n for _, n in sorted(runner.user_classes_count.items())]
        assert found == [*counts, *[0] * (MOST_AT_ONCE - len(counts))]
    runner.quit()
