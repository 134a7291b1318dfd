"""What the master decides before it acts."""

from types import SimpleNamespace
from typing import Any

import pytest

from swarm.study.master import Master, emulation


@pytest.mark.parametrize(
    ("asked", "own", "emulated"),
    [
        ("", "", ""),
        ("", "rtx4080", "rtx4080"),
        ("40+1.3", "rtx4080", "40+1.3"),
        ("none", "rtx4080", ""),
        ("none", "", ""),
    ],
)
def test_what_embedded_servers_emulate(asked: str, own: str, emulated: str) -> None:
    assert emulation(asked, own) == emulated


def test_settings_and_shared_inputs_are_put_back_though_the_report_fails() -> None:
    done: list[str] = []

    def close(status: str, reason: str) -> tuple[str, int]:
        done.append("report")
        raise RuntimeError("a bug in a table")

    master, finish = Master.__new__(Master), SimpleNamespace(close=close)
    environment: Any = SimpleNamespace(process_exit_code=3)
    control: Any = SimpleNamespace(restore=lambda: done.append("put back"))
    master._environment, master._control = environment, control
    master._forms = SimpleNamespace(close=lambda: done.append("taken away"))  # type: ignore[assignment]
    with pytest.raises(RuntimeError, match="a bug"):
        master._end(finish, "complete", "")  # type: ignore[arg-type]
    assert (done, environment.process_exit_code) == (["report", "put back", "taken away"], 3)
