"""Stand-in servers in processes of their own, for tests that need a real one on the other side."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).parent
PATIENCE_S = 30.0


@contextmanager
def stand_in(script: str, *options: str) -> Iterator[str]:
    """The address of `tests/SCRIPT`, once it listens; it is ended at the end."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port: int = held.getsockname()[1]
    process = subprocess.Popen([sys.executable, str(HERE / script), str(port), *options])
    try:
        wait_for(port, process)
        yield f"127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


def wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    """Until somebody accepts connections there."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        with socket.socket() as asked:
            if asked.connect_ex(("127.0.0.1", port)) == 0:
                return
        assert process.poll() is None, f"the stand-in ended with exit code {process.returncode}"
        assert time.monotonic() < deadline, "the stand-in does not listen"
        time.sleep(0.05)
