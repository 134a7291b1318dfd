"""The names under which a browser may request our pages: a foreign name that resolves here is refused.

A page may point its own name to 127.0.0.1 (DNS rebinding): to the browser we are then part of it.
"""

import os
import socket
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import urlsplit

from swarm.locust_patches.bind_hosts import is_address

VARIABLE = "INFERSWARM_NAMES"
"""Further names of this machine, separated by commas."""


def is_ours(host: str, more: str = "") -> bool:
    """Whether a request's Host is an address, localhost, this machine's name or one of `more`.

    >>> [is_ours(host) for host in ("127.0.0.1:8089", "[::1]:8089", "localhost", "", "evil.example:8089")]
    [True, True, True, True, False]
    """
    if not host:
        return True  # no browser leaves it out
    try:
        name = (urlsplit(f"//{host}").hostname or "").rstrip(".")
    except ValueError:
        return False
    own = {"localhost", socket.gethostname().lower(), *(one.strip().lower() for one in more.split(","))}
    return bool(name) and (is_address(name) or name in own)


def refusal(host: str) -> str:
    """The answer to a request under another name; empty for one of ours."""
    if is_ours(host, os.environ.get(VARIABLE, "")):
        return ""
    return f"{host[:255]!r} is not a name of this machine: use its address, or start with {VARIABLE}=NAME,…\n"


def guarded(application: Callable[..., Iterable[bytes]]) -> Callable[..., Iterable[bytes]]:
    """The WSGI application, only for requests under one of our names."""

    def answer(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        if text := refusal(environ.get("HTTP_HOST", "")):
            start("421 Misdirected Request", [("Content-Type", "text/plain; charset=utf-8")])
            return [text.encode()]
        return application(environ, start)

    return answer
