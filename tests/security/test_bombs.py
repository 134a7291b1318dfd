"""However much a server sends: the request fails as one with a bad reply, in time, and in little memory."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.security.bombs import BOMBS, UNPACKING

ROOT = Path(__file__).parents[2]
ENVIRON = {**os.environ, "PYTHONPATH": str(ROOT)}
MOST_MB, MOST_S = 64, 20
"""As SECURITY.md has it, and a request's own timeout."""


@pytest.fixture(scope="module")
def addresses() -> Iterator[dict[str, str]]:
    """Of the servers, by what they do."""
    command, pipe = [sys.executable, "tests/security/bombs.py"], subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, env=ENVIRON, stdin=pipe, stdout=pipe, text=True) as serving:
        assert serving.stdin is not None
        assert serving.stdout is not None
        yield json.loads(serving.stdout.readline())
        serving.stdin.close()
        serving.terminate()


@pytest.mark.parametrize("how", ["prepared", "library", "control", "grpc"])
def test_it_is_a_bad_reply(addresses: dict[str, str], how: str) -> None:
    asked = {addresses[name]: name for name in ([UNPACKING] if how == "grpc" else BOMBS)}
    command = [sys.executable, "tests/security/asking.py", how, *asked]
    done = subprocess.run(command, cwd=ROOT, env=ENVIRON, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr
    for address, found in json.loads(done.stdout.splitlines()[-1]).items():
        name = asked[address]
        # That one is JSON; what it lacks as an embedding is found by who looks at its shape.
        assert found["kind"] == "bad-reply" or name == "lists", (name, found)
        assert found["grown_mb"] < MOST_MB, (name, found)
        assert found["s"] < MOST_S, (name, found)
