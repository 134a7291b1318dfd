"""What a launcher starts: how many workers where, of which study, and under a supervisor."""

import sys
from pathlib import Path

import psutil
import pytest

from reports.ledger.records import MOST_WORKERS
from swarm.errors import UsageError
from swarm.hosts.host import OWN_SUPERVISOR
from swarm.hosts.hosts_file import HostSpec, hosts_named
from swarm.launcher.child import SupervisedProcess, spread, workers_wanted
from swarm.launcher.orphans import launcher_of
from swarm.owner import identity
from tests.processes import wait_until

pytestmark = pytest.mark.system

OWN = HostSpec("own", "process", workers=3)


@pytest.mark.parametrize(
    ("specs", "workers", "counts"),
    [
        (hosts_named("2"), 5, [3, 2]),
        ([OWN, *hosts_named("2")], 6, [3, 2, 1]),
        ([OWN], 3, [3]),
    ],
)
def test_workers_are_spread_evenly(specs: list[HostSpec], workers: int, counts: list[int]) -> None:
    assert spread(specs, workers) == counts


@pytest.mark.parametrize(
    ("specs", "workers", "sentence"),
    [
        (hosts_named("3"), 2, "--workers 2: these hosts need 3; give --workers 3"),
        ([OWN, *hosts_named("1", apart=True)], 3, "--workers 3: these hosts need 4; give --workers 4"),
        ([OWN], 5, "--workers 5: these hosts need 3 and no more; give --workers 3"),
    ],
)
def test_workers_that_no_host_takes(specs: list[HostSpec], workers: int, sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        spread(specs, workers)
    assert str(caught.value) == sentence


def test_no_more_workers_than_a_ledger_takes() -> None:
    for specs, workers in (
        ([HostSpec("all", "local")], MOST_WORKERS + 1),
        ([HostSpec("all", "local")], 10**400),
        ([HostSpec("all", "local", workers=MOST_WORKERS + 1)], MOST_WORKERS + 1),
    ):
        with pytest.raises(UsageError, match="a study has at most 2,000 workers"):
            spread(specs, workers)
    assert spread([HostSpec("all", "local")], MOST_WORKERS) == [MOST_WORKERS]


def test_a_study_says_how_many_workers_it_wants() -> None:
    assert workers_wanted("locustfiles/step7_contention.py") == 4
    assert workers_wanted("locustfiles/step7.py") == 1


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("import nothing_of_this_name", "cannot be used: ModuleNotFoundError: No module named"),
        ("from locust import User\nclass Mine(User):\n    pass\n", "declares no study: add a StudyShape"),
    ],
)
def test_a_locustfile_that_is_none(text: str, sentence: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(text)
    with pytest.raises(UsageError, match=sentence):
        workers_wanted(str(path))


def test_a_child_is_marked_writes_to_its_file_and_ends_with_its_supervisor(tmp_path: Path) -> None:
    script = "import os, time; print('ready', os.getpid(), os.environ['WORD'], flush=True); time.sleep(60)"
    command = [*OWN_SUPERVISOR, "--", sys.executable, "-c", script]
    with SupervisedProcess("c", command, tmp_path / "out", {"WORD": "there"}) as child:
        wait_until(lambda: "ready" in child.tail(), 20)
        _, pid, word = child.tail().split()
        assert word == "there"
        assert launcher_of(int(pid)) == identity()
        assert child.poll() is None
    assert child.poll() == 128 + 15
    assert not psutil.pid_exists(int(pid))


def test_a_child_that_is_asked_has_its_time_to_end(tmp_path: Path) -> None:
    script = "trap 'echo in order; exit 7' TERM; echo ready; while :; do sleep 0.05; done"
    command = [*OWN_SUPERVISOR, "--", "sh", "-c", script]
    with SupervisedProcess("c", command, tmp_path / "out", {}) as child:
        wait_until(lambda: "ready" in child.tail(), 20)
        child.terminate()
        assert child.wait(20) == 7
        assert child.tail().splitlines()[-1] == "in order"
