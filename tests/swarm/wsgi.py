"""A small HTTP server in this process, for what is asked of servers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from gevent.pywsgi import WSGIServer


@contextmanager
def serving(answer: Callable[..., Iterable[bytes]]) -> Iterator[str]:
    """The address of a server with this WSGI application."""
    server = WSGIServer(("127.0.0.1", 0), answer, log=None)
    server.start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.stop(timeout=1)
