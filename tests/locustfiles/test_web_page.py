"""A study from Locust's web page: started, stopped, started again, interrupted."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
import requests

from tests.locustfiles.conftest import StartService
from tests.locustfiles.console import (
    LOCUST,
    Console,
    all_gone,
    few_pictures,
    free_port,
    is_listening,
    wait_until,
)

pytestmark = pytest.mark.system


class Page:
    """Locust's web page, by the requests that its buttons send."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.url = f"http://127.0.0.1:{port}"

    def start(self, **fields: str) -> None:
        form = {"user_count": "1", "spawn_rate": "1", **fields}
        assert requests.post(f"{self.url}/swarm", form, timeout=5).json()["success"]

    def stop(self) -> None:
        assert requests.post(f"{self.url}/stop", timeout=20).json()["success"]

    def state(self) -> str:
        return str(requests.get(f"{self.url}/stats/requests", timeout=5).json()["state"])


def opened(consoles: list[Console], folder: Path, service: int) -> tuple[Console, Page]:
    """Locust with its web page, and the page."""
    port = free_port()
    arguments = ["--web-host", "127.0.0.1", "--web-port", str(port), "--results-dir", str(folder)]
    target = ("--pytorch-url", f"127.0.0.1:{service}", *few_pictures())
    console = Console([*LOCUST, *arguments, *target], folder)
    consoles.append(console)
    wait_until(lambda: is_listening(port), 20, lambda: console.text)
    return console, Page(port)


def test_sigterm_under_the_web_page_keeps_what_was_measured(
    start_service: StartService, consoles: list[Console], tmp_path: Path
) -> None:
    console, page = opened(consoles, tmp_path, start_service("--delay-ms", "60"))
    page.start(seconds="3")
    console.wait_for("[1/4]", 30)
    console.signal(signal.SIGTERM)
    assert console.wait(10) == 3, console.text
    assert console.ledger()[-1]["status"] == "interrupted"
    assert (console.result() / "report.html").exists()
    assert not console.left_behind()


def test_the_web_page_starts_stops_and_starts_again(
    start_service: StartService, consoles: list[Console], tmp_path: Path
) -> None:
    console, page = opened(consoles, tmp_path, start_service())
    assert "no host attribute" not in requests.get(page.url, timeout=5).text
    page.start(seconds="30")
    console.wait_for("results in", 20)
    page.stop()
    wait_until(lambda: page.state() == "stopped", 20, lambda: console.text)
    page.start(iterations="nope")
    console.wait_for("--iterations nope: give 1 or more", 10)
    page.start(iterations="3", seconds="0.2")
    console.wait_for("[4/4]", 30)
    wait_until(lambda: console.text.count("The whole report:") == 2, 20, lambda: console.text)
    folders = sorted(path for path in tmp_path.iterdir() if path.is_dir())
    footers = [(path / "ledger.jsonl").read_text().splitlines()[-1] for path in folders]
    assert ["interrupted" in footer for footer in footers] == [True, False]
    assert all((path / "report.html").exists() for path in folders)
    family = console.family()
    console.signal(signal.SIGINT)
    console.wait(10)
    assert all_gone(family)
    assert not is_listening(page.port)
