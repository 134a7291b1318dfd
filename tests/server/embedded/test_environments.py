"""Folders that tritonserver's Python backend leaves in /tmp: ours are removed, others' are not."""

import os
import subprocess
import sys
from pathlib import Path

from server.embedded.leftovers import NOTE, Environments, present, remove_orphaned_environments


def made(folder: Path, name: str) -> Path:
    found = folder / f"python_env_{name}"
    found.mkdir()
    return found


def test_those_that_come_while_servers_start_are_removed_at_the_end(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    before, other = made(tmp_path, "before"), tmp_path / "another"
    other.mkdir()
    with Environments(tmp_path, notes) as environments:
        own = made(tmp_path, "own")
        environments.note()
        (note,) = notes.iterdir()
        assert (note.name, note.read_text()) == (NOTE.format(pid=os.getpid()), str(own))
        later = made(tmp_path, "later")
    assert present(tmp_path) == {before, later}
    assert other.exists()
    assert list(notes.iterdir()) == []


def test_those_of_servers_that_never_came_up_too_and_none_that_is_filled(tmp_path: Path) -> None:
    with Environments(tmp_path, tmp_path / "notes"):
        made(tmp_path, "own")
        filled = made(tmp_path, "filled")
        (filled / "file").touch()
    assert present(tmp_path) == {filled}


def test_what_a_killed_supervisor_has_noted_is_removed_by_the_next(tmp_path: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    gone, alive = made(tmp_path, "gone"), made(tmp_path, "alive")
    for pid, folder in ((ended.pid, gone), (os.getppid(), alive)):
        (tmp_path / NOTE.format(pid=pid)).write_text(str(folder))
    (tmp_path / NOTE.format(pid="x")).write_text(str(alive))
    remove_orphaned_environments(tmp_path)
    assert present(tmp_path) == {alive}
    assert not (tmp_path / NOTE.format(pid=ended.pid)).exists()
