"""What the conductor acts through: tests pass fakes, and a clock that only sleeping moves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from reports.ledger import LedgerWriter
from swarm.collector import Collector
from swarm.crew import Crew
from swarm.folder import utc_now
from users.endpoint import Endpoint


@dataclass
class Hands:
    """`spawn` brings an endpoint's users to a count; `probe` reads its server's counters; `server_fault` says
    what is wrong with a backend's server, or nothing; `clock` and `sleep` count seconds.
    """

    crew: Crew
    collector: Collector
    ledger: LedgerWriter
    spawn: Callable[[int, Endpoint], None]
    probe: Callable[[Endpoint], dict[str, Any]]
    server_fault: Callable[[str], str]
    say: Callable[[str], None]
    clock: Callable[[], float]
    sleep: Callable[[float], None]
    utc: Callable[[], str] = utc_now
