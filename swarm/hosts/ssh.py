"""Command lines that run something on a real machine through ssh.

The variables with tokens go by name: who starts processes elsewhere hands them on without looking inside.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence

from swarm.hosts.hosts_file import HostSpec

PYTHON = ".venv/bin/python"
"""What runs on a host that was prepared, from its checkout."""
OPTIONS = {
    # Nobody is there to be asked.
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
FAILED = 255
"""ssh's exit code where ssh itself failed, and not the command there."""
PORT_TAKEN = "remote port forwarding failed"
"""What ssh says before it ends with `FAILED` where a tunnel's port is taken there: try another."""
TOKEN = "INFERSWARM_TOKEN"
VARIABLE = re.compile(r"INFERSWARM_(?:[A-Z0-9]+_)?TOKEN")
"""As `users.redact` has it, which imports Locust by the way."""


def ssh_command(spec: HostSpec, remote: str, tunnel: str = "") -> list[str]:
    """The local command line that has the host's shell run `remote`; `tunnel` is as ssh's -R takes it."""
    command = ["ssh", "-T", "-a", "-x"]
    for name, value in OPTIONS.items():
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


def token_variables(environment: Mapping[str, str]) -> list[str]:
    """The names of those that are set."""
    return sorted(name for name, value in environment.items() if value and VARIABLE.fullmatch(name))
