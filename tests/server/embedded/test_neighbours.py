"""What several `up`s share: shared memory, folders of logs, and the lock to start."""

import os
from types import SimpleNamespace

import pytest

from server.embedded import leftovers
from server.embedded.events import Events
from server.embedded.up import start_lock
from server.errors import SetUpError


def test_shared_memory_of_supervisors_that_are_gone_is_removed(tmp_path, monkeypatch):
    monkeypatch.setattr(leftovers, "FOLDER", tmp_path)
    monkeypatch.setattr(leftovers, "PROC", tmp_path / "proc")
    (tmp_path / "proc" / "7").mkdir(parents=True)
    kept = {"inferswarm_7_onnx_b", "inferswarm_7_openvino_c", "inferswarm_x_y", "other"}
    for name in ("inferswarm_6_onnx_a", *kept):
        (tmp_path / name).touch()
    leftovers.remove_orphaned_memory()
    assert {path.name for path in tmp_path.iterdir() if path.is_file()} == kept
    leftovers.remove_shared_memory("inferswarm_7_onnx_")
    assert not (tmp_path / "inferswarm_7_onnx_b").exists()


def test_too_little_shared_memory_is_said_before_anything_starts(tmp_path, monkeypatch):
    monkeypatch.setattr(leftovers, "FOLDER", tmp_path / "none")
    with pytest.raises(SetUpError, match=r"none has 0 MB free, and tritonserver needs 24 there: "):
        leftovers.check_shared_memory(24)
    monkeypatch.setattr(leftovers, "FOLDER", tmp_path)
    monkeypatch.setattr("os.statvfs", lambda _: SimpleNamespace(f_bavail=47 << 8, f_frsize=4096))
    with pytest.raises(SetUpError) as caught:
        leftovers.check_shared_memory(48)
    assert str(caught.value) == (
        f"{tmp_path} has 47 MB free, and tritonserver needs 48 there: "
        f"run `mount -o remount,size=1g {tmp_path}`, or start the container with --shm-size=1g."
    )
    monkeypatch.setattr("os.statvfs", lambda _: SimpleNamespace(f_bavail=48 << 8, f_frsize=4096))
    leftovers.check_shared_memory(48)


def test_every_model_that_computes_has_its_share():
    """Two servers as `make step7` starts them fit into the 64 MB that a container has by itself."""
    assert leftovers.needed_mb(2, 1, 0) == 50
    assert leftovers.needed_mb(1, 2, 2) == 97


def test_logs_are_kept_of_those_that_run_and_of_the_latest_that_are_gone(tmp_path, monkeypatch):
    monkeypatch.setenv("INFERSWARM_CACHE", str(tmp_path))
    monkeypatch.setattr(leftovers, "PROC", tmp_path / "proc")
    monkeypatch.setattr(leftovers, "KEPT", 2)
    (tmp_path / "proc" / "10").mkdir(parents=True)
    for when, name in enumerate(("10", "14", "13", "12", "11", "mine")):
        (tmp_path / "logs" / name).mkdir(parents=True)
        (tmp_path / "logs" / name / "onnx.log").touch()
        os.utime(tmp_path / "logs" / name, (when, when))
    leftovers.remove_old_logs()
    assert {path.name for path in (tmp_path / "logs").iterdir()} == {"10", "11", "12", "mine"}
    assert leftovers.log_folder() == tmp_path / "logs" / str(os.getpid())


def test_the_second_to_start_waits_for_the_first(tmp_path, capsys):
    lock, pauses = tmp_path / "ports.lock", []
    first = start_lock(Events(as_json=False), pytest.fail, 10, lock)
    first.__enter__()

    def pause():
        pauses.append(None)
        if len(pauses) == 3:
            first.__exit__(None, None, None)

    with start_lock(Events(as_json=False), pause, 10, lock):
        assert len(pauses) == 3
        assert capsys.readouterr().out == "waiting for another `inferswarm up` to finish starting...\n"


def test_who_waits_too_long_for_the_lock_is_told(tmp_path):
    lock, clock = tmp_path / "ports.lock", iter(range(0, 1000, 6))
    with start_lock(Events(as_json=True), pytest.fail, 10, lock), pytest.raises(SetUpError) as caught:  # noqa: SIM117
        with start_lock(Events(as_json=True), lambda: None, 10, lock, now=lambda: next(clock)):
            pass
    assert str(caught.value) == (
        "another `inferswarm up` has been starting for more than 10 s: "
        "stop it, or wait longer with --start-timeout-s."
    )
    assert next(clock) == 18
