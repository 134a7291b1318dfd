"""What the embedded servers' supervisor says, and what is said of it."""

import locust  # noqa: F401  (first: it patches sockets and threads)

import json
import subprocess
import sys

import pytest

from swarm.errors import UsageError
from swarm.targets.embedded import EmbeddedServers

READY = {"event": "ready", "logs": "logs"}
ERROR = {"event": "error", "text": "no servers here"}


@pytest.mark.parametrize("event", [READY, ERROR], ids=["ready", "refused"])
def test_an_end_is_unexpected_only_of_servers_that_were_ready(event: dict[str, str]) -> None:
    said: list[str] = []
    servers = EmbeddedServers(said.append)
    told = [sys.executable, "-c", f"print({json.dumps(event)!r}); raise SystemExit(2)"]
    servers._process = subprocess.Popen(told, stdout=subprocess.PIPE, text=True)
    servers._listen(servers._process)
    text = "the embedded servers ended unexpectedly (exit code 2)"
    if event is READY:
        assert (said, servers.fault("onnx")) == ([f"servers: {text}"], text)
    else:
        assert (said, servers.fault("onnx")) == ([], "")
        with pytest.raises(UsageError, match="no servers here"):
            servers._ready.get()
