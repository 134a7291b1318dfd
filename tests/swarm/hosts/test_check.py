"""Is a host fit? What it says of itself, over a real ssh too, and what is made of it."""

import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import pytest

from swarm.hosts import facts as facts_script
from swarm.hosts.check import HostError, HostFacts, Problem, check, check_all, clock_of, problems
from swarm.hosts.host import ROOT, Host
from swarm.hosts.hosts_file import HostSpec, read_hosts
from tests.swarm.hosts.sshd import Sshd, checkout_at, needs_sshd

pytestmark = pytest.mark.system

HERE = Host(HostSpec("here", "process"))
MS = 1_000_000
PACKAGES = {"locust": "2.47.0", "gevent": "26.9.0"}
OWN = HostFacts("here", "3.11.7", packages=PACKAGES, commit="0123456789ab", cores=4, files_soft=1024)


class Saying(Host):
    """A host that runs what a test wants."""

    def __init__(self, script: str, kind: str = "process") -> None:
        super().__init__(HostSpec("odd", kind, address="odd"))
        self._script = script

    def facts_command(self) -> list[str]:
        return ["sh", "-c", self._script]


def test_this_machine() -> None:
    found = check(HERE)
    assert found.python == platform.python_version()
    assert found.cores == len(os.sched_getaffinity(0))
    version = facts_script.importlib.metadata.version
    assert found.packages == {name: version(name) for name in facts_script.PACKAGES}
    assert found.commit == facts_script.commit(ROOT)
    assert len(found.ports) == 2
    # One clock: its offset is no further from nought than its doubt, and the doubt is of this very exchange.
    assert abs(found.clock_offset_ns) <= found.clock_doubt_ns < 15_000 * MS
    record = json.loads(json.dumps(found.to_record()))
    assert record["hostname"] == platform.node()


def test_a_checkout_without_a_history_has_the_commit_that_was_sent(tmp_path: Path) -> None:
    assert facts_script.commit(tmp_path) == ""
    (tmp_path / facts_script.COMMIT_FILE).write_text("0123456789ab\n")
    assert facts_script.commit(tmp_path) == "0123456789ab"


def test_a_checkout_within_another_repository_is_not_at_its_commit(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    words = ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "a"]
    subprocess.run(["git", "-C", tmp_path, *words], check=True)
    (tmp_path / "within").mkdir()
    assert facts_script.commit(tmp_path / "within") == ""
    found = facts_script.commit(tmp_path)
    assert len(found) == 12
    (tmp_path / "a").touch()
    subprocess.run(["git", "-C", tmp_path, "add", "a"], check=True)
    assert facts_script.commit(tmp_path) == f"{found}+"


def test_what_cannot_be_read_is_left_out(tmp_path: Path) -> None:
    found = facts_script.facts(tmp_path, net=tmp_path)
    assert not {"ports", "tcp_congestion_control"} & found.keys()
    assert found["commit"] == version("inferswarm"), "what is of no commit has a version"
    assert HostFacts(**found).to_record().keys() <= found.keys() | {"clock_offset_ns", "clock_doubt_ns"}


def test_the_exchange_with_the_shortest_round_trip_sets_the_clock() -> None:
    slow = (1000, 99_000, 3000)
    quick = (10_000, 60_000, 10_100)
    assert clock_of([slow, quick, slow]) == (49_950, 50)
    assert clock_of([(0, -500, 101)]) == (-550, 51)


def test_a_shell_that_greets_is_heard_out() -> None:
    answers = 'read q; echo welcome; echo 42; echo \'{"python": "3.9.1", "new": 1}\''
    script = f"{answers}; while read q; do echo {time.time_ns() + 10**15}; done"
    found = check(Saying(script))
    assert (found.python, found.hostname) == ("3.9.1", "")
    assert found.clock_offset_ns == pytest.approx(10**15, abs=60_000 * MS)


@pytest.mark.parametrize(
    ("script", "kind", "said"),
    [
        ("echo one >&2; echo nothing >&2; exit 1", "process", "host odd has no working inferswarm (`nothi"),
        ("exit 3", "ssh", "host odd has no working inferswarm (`exit code 3`): run inferswarm hosts"),
        ("read q; echo '{}'; echo never a number; sleep 0.1; echo broke >&2", "process", "host odd has no"),
        ("echo refused >&2; exit 255", "ssh", "host odd cannot be reached: ssh says `refused`: fix that u"),
    ],
)  # fmt: skip
def test_a_host_that_says_nothing(script: str, kind: str, said: str) -> None:
    with pytest.raises(HostError) as caught:
        check(Saying(script, kind))
    assert str(caught.value).startswith(said)


@pytest.mark.parametrize("script", ["exec sleep 100", "read q; echo '{}'; exec sleep 100"])
def test_a_host_that_takes_too_long(script: str) -> None:
    with pytest.raises(HostError, match=r"^host odd does not answer within 0.3 s: check whether it is "):
        check(Saying(script), patience_s=0.3)


def test_a_command_that_is_not_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HERE, "facts_command", lambda: ["/no/ssh"])
    with pytest.raises(
        HostError, match=r"^host here cannot be checked: /no/ssh does not start here .No such fi"
    ):
        check(HERE)


def test_all_hosts_are_asked() -> None:
    found = check_all([HERE, Saying("exit 3")])
    assert [checked.spec.name for checked in found] == ["here", "odd"]
    assert found[0].facts is not None
    assert found[0].facts.python == platform.python_version()
    assert [(checked.facts, bool(checked.why)) for checked in found[1:]] == [(None, True)]


def told(facts: HostFacts, workers: int | None = None) -> list[str]:
    return [str(problem) for problem in problems(facts, OWN, workers)]


def test_a_host_like_ours_has_no_problems() -> None:
    assert told(OWN, 4) == []
    assert told(replace(OWN, python="3.11.2", commit="")) == []
    assert told(replace(OWN, files_soft=None)) == []


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        (replace(OWN, python="3.12.1"), "its Python is 3.12, ours is 3.11: name one with `python`, remove"),
        (replace(OWN, packages={"gevent": "1"}), "packages differ from those here: locust is missing (here 2"
         ".47.0), gevent 1 (here 26.9.0): run inferswarm hosts prepare"),
        (replace(OWN, commit="aaaa+"), "its checkout is at aaaa+, ours is at 0123456789ab: run inferswarm"),
        (replace(OWN, commit=f"{OWN.commit}+"), "the checkout there has uncommitted changes, so workers m"),
        (replace(OWN, clock_offset_ns=-800 * MS, clock_doubt_ns=2 * MS), "its clock is 0.8 s behind ours:"),
        (replace(OWN, clock_offset_ns=3_000 * MS, clock_doubt_ns=2 * MS), "its clock is 3.0 s ahead of ou"),
        (replace(OWN, files_soft=256), "a process there may open only 256 files: raise `ulimit -n` to 102"),
    ],
)  # fmt: skip
def test_problems(facts: HostFacts, said: str) -> None:
    (problem,) = told(facts)
    assert problem.startswith(said)
    assert problem.endswith("(a warning)") is ("uncommitted" in said)


def test_a_clock_is_wrong_only_beyond_doubt() -> None:
    at_the_bound = replace(OWN, clock_offset_ns=501 * MS, clock_doubt_ns=1 * MS)
    assert told(at_the_bound) == []
    assert len(told(replace(at_the_bound, clock_doubt_ns=MS - 1))) == 1


def test_more_workers_than_cores_are_a_warning() -> None:
    said = "5 workers share 4 cores, and each can use one: they may be the bottleneck"
    assert problems(OWN, OWN, 5) == [Problem(said, fatal=False)]


def test_our_own_changes_are_told_of_too() -> None:
    (found,) = problems(OWN, replace(OWN, commit="0123456789ab+"))
    assert found.text == "the checkout here has uncommitted changes, so workers may differ"


@pytest.fixture(scope="module")
def far(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostSpec]:
    folder = tmp_path_factory.mktemp("ssh")
    with Sshd(folder) as sshd:
        table = folder / "hosts.toml"
        table.write_text(sshd.host_entry("far", checkout_at(folder / "there")))
        yield read_hosts(table, str(sshd.config))[0]


@needs_sshd
def test_a_host_over_ssh(far: HostSpec) -> None:
    found, own = check(Host(far)), check(HERE)
    assert (found.python, found.packages, found.commit) == (own.python, own.packages, own.commit)
    assert abs(found.clock_offset_ns) <= found.clock_doubt_ns


@needs_sshd
def test_an_ssh_host_that_was_not_prepared(far: HostSpec) -> None:
    gone = replace(far, path="/no/such folder")
    with pytest.raises(HostError, match=r"host far has no working inferswarm .*No such file.*prepare$"):
        check(Host(gone))


@needs_sshd
def test_an_ssh_host_that_nobody_answers_for(far: HostSpec) -> None:
    with pytest.raises(HostError) as caught:
        check(Host(replace(far, port=1)))
    assert "cannot be reached: ssh says `ssh: connect to host 127.0.0.1 port 1: Conn" in str(caught.value)
    assert str(caught.value).endswith("fix that until `ssh 127.0.0.1` logs in without a question")


def test_facts_end_when_nobody_asks_any_more() -> None:
    command = [sys.executable, "-I", facts_script.__file__]
    (line,) = subprocess.check_output(command, input="time\nwhat\n", text=True).splitlines()
    assert line.isdigit()
