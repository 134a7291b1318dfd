"""How long the report at the end of a study may take, and how verdicts are asked for."""

import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from swarm.output import report_process
from swarm.output.report_process import patience_s


def test_a_larger_ledger_may_take_longer(tmp_path: Path) -> None:
    assert patience_s(tmp_path) == 60
    with open(tmp_path / "ledger.jsonl", "wb") as ledger:
        ledger.truncate(725_000_000)
    assert patience_s(tmp_path) == 60 + 362.5


@pytest.mark.parametrize(
    ("ends", "why"),
    [
        (OSError(24, "Too many open files"), "Too many open files"),
        (subprocess.CompletedProcess([], -signal.SIGABRT, "", ""), "its process was ended by SIGABRT"),
    ],
)
def test_where_no_process_can_be_started_or_it_is_killed_the_report_is_to_be_made_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends: Any, why: str
) -> None:
    def run(*_: Any, **__: Any) -> Any:
        if isinstance(ends, OSError):
            raise ends
        return ends

    monkeypatch.setattr(subprocess, "run", run)
    made = f"make it later with inferswarm report {tmp_path}"
    assert report_process.show(tmp_path) == (f"inferswarm: the report cannot be made ({why}); {made}", None)


class Ran:
    """Stands for subprocess.run, and keeps what it was asked."""

    def __init__(self, code: int = 0, late: bool = False) -> None:
        self._code, self._late = code, late

    def __call__(self, words: list[str], **ways: Any) -> subprocess.CompletedProcess[str]:
        self.words, self.ways = words[1:], ways
        if self._late:
            raise subprocess.TimeoutExpired(words, ways["timeout"])
        return subprocess.CompletedProcess(words, self._code, "tables\n", "and a word\n")


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> Ran:
    found = Ran(3)
    monkeypatch.setattr(subprocess, "run", found)
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    return found


def test_the_report_comes_with_its_exit_code(ran: Ran, tmp_path: Path) -> None:
    assert report_process.show(tmp_path) == ("tables\nand a word", 3)
    assert ran.words == ["-m", "reports", "report", str(tmp_path), "--brief"]
    report_process.show(tmp_path, tables=True)
    assert ran.words == ["-m", "reports", "report", str(tmp_path)]


def test_verdicts_at_the_end_are_for_everybody(ran: Ran, tmp_path: Path) -> None:
    thresholds = tmp_path / "thresholds.toml"
    assert report_process.gate(tmp_path, thresholds, str(tmp_path)) == ("tables\nand a word", 3)
    words = ["gate", str(tmp_path), "--thresholds", str(thresholds), "--baseline", str(tmp_path)]
    assert ran.words[2:] == words
    assert ran.ways["timeout"] == 120
    assert "GITHUB_ACTIONS" in ran.ways["env"]
    report_process.gate(tmp_path, thresholds, str(tmp_path), tables=True)
    assert ran.words[2:] == [*words, "--all"]


def test_verdicts_meanwhile_are_for_nobody(ran: Ran, tmp_path: Path) -> None:
    report_process.gate(tmp_path, tmp_path / "thresholds.toml", "", tmp_path / "elsewhere")
    assert ran.words[-3:] == ["--quiet", "--out", str(tmp_path / "elsewhere")]
    assert "GITHUB_ACTIONS" not in ran.ways["env"]


def test_what_takes_too_long_is_left_to_the_person(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(subprocess, "run", Ran(late=True))
    text, code = report_process.gate(tmp_path, tmp_path / "thresholds.toml", "")
    assert code is None
    assert text.endswith(f"make it again with inferswarm gate {tmp_path}")
