"""What `inferswarm run` tells the master of the hosts and links that it has made."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from swarm.errors import UsageError

if TYPE_CHECKING:
    # The launcher uses this module, and a cell's own imports Locust.
    from swarm.plan.cell import Cell

VARIABLE = "INFERSWARM_LAUNCH"
BEGAN = "began"
"""The file beside the workers' logs that says that all workers have connected."""


@dataclass(frozen=True)
class LaunchInfo:
    """Nothing, where Locust was started by hand.

    `command` makes the study again. `addresses` has, by host, link and congestion control, where the servers
    are. `server_command` goes before the command that starts them, and `server_address` is where this
    process and hosts without a link reach them. `logs` is the folder of what the workers write.
    """

    command: Sequence[str] = field(default_factory=list)
    workers: int = 0
    hosts: Sequence[Mapping[str, Any]] = field(default_factory=list)
    links: Sequence[Mapping[str, Any]] = field(default_factory=list)
    addresses: Mapping[str, Mapping[str, Mapping[str, str]]] = field(default_factory=dict)
    server_command: Sequence[str] = field(default_factory=list)
    server_address: str = ""
    logs: str = ""

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> Self:
        """From a process's environment."""
        return cls(**json.loads(environment.get(VARIABLE, "{}")))

    def to_environment(self) -> dict[str, str]:
        """The inverse of `of`."""
        return {VARIABLE: json.dumps(asdict(self))}

    def facts(self, fingerprint: Mapping[str, Any]) -> dict[str, Any]:
        """What a ledger's header has of it; in namespaces the machine's own TCP settings do not hold."""
        known = {**fingerprint}
        if self.server_command:
            known.pop("tcp_congestion_control", None)
        return {"hosts": self.hosts, "links": self.links, "fingerprint": known}

    def tell_begun(self) -> None:
        """Let the launcher know that all workers are there."""
        if self.logs:
            Path(self.logs, BEGAN).touch()

    def addresses_of(self, cell: Cell) -> dict[str, str]:
        """Where each host reaches the servers for a cell; nothing where the endpoints' own addresses hold."""
        return self._over(cell.link, cell.congestion)

    def ways(self, links: Iterable[str]) -> list[dict[str, str]]:
        """The same by each of some links, by its own congestion control."""
        return [self._over(link, "") for link in links]

    def _over(self, link: str, congestion: str) -> dict[str, str]:
        found = {host: by_link[link] for host, by_link in self.addresses.items() if link}
        # The first one has the profile's own congestion control.
        return {host: of[congestion or next(iter(of))] for host, of in found.items()}

    def offers(self, cell: Cell) -> bool:
        """Whether its congestion control can be had: only links have several, as far as the kernel does."""
        by_host = [by_link.get(cell.link, {}) for by_link in self.addresses.values()]
        return not cell.congestion or (bool(by_host) and all(cell.congestion in of for of in by_host))

    def check_links(self, links: Iterable[str]) -> None:
        """Raises UsageError where one of these has not been made."""
        known = [str(link["name"]) for link in self.links]
        for link in links:
            if link and link not in known:
                made = f"the links made are {', '.join(known)}" if known else "no link exists"
                raise UsageError(f"--link {link}: {made}; run `inferswarm run -f FILE --link {link}`")

    def check(self, cells: Iterable[Cell], workers: int) -> None:
        """Can these cells be run on `workers` processes, 0 for as many as come? Raises UsageError."""
        for cell in cells:
            self.check_links([cell.link])
            asked = cell.topology
            if 0 < workers < asked.workers:
                raise UsageError(
                    f"{cell.name} asks for {asked.workers} workers and {workers} will run: use"
                    f" `inferswarm run -f FILE --workers {asked.workers}`, or exclude it with --cells"
                )
            if 0 < len(self.hosts) < asked.hosts:
                raise UsageError(
                    f"{cell.name} asks for {asked.hosts} hosts and {len(self.hosts)} are available: give"
                    f" --hosts"
                    f" {asked.hosts}, or exclude it with --cells"
                )


def relocated(ready: Any, address: str) -> Any:
    """What embedded servers say of themselves, as seen from outside the namespace that they are in."""
    if not address:
        return ready
    return json.loads(json.dumps(ready).replace("127.0.0.1:", f"{address}:"))


def as_typed(argv: Sequence[str], python: str = sys.executable) -> list[str]:
    """The command that calls a program again from here, as `python -m` does where it was begun so."""
    program = Path(argv[0])
    if program.name == "__main__.py":
        return [from_here(python), "-m", program.parent.name, *argv[1:]]
    return [from_here(argv[0]), *argv[1:]]


def from_here(program: str) -> str:
    """.venv/bin/locust, or its name where it is not below."""
    below = os.path.relpath(program)
    return program.rpartition("/")[2] if below.startswith("..") else below
