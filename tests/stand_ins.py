"""Stand-in servers in processes of their own, for tests that need a real one on the other side."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.processes import free_port, is_listening, wait_until

HERE = Path(__file__).parent
PATIENCE_S = 30.0


@contextmanager
def stand_in(script: str, *options: str) -> Iterator[str]:
    """The address of `tests/SCRIPT`, once it listens; it is ended at the end."""
    port = free_port()
    process = subprocess.Popen([sys.executable, str(HERE / script), str(port), *options])
    try:
        wait_until(lambda: is_listening(port) or process.poll() is not None, PATIENCE_S)
        assert process.poll() is None, f"the stand-in ended with exit code {process.returncode}"
        yield f"127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()
