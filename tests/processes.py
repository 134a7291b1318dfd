"""Processes and ports that tests use, and waiting for them; without gevent, unless Locust patched it in."""

import socket
import time
from collections.abc import Callable
from pathlib import Path

PATIENCE_S, POLL_S = 20.0, 0.02


def alive(pid: int) -> bool:
    """Whether it runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def children(pid: int) -> list[int]:
    """The processes that it has started."""
    told = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(word) for word in told.read_text().split()]


def eventually(holds: Callable[[], object], seconds: float = PATIENCE_S) -> bool:
    """Whether it comes to hold."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_S)
    return True


def wait_until(
    holds: Callable[[], object], seconds: float, describe: Callable[[], str] = lambda: "nothing more is known"
) -> None:
    """Until it holds, or fail."""
    assert eventually(holds, seconds), f"not within {seconds} s: {describe()}"


def free_port() -> int:
    """A port nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as held:
        port: int = held.getsockname()[1]
    return port


def is_listening(port: int, address: str = "127.0.0.1") -> bool:
    """Whether somebody accepts connections there."""
    with socket.socket() as probe:
        return probe.connect_ex((address, port)) == 0
