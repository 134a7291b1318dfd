"""The secret that a server demands of those who change it: its header's name and value."""

import functools
import os
import re
import secrets

from users.errors import TargetError
from users.redact import CONTROL

FORM = re.compile(r"[A-Za-z][A-Za-z0-9-]*=[!-~]+")


def secret() -> str:
    """`NAME=VALUE`: what the environment has, or what this process and the servers that it starts know."""
    return os.environ.get(CONTROL) or _own()


@functools.cache
def _own() -> str:
    return f"inferswarm-control={secrets.token_hex(32)}"


def control_header(prefix: str = "") -> dict[str, str]:
    """What a request carries that changes a server, with `prefix` before its name. Raises TargetError."""
    given = secret()
    if not FORM.fullmatch(given):
        raise TargetError(f"{CONTROL} will not do: give NAME=VALUE, as tritonserver was given it")
    name, _, value = given.partition("=")
    return {f"{prefix}{name.lower()}": value}
