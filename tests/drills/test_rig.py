"""What a drill acts through: stand-ins that say nothing, windows that do not come, processes that stay."""

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from subprocess import TimeoutExpired

import pytest

from tests.drills import processes
from tests.drills import rig as rigs
from tests.drills.processes import Failure, Target, heard
from tests.drills.rig import Rig
from tests.drills.seen import written


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """Both ends."""
    ends = os.pipe()
    yield ends
    for end in ends:
        os.close(end)


@pytest.mark.parametrize(
    ("sent", "lines"), [(b"ready\ntold\n", ["ready", "told"]), (b"rea", ["rea", ""]), (b"", [""])]
)
def test_a_line_is_heard_or_the_time_is_over(pipe: tuple[int, int], sent: bytes, lines: list[str]) -> None:
    os.write(pipe[1], sent)
    assert [heard(pipe[0], 0.01) for _ in lines] == lines


def silent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str) -> Target:
    """A stand-in that runs other code."""
    target = Target("no_script", tmp_path / "journal", 0, os.environ, ())
    monkeypatch.setattr(target, "_command", [sys.executable, "-S", "-c", code])
    return target


def test_a_stand_in_that_says_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "HEAR_S", 0.05)
    target = silent(tmp_path, monkeypatch, "import time; time.sleep(60)")
    with pytest.raises(Failure, match=r"^a stand-in server said '' within 0.05 s, and not 'ready'$"):
        target.start()
    target.kill()


def test_a_stand_in_that_ends_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = silent(tmp_path, monkeypatch, "")
    with pytest.raises(Failure, match=r"^a stand-in server said '' within 30 s, and not 'ready'$"):
        target.start()
    target.kill()


def test_a_window_that_does_not_come(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rigs, "LOAD_S", 0.0)
    with Rig(tmp_path, tmp_path) as rig:
        monkeypatch.setattr(rig, "ended", lambda: False)
        with pytest.raises(Failure, match=r"^no window of the measure phase within 0 s$"):
            rig.keep_what_is_there()


def test_a_process_that_outlives_its_kill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rigs, "GONE_S", 0.05)
    monkeypatch.setattr(processes, "end_all", lambda mark: None)
    undone: list[str] = []
    rig = Rig(tmp_path, tmp_path).__enter__()
    rig.undo.callback(undone.append, "all")
    rig.run(way=(sys.executable, "-S", "-c", "import time; time.sleep(60)"))
    with pytest.raises(TimeoutExpired):
        rig.__exit__()
    assert undone == ["all"]
    assert rig.study is not None
    rig.study.send_signal(signal.SIGKILL)
    rig.study.wait()


def test_every_output_of_workers_is_read(tmp_path: Path) -> None:
    with Rig(tmp_path, tmp_path) as rig:
        results, removed = rig.results / "step7-1", rig.temporary / "inferswarm-workers"
        for folder in (results / "logs", removed):
            folder.mkdir(parents=True)
        (tmp_path / "worker-0.log").write_text("beside\n")
        (results / "logs" / "worker-1.log").write_text("kept\n")
        lost = removed / "worker-2.log"
        lost.write_text("before\n")
        rig.hold_logs()
        with lost.open("a") as log:
            log.write("Traceback\n")
        lost.unlink()
        assert written(rig, results) == "beside\nkept\nbefore\nTraceback\n"
