"""Who may change a tritonserver while it runs: only who knows a secret, made anew for each start or given.

To load a model is to run code, and any page in a browser, and every user of the machine, reaches loopback.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from pathlib import Path

from server.errors import SetUpError

VARIABLE = "INFERSWARM_MODEL_CONTROL"
"""`NAME=VALUE`, as behind the colon of tritonserver's own options; guard.py hides it."""
NAME = "inferswarm-control"
APIS = "model-repository,shared-memory,trace,logging"
"""All that change the server, or have it read and write files."""
FORM = re.compile(r"[A-Za-z][A-Za-z0-9-]*=[A-Za-z0-9._~+/-]{16,256}")


def secret(environ: Mapping[str, str]) -> str:
    """The secret that was given, or one that nobody knows; SetUpError where what was given is none."""
    given = environ.get(VARIABLE) or f"{NAME}={secrets.token_hex(32)}"
    if not FORM.fullmatch(given):
        raise SetUpError(
            f"{VARIABLE} will not do: it takes NAME=VALUE, the name of letters, digits and -, the value of "
            "16 letters and digits or more, e.g. control=$(openssl rand -hex 32)."
        )
    return given


def restrictions() -> list[str]:
    """tritonserver's options that keep these APIs to whoever sends the secret."""
    return [
        f"--{option}={APIS}:${VARIABLE}" for option in ("http-restricted-api", "grpc-restricted-protocol")
    ]


def is_seen(pid: int) -> bool:
    """Whether the secret stands in the command line of a process, where every user may read it."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    shown = [f"--http-restricted-api={APIS}:".encode(), f":${VARIABLE}".encode()]
    return any(word.startswith(shown[0]) and not word.endswith(shown[1]) for word in words)
