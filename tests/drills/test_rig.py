"""What a drill acts through: stand-ins that say nothing, windows that do not come, processes that stay."""

import os
import signal
import sys
from pathlib import Path
from subprocess import TimeoutExpired

import pytest

from tests.drills import processes
from tests.drills import rig as rigs
from tests.drills.processes import Failure, Target, heard
from tests.drills.rig import Rig
from tests.drills.seen import written


@pytest.mark.parametrize(
    ("sent", "lines"), [(b"ready\ntold\n", ["ready", "told"]), (b"rea", ["rea", ""]), (b"", [""])]
)
def test_a_line_is_heard_or_the_time_is_over(sent: bytes, lines: list[str]) -> None:
    near, far = os.pipe()
    with open(near, "rb"), open(far, "wb", buffering=0) as pipe:
        pipe.write(sent)
        assert [heard(near, 0.01) for _ in lines] == lines


def test_a_stand_in_that_says_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "HEAR_S", 0.05)
    target = Target("no_script", tmp_path / "journal", 0, os.environ, ())
    monkeypatch.setattr(target, "_command", [sys.executable, "-S", "-c", "import time; time.sleep(60)"])
    with pytest.raises(Failure, match=r"^a stand-in server said '' within 0.05 s, and not 'ready'$"):
        target.start()
    target.kill()


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
