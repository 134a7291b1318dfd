"""A results folder of somebody else's is shown, and nothing outside it is written."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.swarm.web_stand import a_book

ROOT = Path(__file__).parents[2]
WRITTEN = ("study.json", "cells.csv", "timeline.csv", "summary.md", "report.html")
PIDS = 400
"""Numbers ahead of ours that the program's own may be, where names are made of it."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "results"
    made.mkdir()
    a_book().write(made)
    return made


def shown(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "reports", "show", str(folder), "--quiet"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)


def test_no_link_leads_what_is_written_elsewhere(folder: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    last = int(Path("/proc/loadavg").read_text().split()[-1])
    most = int(Path("/proc/sys/kernel/pid_max").read_text())
    for name in WRITTEN:
        (folder / name).symlink_to(victim)
        for number in range(PIDS):
            (folder / f".{name}.{(last + number) % most}").symlink_to(victim)
    done = shown(folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert victim.read_text() == "precious"
    for name in WRITTEN:
        assert not (folder / name).is_symlink()
        assert (folder / name).stat().st_size > 100


def test_a_folder_in_a_files_place_is_told_and_nothing_is_left(folder: Path) -> None:
    (folder / "summary.md").mkdir()
    before = set(os.listdir(folder))
    done = shown(folder)
    assert done.returncode == 2
    assert "summary.md" in done.stderr or "cannot be written" in done.stderr
    assert {name for name in set(os.listdir(folder)) - before if name.startswith(".")} == set()
