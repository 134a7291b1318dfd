"""The secret by which a tritonserver lets us change it: its models, and its traces."""

from __future__ import annotations

import functools
import os
import re
import secrets
from typing import Literal

from swarm.errors import UsageError

VARIABLE = "INFERSWARM_MODEL_CONTROL"
"""`NAME=VALUE`, as behind the colon of tritonserver's --http-restricted-api."""
FORM = re.compile(r"[A-Za-z][A-Za-z0-9-]*=[!-~]+")
PREFIXES = {"http": "", "grpc": "triton-grpc-protocol-"}
"""What tritonserver looks for before the name."""


def secret() -> str:
    """What the environment has, or what only this process and the servers that it starts know."""
    return os.environ.get(VARIABLE) or _own()


@functools.cache
def _own() -> str:
    return f"inferswarm-control={secrets.token_hex(32)}"


def headers(protocol: Literal["http", "grpc"]) -> dict[str, str]:
    """What a request carries that changes a server. Raises UsageError."""
    given = secret()
    if not FORM.fullmatch(given):
        raise UsageError(f"{VARIABLE} will not do: give NAME=VALUE, as tritonserver was given it")
    name, _, value = given.partition("=")
    return {f"{PREFIXES[protocol]}{name.lower()}": value}
