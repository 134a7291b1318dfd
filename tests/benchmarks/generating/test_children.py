"""The processes of benchmarks/generator.py: on their core, in their time, and never left over."""

import os
import socket
import subprocess
import sys
import time
from typing import Any

import pytest

from benchmarks.generating.children import Hung, null_server, run

CORE = min(os.sched_getaffinity(0))
TELL = "import os; print(*os.sched_getaffinity(0)); sum(range(10**6)); raise SystemExit(3)"


def test_a_process_runs_on_its_core_and_leaves_ours_alone() -> None:
    before = os.sched_getaffinity(0)
    done = run([sys.executable, "-c", TELL], CORE, 60)
    assert (done.text, done.code) == (f"{CORE}\n", 3)
    assert 0 < done.cpu_s <= done.wall_s
    assert os.sched_getaffinity(0) == before


def test_a_process_that_hangs_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    began: list[subprocess.Popen[str]] = []
    popen = subprocess.Popen

    def noted(*args: Any, **more: Any) -> Any:
        began.append(popen(*args, **more))
        return began[0]

    monkeypatch.setattr(subprocess, "Popen", noted)
    with pytest.raises(Hung):
        run([sys.executable, "-c", "import time; time.sleep(600)"], CORE, 0.1)
    with pytest.raises(ProcessLookupError):
        os.kill(began[0].pid, 0)


def test_a_null_server_listens_and_ends_with_its_block() -> None:
    with null_server("null_http", CORE) as port, socket.create_connection(("127.0.0.1", port)) as sock:
        sock.sendall(b"GET /v2/health/ready HTTP/1.1\r\n\r\n")
        assert sock.recv(100).startswith(b"HTTP/1.1 200 OK")
    assert refused(port)


def refused(port: int) -> bool:
    """Whether nobody listens there any more."""
    for _ in range(100):
        with socket.socket() as asked:
            if asked.connect_ex(("127.0.0.1", port)):
                return True
        time.sleep(0.02)
    return False
