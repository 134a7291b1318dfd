"""Processes that a killed launcher has left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

from swarm.orphans import end_left_behind, identity, launcher_of, left_behind, mark

SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]


def sleeper(owner: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(SLEEP, env={**os.environ, "INFERSWARM_LAUNCHER": owner})


def test_whose_a_process_is() -> None:
    with sleeper(mark()["INFERSWARM_LAUNCHER"]) as own, sleeper("999999999-1") as orphan:
        try:
            assert launcher_of(own.pid) == identity(os.getpid())
            found = left_behind()
            assert orphan.pid in found
            assert own.pid not in found
            # Another process has the launcher's number now.
            assert identity(os.getpid()) != f"{os.getpid()}-1"
        finally:
            own.kill()
            orphan.kill()


def test_a_launcher_of_the_same_number_is_another() -> None:
    with sleeper(f"{os.getpid()}-1") as orphan:
        try:
            assert orphan.pid in left_behind()
        finally:
            orphan.kill()


def test_they_have_their_time_and_are_killed_after_it() -> None:
    said: list[str] = []
    with sleeper("999999999-1") as orphan:
        end_left_behind(said.append, patience_s=0.3, find=lambda: [orphan.pid])
        assert orphan.wait(10) == -signal.SIGKILL
    assert said == ["a run that was killed has left 1 processes: waiting for them to end"]


def test_those_that_end_by_themselves_are_not_killed() -> None:
    seen, killed = [[4, 5], [5], []], []
    end_left_behind(killed.append, find=lambda: seen.pop(0), sleep=lambda seconds: None)
    assert seen == []
    assert len(killed) == 1, "told once, and nobody was killed"


def test_nothing_is_said_where_nothing_is_left() -> None:
    said: list[str] = []
    end_left_behind(said.append, find=list)
    assert said == []
