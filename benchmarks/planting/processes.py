"""The processes of a set-up, each ended by its own id: servers, fronts, what burns CPU."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Any

from benchmarks.planting.setup import Setup
from tests.locustfiles.console import ROOT
from tests.processes import is_listening

BURN = "while True: pass"
LISTEN_S, LOOK_S, STOP_S = 20.0, 0.05, 5.0


@contextmanager
def servers(setup: Setup, host: str) -> Iterator[dict[str, Any]]:
    """One replica of the set-up's servers and what they said when they were ready."""
    command = [sys.executable, "-m", "server", "up", "--json", "--until-stdin-closes", "--host", host]
    with (
        setup.server_in() if setup.server_in else nullcontext(()) as before,
        subprocess.Popen(
            [*before, *command, *setup.server],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as started,
    ):
        assert started.stdout is not None
        events = (json.loads(line) for line in started.stdout)
        ready: dict[str, Any] = next((event for event in events if event["event"] in ("ready", "error")), {})
        if "endpoints" not in ready:
            raise SystemExit(f"{setup.name}: {ready.get('text', 'the servers ended at once')}")
        yield ready
        # Leaving the block closes its standard input, at which they stop.


def all_servers(setup: Setup, host: str, stack: ExitStack) -> list[dict[str, Any]]:
    """Every replica, one after the other, as long as the stack is open; none where the front answers."""
    count = setup.replicas if setup.server else 0
    return [stack.enter_context(servers(setup, host)) for _ in range(count)]


def address_of(setup: Setup, ready: dict[str, Any], host: str) -> str:
    """Where the endpoint is, as a host reaches it."""
    backend, protocol = setup.endpoint.split("-")
    told = ready["endpoints"][backend]
    place = told["url"].removeprefix("http://") if backend == "pytorch" else told[protocol]
    return f"{host}:{place.rpartition(':')[2]}"


@contextmanager
def process(*command: str) -> Iterator[None]:
    """A process that is killed at the end."""
    with subprocess.Popen(command) as started:
        try:
            yield
        finally:
            started.kill()


@contextmanager
def listener(command: Sequence[str], port: int, log: Path) -> Iterator[int]:
    """A process that listens on a port, which is yielded once it does; SystemExit where it does not."""
    with (
        log.open("w") as file,
        subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT
        ) as started,
    ):
        try:
            deadline = time.monotonic() + LISTEN_S
            while not is_listening(port):
                if started.poll() is not None or time.monotonic() > deadline:
                    raise SystemExit(f"{command[0]} does not listen: {log.read_text(errors='replace')}")
                time.sleep(LOOK_S)
            yield port
        finally:
            end(started)


def end(started: subprocess.Popen[Any]) -> None:
    """Ask a process to end, and kill it where it does not."""
    started.terminate()
    try:
        started.wait(STOP_S)
    except subprocess.TimeoutExpired:
        started.kill()
