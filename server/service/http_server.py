"""uvicorn as the service runs on it: deadlines for heads and unread answers, a limit of connections."""

import asyncio
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from server.settings import Settings

MAX_CONNECTIONS = 4096
BACKLOG = 2048
"""The number that asyncio accepts at a time before it creates their protocols."""
FILES = MAX_CONNECTIONS + 2 * BACKLOG + 256
"""Enough open files: without one left asyncio hangs, and writes a traceback for each connection."""


class TimeoutProtocol(H11Protocol):
    """One connection, which is closed when its client leaves the service waiting for `patience_s`.

    A body's deadline is the app's (server/service/request.py).
    """

    patience_s: float
    _head: asyncio.TimerHandle | None = None
    _unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client has come: its request's head is waited for, unless it is one too many."""
        super().connection_made(transport)
        if len(self.connections) > MAX_CONNECTIONS:
            transport.abort()
            return
        self._head = self._close_later()

    def data_received(self, data: bytes) -> None:
        """Some of a request; a head has one deadline from its first byte to its last."""
        super().data_received(data)
        if self.cycle is None or self.cycle.response_complete:
            self._head = self._head or self._close_later()
        elif self._head:
            self._head.cancel()
            self._head = None

    def pause_writing(self) -> None:
        """The client has not read what it was sent."""
        super().pause_writing()
        self._unread = self._unread or self._close_later()

    def resume_writing(self) -> None:
        """It reads on."""
        super().resume_writing()
        if self._unread:
            self._unread.cancel()
            self._unread = None

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is waited for any more."""
        super().connection_lost(exc)
        for timer in (self._head, self._unread):
            if timer:
                timer.cancel()

    def _close_later(self) -> asyncio.TimerHandle:
        # Not `close`, which would first wait until all that is written has been read.
        return self.loop.call_later(self.patience_s, self.transport.abort)


def allow_files() -> None:
    """Let this process have so many open files, as far as its hard limit goes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = FILES if hard == resource.RLIM_INFINITY else min(FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def configured(app: ASGIApp, settings: Settings) -> uvicorn.Config:
    """uvicorn as the service runs on it."""
    return uvicorn.Config(
        app,
        http=type("Protocol", (TimeoutProtocol,), {"patience_s": settings.max_receive_s}),
        ws="none",
        backlog=BACKLOG,
        # A line for each request would be measured with the request; one for each that is no HTTP, a way to
        # fill the log.
        access_log=False,
        log_level="error",
        timeout_graceful_shutdown=settings.max_drain_s,
        ssl_certfile=settings.tls_cert or None,
        ssl_keyfile=settings.tls_key or None,
    )


@contextmanager
def stopped_by_signals(server: uvicorn.Server) -> Iterator[None]:
    """Have SIGTERM and SIGINT end the service, and not the process, also before uvicorn hears them.

    uvicorn ends what is under way and then sends itself the signal once more.
    """

    def stop(*_: object) -> None:
        server.should_exit = True

    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
