"""What other users of this machine may read of what ours runs, and where they may stand in its way."""

import os
import stat
import threading
from pathlib import Path

import pytest

from swarm.output.results_folder import new_folder
from tests.security.test_model_control import tritonserver


def for_others(path: Path) -> int:
    """What a file's mode lets others do."""
    return stat.S_IMODE(path.stat().st_mode) & 0o077


@pytest.mark.system
def test_logs_and_shared_memory_of_servers_are_their_owners_alone(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    with tritonserver("--log-dir", str(logs)) as found:
        started = [path for path in Path("/dev/shm").glob("inferswarm_*_emulated_*") if is_ours(path, found)]
        assert started
        assert [path for path in (logs, *started) if for_others(path)] == []


def is_ours(path: Path, found: dict[str, int]) -> bool:
    """Whether a server's supervisor, its parent, has made it."""
    parent = Path(f"/proc/{found['pid']}/stat").read_text().rpartition(")")[2].split()[1]
    return path.name.split("_")[1] == parent


@pytest.mark.system
def test_what_another_has_laid_in_shared_memory_stops_no_start(tmp_path: Path) -> None:
    # As another user's file, which cannot be removed: not even root unlinks a folder.
    laid = Path(f"/dev/shm/inferswarm_{2**22 - 1}_x")
    laid.mkdir()
    try:
        with tritonserver() as found:
            assert found["pid"]
    finally:
        laid.rmdir()


def test_studies_that_start_in_the_same_second_share_no_folder(tmp_path: Path) -> None:
    made: list[Path] = []
    ready = threading.Barrier(16)

    def make() -> None:
        ready.wait()
        made.append(new_folder(tmp_path, "step7"))

    threads = [threading.Thread(target=make) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(made)) == len(made) == 16
    assert {for_others(folder / "logs") for folder in made} == {0}


def test_a_link_in_the_way_of_a_folder_is_passed_by(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = tmp_path / "elsewhere"
    first = new_folder(tmp_path / "results", "step7")
    second = first.with_name(f"{first.name}-2")
    second.symlink_to(elsewhere)
    os.rename(first, first.with_name("kept"))
    first.symlink_to(elsewhere)
    found = new_folder(tmp_path / "results", "step7")
    assert not found.is_symlink()
    assert not elsewhere.exists()
