"""benchmarks.strangers: how strangers are described, and what is said of what came of them."""

from locust import User  # noqa: F401  (first: it patches sockets and threads)

import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import psutil
import pytest
from PIL import Image

from benchmarks import strangers
from benchmarks.bounds import Bounds
from benchmarks.strange_servers import described, running
from benchmarks.strange_servers.described import EXAMPLES, STRANGERS, Stranger, target_of
from benchmarks.strange_servers.golden import block_means, least_cosine
from benchmarks.strange_servers.servers import SERVERS
from benchmarks.strange_servers.tritonserver import MODELS
from benchmarks.strange_servers.trying import Outcome, faults
from server.embedded.fleet import ServerProcess
from server.errors import SetUpError
from tests.processes import alive, eventually

ADDRESSES = ("127.0.0.1:5", "127.0.0.1:6")
GOOD = Outcome(13, 0, 0, ((1, 100), (8, 300)), 0, 0.9999)


def test_each_stranger_is_of_a_server_that_is_there() -> None:
    assert {one.server for one in STRANGERS} == {*SERVERS, described.TRITON}
    asked = {one.target.rpartition("/")[2] for one in STRANGERS if one.server == described.TRITON}
    assert asked == set(MODELS)


@pytest.mark.parametrize(
    "one", [one for one in STRANGERS if one.target.endswith(".toml")], ids=lambda one: one.name
)
def test_a_file_is_moved_to_where_the_server_is(one: Stranger, tmp_path: Path) -> None:
    path, lines = target_of(one, *ADDRESSES, tmp_path)
    example = (EXAMPLES / one.target).read_text().splitlines()
    both = zip(Path(path).read_text().splitlines(), example, strict=True)
    ((new, old),) = ((new, old) for new, old in both if new != old)
    assert old.startswith('url = "http://127.0.0.1:')
    assert new.split("/")[2:] == ["127.0.0.1:5", *old.split("/")[3:]]
    assert lines == len(example) <= 15


def test_a_file_without_an_address_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(described, "EXAMPLES", tmp_path)
    (tmp_path / "x.toml").write_text('url = "grpc://there:1"\n')
    with pytest.raises(ValueError, match=r"x.toml has 0 lines that begin"):
        target_of(Stranger("x", "x", "x.toml"), *ADDRESSES, tmp_path)


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (Outcome(0, 2), "`swarm probe` ended with exit code 2"),
        (replace(GOOD, study=1), "the study ended with exit code 1"),
        (replace(GOOD, failures=2), "2 requests failed"),
        (replace(GOOD, requests=((1, 100), (8, 0))), "measured at [1] users, not at [1, 8]"),
        (replace(GOOD, cosine=0.99), "a cosine below 0.999"),
        (replace(GOOD, cosine=float("nan")), "a cosine below 0.999"),
        (replace(GOOD, lines=16), "its file has more than 15 lines"),
    ],
)
def test_what_is_wrong_is_named_and_breaks_the_bound(
    found: Outcome, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert faults(found) == [words]
    bounds = Bounds("")
    strangers.tell(bounds, STRANGERS[0], found)
    assert bounds.exit_code() == 1
    assert f"  {words}\n" in capsys.readouterr().out


def test_a_line_says_what_was_asked(capsys: pytest.CaptureFixture[str]) -> None:
    bounds = Bounds("")
    strangers.tell(bounds, STRANGERS[0], GOOD)
    assert bounds.exit_code() == 0
    assert faults(replace(GOOD, study=3)) == []
    assert "litserve, 13 lines: 100 and 300 " in capsys.readouterr().out


def test_an_unknown_name_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        strangers.parsed(["mosek"])
    assert caught.value.code == 2
    assert "mosek is no stranger: give some of litserve, bentoml" in capsys.readouterr().err


def test_cosines_do_not_depend_on_lengths() -> None:
    rows = np.array([[3, 4], [0, 2]], np.float32)
    assert least_cosine(rows, rows * 5) == pytest.approx(1)
    assert least_cosine(rows, np.array([[3, 4], [2, 0]], np.float32)) == pytest.approx(0)
    assert np.isnan(least_cosine(np.zeros((1, 2), np.float32), rows[:1]))


def test_means_of_blocks_are_those_of_their_pixels() -> None:
    picture = Image.new("RGB", (384, 384))
    picture.paste((255, 0, 0), (24, 0, 48, 24))
    found = block_means(picture).reshape(16, 16, 3)
    assert found[0, 1].tolist() == [1, -1, -1]
    assert found[1, 0].tolist() == [-1, -1, -1]


SLEEP = "import time; time.sleep(60)"
SPAWN = (
    f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {SLEEP!r}], process_group=0); {SLEEP}"
)


@pytest.mark.system
def test_what_a_server_gives_a_group_of_its_own_ends_with_it(tmp_path: Path) -> None:
    child = ServerProcess("server", [sys.executable, "-c", SPAWN], {}, tmp_path)
    assert eventually(lambda: len(running.members(child.pid)) == 1)
    (helper,) = running.members(child.pid)
    running.end(child)
    assert child.exit_code() == -signal.SIGTERM
    assert not alive(helper.pid)


@pytest.mark.system
def test_nobody_elses_process_is_ended(tmp_path: Path) -> None:
    bystander = subprocess.Popen([sys.executable, "-c", SLEEP])
    try:
        child = ServerProcess("server", [sys.executable, "-c", SLEEP], {}, tmp_path)
        assert bystander.pid not in [one.pid for one in running.members(child.pid)]
        running.end(child)
        assert bystander.poll() is None
        assert psutil.pid_exists(bystander.pid)
    finally:
        bystander.kill()
        bystander.wait()


@pytest.mark.system
def test_a_server_that_ends_is_told_with_its_last_words(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "print('no such model'); raise SystemExit(1)"]
    began = time.monotonic()
    with (
        pytest.raises(SetUpError, match=r"^server ended; its log ends with:\nno such model$"),
        running.running("server", command, {}, tmp_path, lambda: False),
    ):
        pass
    assert time.monotonic() - began < 30
