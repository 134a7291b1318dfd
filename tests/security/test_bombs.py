"""However much a server sends: the request fails as one with a bad reply, in time, and in little memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.security.bombs import BOMBS

ROOT = Path(__file__).parents[2]
MOST_MB, MOST_S = 64, 20
"""As SECURITY.md has it, and a request's own timeout."""


def asked(bomb: str, protocol: str, how: str) -> dict[str, Any]:
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    server = [sys.executable, "tests/security/bombs.py", bomb]
    with subprocess.Popen(
        server, cwd=ROOT, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as serving:
        assert serving.stdin is not None
        assert serving.stdout is not None
        command = [
            sys.executable,
            "tests/security/asking.py",
            serving.stdout.readline().strip(),
            protocol,
            how,
        ]
        try:
            done = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, timeout=90)
        finally:
            serving.stdin.close()
            serving.terminate()
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize("how", ["prepared", "library", "control"])
@pytest.mark.parametrize("bomb", BOMBS)
def test_over_http(bomb: str, how: str) -> None:
    found = asked(bomb, "http", how)
    # That one is JSON; what it lacks as an embedding is found by who looks at its shape.
    assert found["kind"] == "bad-reply" or bomb == "lists", found
    assert found["grown_mb"] < MOST_MB, found
    assert found["s"] < MOST_S, found


@pytest.mark.parametrize("how", ["prepared"])
def test_over_grpc(how: str) -> None:
    found = asked("unpacking", "grpc", how)
    assert found["kind"] == "bad-reply", found
    assert found["grown_mb"] < MOST_MB, found
    assert found["s"] < MOST_S, found
