"""A host that Locust workers run on: the command lines that start them there, and what ssh is told for it.

The variables with tokens go by name: who starts processes elsewhere hands them on without looking inside.
"""

import itertools
import os
import random
import re
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from swarm.errors import UsageError
from swarm.hosts.hosts_file import HostSpec

ROOT = Path(__file__).resolve().parents[2]
SUPERVISOR, FACTS = "swarm/launcher/supervisor.py", "swarm/hosts/facts.py"
OWN_SUPERVISOR = [sys.executable, "-I", "-S", str(ROOT / SUPERVISOR)]
OWN_LOCUST = [sys.executable, "-P", "-m", "inferswarm", "locust"]
"""Here it may be started from any folder, even from another checkout; on an ssh host, from the checkout."""
FIRST_PORT, PORTS = 20_000, 10_000
"""Tunnels' ports: below those that Linux gives to outgoing connections, which could occupy one."""

HOST_VARIABLE = "INFERSWARM_HOST"
"""Names the host that a worker runs on, in its environment."""
PYTHON = ".venv/bin/python"
"""The Python of a prepared host, relative to its checkout."""
SSH_OPTIONS = {
    # There is no prompt.
    "BatchMode": "yes",
    "ConnectTimeout": "10",
    "ServerAliveInterval": "5",
    "ServerAliveCountMax": "3",
    "ExitOnForwardFailure": "yes",
    # A connection of its own, which ends with its process and takes its tunnel along.
    "ControlMaster": "no",
    "ControlPath": "none",
    # Whatever the user's own settings do with this host at other times.
    "RemoteCommand": "none",
    "PermitLocalCommand": "no",
}
SSH_FAILED = 255
"""ssh's exit code where ssh itself failed, and not the command there."""
PORT_TAKEN = "remote port forwarding failed"
"""What ssh prints before it ends with `SSH_FAILED` if a tunnel's port is taken there: try another."""
VARIABLE = re.compile(r"INFERSWARM_(?:[A-Z0-9_]+_)?TOKEN")
"""As in `users.redact`, whose import would import Locust."""
MASTERS_OWN = "INFERSWARM_INFLUX_TOKEN"
"""As in `swarm.options.values`: no worker needs it."""


class Host:
    """One for each spec; `inside` is `Network.command`, which a netns host is reached through.

    Without it a netns host is this machine, as it is before its network is made. What the command lines start
    reads its standard input and ends when that closes: give it a pipe.
    """

    def __init__(
        self, spec: HostSpec, inside: Callable[[str, Sequence[str]], list[str]] | None = None
    ) -> None:
        self.spec = spec
        self._network = inside if spec.kind == "netns" else None
        first = random.randrange(PORTS)
        self.ports: Iterator[int] = (FIRST_PORT + (first + turn) % PORTS for turn in itertools.count())

    def worker_command(self, arguments: Sequence[str], master: tuple[str, int], index: int = 0) -> list[str]:
        """The local command line that runs Locust worker `index` there; `master` is its address.

        For an ssh host that is the master as it is reached from here: a tunnel leads there, whose far end
        is another port with every call.
        """
        named = [f"{HOST_VARIABLE}={self.spec.name}", f"INFERSWARM_WORKER={index}"]
        if self.spec.kind == "ssh":
            port = next(self.ports)
            worker = _worker([PYTHON, "-m", "locust"], arguments, ("127.0.0.1", port))
            # Every user of that machine can read a command line.
            secrets = secrets_of(os.environ)
            tell, told = ([f"--tell={','.join(secrets)}"], ["--told"]) if secrets else ([], [])
            there = in_checkout(self.spec, [PYTHON, "-I", "-S", SUPERVISOR, *told, *named, "--", *worker])
            tunnel = tunnel_to(port, *master)
            return [*OWN_SUPERVISOR, "--far", *tell, "--", *ssh_command(self.spec, there, tunnel)]
        worker = _worker(OWN_LOCUST, arguments, master)
        return [*OWN_SUPERVISOR, *named, "--", *self._inside(worker)]

    def facts_command(self) -> list[str]:
        """The local command line that answers, line by line, what `facts.py` is asked."""
        if self.spec.kind == "ssh":
            return ssh_command(self.spec, in_checkout(self.spec, [PYTHON, "-I", FACTS]))
        return self._inside([sys.executable, "-I", str(ROOT / FACTS)])

    def locustfile(self, path: str) -> str:
        """The path there of a locustfile here. Raises UsageError where an ssh host cannot have it."""
        if self.spec.kind != "ssh":
            return str(Path(path).absolute())
        whole = Path(path).resolve()
        if not whole.is_relative_to(ROOT):
            fix = f"put the locustfile into {ROOT}, and run inferswarm hosts prepare"
            if not (ROOT / ".git").exists():
                fix = "give the name of a study, or run this from a clone that the locustfile lies in"
            raise UsageError(f"-f {path}: host {self.spec.name} has only this checkout's files: {fix}")
        return whole.relative_to(ROOT).as_posix()

    def _inside(self, command: list[str]) -> list[str]:
        return self._network(self.spec.name, command) if self._network else command


def secrets_of(environ: Mapping[str, str]) -> list[str]:
    """The names of the tokens that workers need."""
    return sorted(
        name for name, value in environ.items() if value and VARIABLE.fullmatch(name) and name != MASTERS_OWN
    )


def _worker(locust: Sequence[str], arguments: Sequence[str], master: tuple[str, int]) -> list[str]:
    where = ["--master-host", master[0], "--master-port", str(master[1])]
    return [*locust, *arguments, "--worker", *where]


def ssh_command(spec: HostSpec, remote: str, tunnel: str = "") -> list[str]:
    """The local command line that has the host's shell run `remote`; `tunnel` is as ssh's -R takes it."""
    command = ["ssh", "-T", "-a", "-x"]
    for name, value in SSH_OPTIONS.items():
        command += ["-o", f"{name}={value}"]
    command += ["-F", spec.config] if spec.config else []
    command += ["-i", spec.identity, "-o", "IdentitiesOnly=yes"] if spec.identity else []
    command += ["-p", str(spec.port)] if spec.port else []
    command += ["-R", tunnel] if tunnel else []
    return [*command, "--", spec.address, remote]


def tunnel_to(port: int, host: str, host_port: int) -> str:
    """A port on the far machine's loopback that leads to an address as it is reached from here."""
    shown = f"[{host}]" if ":" in host else host
    return f"127.0.0.1:{port}:{shown}:{host_port}"


def in_checkout(spec: HostSpec, argv: Sequence[str]) -> str:
    """The shell's line that becomes `argv` in the host's checkout; no word of it is read by the shell."""
    return f"cd {folder(spec)} && exec {shlex.join(argv)}"


def folder(spec: HostSpec) -> str:
    """The host's checkout, quoted for its shell: never an option, nor looked for along CDPATH."""
    return shlex.quote(spec.path if spec.path.startswith("/") else f"./{spec.path}")
