"""Processes that a killed launcher has left."""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from swarm.launcher.orphans import end_left_behind, launcher_of, left_behind, new_folder, remove_folders
from swarm.owner import identity

SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]


def sleeper(owner: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(SLEEP, env={**os.environ, "INFERSWARM_LAUNCHER": owner})


def gone_owner() -> str:
    """What another process of this one's number was, before."""
    pid, _, space = identity().split("-")
    return f"{pid}-1-{space}"


def test_whose_a_process_is() -> None:
    with sleeper(identity()) as own, sleeper(gone_owner()) as orphan:
        try:
            assert launcher_of(own.pid) == identity()
            found = left_behind()
            assert orphan.pid in found
            assert own.pid not in found
        finally:
            own.kill()
            orphan.kill()


@pytest.mark.parametrize("owner", ["abc", "1-2", "999999999-1-1", "4-5-x"])
def test_marks_of_strangers_and_of_containers_are_nobodys(owner: str) -> None:
    with sleeper(owner) as stranger:
        try:
            assert stranger.pid not in left_behind()
        finally:
            stranger.kill()


def test_temporary_folders_go_with_their_owners(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    kept = new_folder("workers")
    (tmp_path / f"inferswarm-workers-{gone_owner()}-abc").mkdir()
    (tmp_path / "inferswarm-else").mkdir()
    remove_folders()
    assert {path.name for path in tmp_path.iterdir()} == {kept.name, "inferswarm-else"}


def test_they_have_their_time_and_are_killed_after_it() -> None:
    said: list[str] = []
    with sleeper("x") as orphan:
        end_left_behind(said.append, patience_s=0.3, find=lambda: [orphan.pid])
        assert orphan.wait(10) == -signal.SIGKILL
    assert said == ["a killed study has left 1 process: waiting for the end"]


def test_those_that_end_by_themselves_are_not_killed() -> None:
    seen, killed = [[4, 5], [5], []], []
    end_left_behind(killed.append, find=lambda: seen.pop(0), sleep=lambda seconds: None)
    assert seen == []
    end_left_behind(killed.append, find=list)
    assert len(killed) == 1, "told once, nobody was killed, and nothing is said where nothing is left"
