"""What the master decides before it acts."""

import pytest

from swarm.master import emulation


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
