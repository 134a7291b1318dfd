"""A runner that passes messages at once, and a clock that only sleeping moves."""

import locust  # noqa: F401  (first: it patches sockets and threads)

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from swarm.distributed.part import OF_PACER
from swarm.distributed.protocol import DRAINED

NOTHING_DONE: dict[str, int | None] = {**dict.fromkeys(DRAINED, 0), **dict.fromkeys(OF_PACER)}
"""What a worker says of a cell whose closed-loop users have sent nothing."""


@dataclass
class Message:
    """What Locust deps to a listener."""

    data: dict[str, Any]
    node_id: str = "local"


class FakeRunner:
    """Locust's `register_message` and `send_message`, and a log of what was sent."""

    def __init__(self) -> None:
        self.listeners: dict[str, Callable[..., None]] = {}
        self.sent: list[tuple[str, dict[str, Any], str | None]] = []

    def register_message(self, kind: str, listener: Callable[..., None]) -> None:
        self.listeners[kind] = listener

    def send_message(self, kind: str, data: dict[str, Any], client_id: str | None = None) -> None:
        self.sent.append((kind, data, client_id))

    def deliver(self, kind: str, data: dict[str, Any], node_id: str = "local") -> None:
        self.listeners[kind](environment=None, msg=Message(data, node_id))


class FakeClock:
    """Seconds since its making; `sleep` moves it, and calls `on_tick` each time."""

    def __init__(self) -> None:
        self.now = 0.0
        self.on_tick: Callable[[], None] = lambda: None

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.on_tick()
