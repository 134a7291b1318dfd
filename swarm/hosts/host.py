"""A place that Locust workers run on: the command lines that start them there."""

from __future__ import annotations

import itertools
import os
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from swarm.errors import UsageError
from swarm.hosts.hosts_file import HostSpec
from swarm.hosts.ssh import PYTHON, in_checkout, ssh_command, token_variables, tunnel_to

GIVEN = frozenset(
    {
        "--headless", "--autostart", "--master", "--worker", "--processes", "--expect-workers",
        "--expect-workers-max-wait", "--master-host", "--master-port", "--master-bind-host",
        "--master-bind-port",
    }
)  # fmt: skip
"""Options that whoever starts master and workers gives to Locust."""

ROOT = Path(__file__).resolve().parents[2]
LEASH, FACTS = "swarm/launcher/leash.py", "swarm/hosts/facts.py"
FIRST_PORT, PORTS = 20_000, 10_000
"""Tunnels' ports: below those that Linux gives to outgoing connections, one of which could hold it."""

Inside = Callable[[str, Sequence[str]], list[str]]


class Host:
    """One for each spec; `inside` is `Network.command`, which a netns host is reached through.

    Without it a netns host is this machine, as it is before its network is made. What the command lines start
    reads its standard input and ends when that closes: give it a pipe.
    """

    def __init__(self, spec: HostSpec, inside: Inside | None = None) -> None:
        self.spec = spec
        self._network = inside if spec.kind == "netns" else None
        first = random.randrange(PORTS)
        self.ports: Iterator[int] = (FIRST_PORT + (first + turn) % PORTS for turn in itertools.count())

    def worker_command(self, arguments: Sequence[str], master: tuple[str, int], index: int = 0) -> list[str]:
        """The local command line that runs Locust worker `index` there; `master` is its address.

        For an ssh host that is the master as it is reached from here: a tunnel leads there, whose far end
        is another port with every call. Raises UsageError where workers are not ours to start.
        """
        named = [f"INFERSWARM_HOST={self.spec.name}", f"INFERSWARM_WORKER={index}"]
        if self.spec.kind == "ssh":
            port = next(self.ports)
            worker = _worker(PYTHON, arguments, ("127.0.0.1", port))
            # What is on a command line, everybody on that machine can read.
            secrets = token_variables(os.environ)
            tell, told = ([f"--tell={','.join(secrets)}"], ["--told"]) if secrets else ([], [])
            there = in_checkout(self.spec, [PYTHON, "-I", "-S", LEASH, *told, *named, "--", *worker])
            tunnel = tunnel_to(port, *master)
            return [*_own_leash(), "--far", *tell, "--", *ssh_command(self.spec, there, tunnel)]
        worker = _worker(sys.executable, arguments, master)
        return [*_own_leash(), *named, "--", *self._inside(worker)]

    def facts_command(self) -> list[str]:
        """The local command line that answers, line by line, what `facts.py` is asked. Raises UsageError."""
        if self.spec.kind == "ssh":
            return ssh_command(self.spec, in_checkout(self.spec, [PYTHON, "-I", FACTS]))
        return self._inside([sys.executable, "-I", str(ROOT / FACTS)])

    def locustfile(self, path: str) -> str:
        """The path there of a locustfile here. Raises UsageError where an ssh host cannot have it."""
        if self.spec.kind != "ssh":
            return str(Path(path).absolute())
        whole = Path(path).resolve()
        if not whole.is_relative_to(ROOT):
            raise UsageError(
                f"-f {path}: host {self.spec.name} has this checkout and no other files: "
                f"put the locustfile into {ROOT}, and run python -m swarm hosts prepare"
            )
        return whole.relative_to(ROOT).as_posix()

    def _inside(self, command: list[str]) -> list[str]:
        if self.spec.kind == "k8s":
            raise UsageError(
                f"host {self.spec.name} is of kind k8s, whose workers are started by kubectl: "
                "run python -m swarm hosts manifests"
            )
        return self._network(self.spec.name, command) if self._network else command


def _own_leash() -> list[str]:
    return [sys.executable, "-I", "-S", str(ROOT / LEASH)]


def _worker(python: str, arguments: Sequence[str], master: tuple[str, int]) -> list[str]:
    where = ["--master-host", master[0], "--master-port", str(master[1])]
    return [python, "-m", "locust", *arguments, "--worker", *where]
