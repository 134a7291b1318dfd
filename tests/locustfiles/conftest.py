"""Consoles that end with their test, and a stand-in service to send to."""

import locust  # noqa: F401  (first: it patches sockets and threads)

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.locustfiles.console import OPENED, Console
from tests.processes import free_port, is_listening, wait_until

FAKE = str(Path(__file__).parent.parent / "fake_service.py")
StartService = Callable[..., int]


@pytest.fixture(autouse=True)
def ended() -> Iterator[None]:
    """Consoles that a test has opened end with it, pass or fail."""
    before = len(OPENED)
    yield
    for console in OPENED[before:]:
        console.end()


@pytest.fixture
def start_service(tmp_path_factory: pytest.TempPathFactory) -> StartService:
    """Start a stand-in service with options; its port."""

    def start(*options: str) -> int:
        port = free_port()
        folder = tmp_path_factory.mktemp("service")
        Console([sys.executable, FAKE, str(port), *options], folder)
        wait_until(lambda: is_listening(port), 20)
        return port

    return start
