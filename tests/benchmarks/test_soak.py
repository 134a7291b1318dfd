"""A soak as a command: how long, of what, and what it refuses."""

import sys
from pathlib import Path

import pytest

from benchmarks import soak as program
from benchmarks.soak import command, length, main, parsed

pytestmark = pytest.mark.system


@pytest.mark.parametrize("more", ["--quick", "--only=grpc"])
def test_the_page_takes_no_part_for_the_whole(more: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--write", more])
    assert ended.value.code == 2
    assert "leave out --only and --quick" in capsys.readouterr().err
    assert parsed(["--write"]).write


def test_a_study_that_was_refused_says_why(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    refused = [sys.executable, "-c", "import sys; print('no port is free'); sys.exit(2)"]
    monkeypatch.setattr(program, "command", lambda *_: refused)
    assert main(["--quick"]) == 2
    said = capsys.readouterr().out
    assert "there was no study to judge (exit code 2)" in said
    assert "no port is free" in said


def test_it_runs_the_command_that_a_user_would(tmp_path: Path) -> None:
    words = command(tmp_path, length(60, "", quick=True), 50.0, 0.0)
    assert words[1:8] == ["-m", "swarm", "run", "-f", "locustfiles/step7.py", "--workers", "2"]
    assert words[words.index("--rates") + 1] == "50"
    assert "benchmarks/studies/leaking.py" in command(tmp_path, length(60, "", quick=True), 50.0, 50.0)
    with pytest.raises(SystemExit):
        parsed(["--minutes", "2"])
