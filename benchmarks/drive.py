"""Studies and services as processes of their own, ended with the benchmark."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.locustfiles.console import ONCE, ROOT, Console, few_pictures
from tests.processes import free_port, is_listening, wait_until
from users.backends.asking import read_counters
from users.endpoint import Endpoint

LOCUST = str(Path(sys.executable).with_name("locust"))
STEP7 = "locustfiles/step7.py"


class Drive:
    """A folder for results, and the processes started in it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._consoles: list[Console] = []

    def start(self, name: str, *command: str) -> Console:
        """A command with its output in a file; its results go to a folder of its own."""
        folder = self._folder / name
        folder.mkdir()
        console = Console(command, folder)
        self._consoles.append(console)
        return console

    def service(self, name: str, *options: str) -> Endpoint:
        """The stand-in for the PyTorch service, listening."""
        port = free_port()
        self.start(name, sys.executable, str(ROOT / "tests/fake_service.py"), str(port), *options)
        wait_until(lambda: is_listening(port), 20)
        return Endpoint("pytorch-http", "pytorch", "http", "jpeg", f"127.0.0.1:{port}")

    def study(self, name: str, locustfile: str, service: Endpoint, *options: str) -> Console:
        """A headless study of the service alone, each cell once."""
        folder = str(self._folder / name)
        target = ("--pytorch-url", service.address, "--results-dir", folder)
        # Each picture's golden embedding is fetched before the load, by a service that takes its time.
        own = (*target, *few_pictures(), *ONCE)
        return self.start(name, LOCUST, "-f", locustfile, "--headless", *own, *options)

    def end(self) -> None:
        """End what still runs."""
        for console in self._consoles:
            console.end()


@contextmanager
def drive() -> Iterator[Drive]:
    """A Drive in a temporary folder."""
    with tempfile.TemporaryDirectory() as folder:
        made = Drive(Path(folder))
        try:
            yield made
        finally:
            made.end()


def served(service: Endpoint) -> int:
    """How many requests the service has counted."""
    return int(read_counters(service)["counters"]["requests"])


def records(console: Console) -> list[dict[str, Any]]:
    """The whole lines of a ledger that may still be growing."""
    text = (console.result() / "ledger.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines() if line.endswith("}")]
