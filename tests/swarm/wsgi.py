"""A small HTTP server in this process, for what is asked of servers."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

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


@contextmanager
def answering(status: str, body: bytes, asked: list[str] | None = None) -> Iterator[str]:
    """The address of a server that says the same to everybody; `asked` gets the paths."""

    def answer(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        if asked is not None:
            asked.append(environ["PATH_INFO"])
        start(status, [("Content-Type", "application/json")])
        return [body]

    with serving(answer) as address:
        yield address
