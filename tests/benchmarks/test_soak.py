"""A soak as a command: how long, of what, and what it refuses."""

import sys
from pathlib import Path

import pytest

from benchmarks import soak as program
from benchmarks.soak import CELLS, EVERY_CELL, command, length, main, parsed, result_of
from reports.ledger.ledger import FILE_NAME

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


def test_a_result_is_where_the_ledger_is(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    assert result_of(tmp_path) is None
    (tmp_path / "step7").mkdir()
    (tmp_path / "step7" / FILE_NAME).touch()
    assert result_of(tmp_path) == tmp_path / "step7"


def test_how_long_a_soak_takes() -> None:
    hour, quick = length(60, "", quick=False), length(60, "", quick=True)
    assert (hour.cells, hour.seconds, hour.skipped_s, hour.every_s) == (EVERY_CELL, 1_200, 180, 5)
    assert (quick.cells, quick.seconds, quick.skipped_s, quick.every_s) == (CELLS["http"], 100, 25, 1)
    assert (hour.seconds - hour.skipped_s) // 60 // 3 >= 5


def test_it_runs_the_command_that_a_user_would(tmp_path: Path) -> None:
    words = command(tmp_path, length(60, "", quick=True), 50.0, 0.0)
    assert words[1:8] == ["-m", "swarm", "run", "-f", "locustfiles/step7.py", "--workers", "2"]
    assert words[words.index("--rates") + 1] == "50"
    assert "benchmarks/studies/leaking.py" in command(tmp_path, length(60, "", quick=True), 50.0, 50.0)
    with pytest.raises(SystemExit):
        parsed(["--minutes", "2"])
