"""What a process is tuned to: memory given back before a load, and words where no master answers."""

import locust  # noqa: F401  (first: it patches sockets and threads)

import os
import platform
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from swarm.distributed.worker_cell import give_back
from swarm.locust_patches import patches
from swarm.locust_patches.patches import is_orphan, telling

MB = 1_000_000


def test_a_worker_says_once_that_no_master_answers(
    capsys: pytest.CaptureFixture[str],
) -> None:
    runner: Any = SimpleNamespace(retry=0, master_host="10.0.0.5", master_port=5557)

    def connect(runner: Any) -> None:
        runner.retry += 1
        if runner.retry < 4:
            telling(connect)(runner)

    telling(connect)(runner)
    said = capsys.readouterr().err
    assert said.count("inferswarm: no master answers at 10.0.0.5:5557: is it there") == 1
    assert "--master-bind-host" in said
    assert said.endswith("Trying for 5 minutes\n")


def test_a_forked_worker_whose_master_has_gone_tries_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patches, "LOADED_BY", os.getpid() + 1)
    runner: Any = SimpleNamespace(retry=0)
    tries: list[int] = []

    def connect(runner: Any) -> None:
        tries.append(runner.retry)
        runner.retry += 1
        telling(connect)(runner)

    with pytest.raises(SystemExit):
        telling(connect)(runner)
    assert tries == [0]
    loaded_by = patches.LOADED_BY
    assert not is_orphan(loaded_by, 1)
    assert not is_orphan(loaded_by + 1, loaded_by)
    assert is_orphan(loaded_by + 1, 1)


def resident() -> int:
    found: int = psutil.Process().memory_info().rss
    return found


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other allocators are not asked")
def test_memory_between_what_is_kept_is_given_back() -> None:
    made = [os.urandom(90_000) for _ in range(600)]
    kept = made[::7]
    del made
    before = resident()
    give_back()
    assert before - resident() > 20 * MB
    assert len(kept) == 86
