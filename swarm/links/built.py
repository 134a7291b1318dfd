"""What is built of namespaces and devices for a while, and is gone afterwards whatever happens."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import TracebackType
from typing import Self

from swarm.links.namespace import remove_orphans

DEFERRED = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}


class Built:
    """Built when it is entered; at the end, or where the building fails, everything is undone.

    A class of this kind says what it needs in `_require`, builds in `_build`, and tells in `check` what died.
    """

    def __init__(self) -> None:
        self._owner = 0
        self._undo = ExitStack()

    def __enter__(self) -> Self:
        self._require()
        remove_orphans()
        self._owner = os.getpid()
        try:
            self._build(self._undo)
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if os.getpid() != self._owner:
            # A fork of ours comes to its end; what we built is not its own.
            return
        self._close()
        if kind is None:
            self.check()

    def check(self) -> None:
        """Raises LinkError where a part has died, before or while it was stopped."""
        raise NotImplementedError

    def _require(self) -> None:
        raise NotImplementedError

    def _build(self, undo: ExitStack) -> None:
        raise NotImplementedError

    def _close(self) -> None:
        with undisturbed():
            self._undo.close()


@contextmanager
def undisturbed() -> Iterator[None]:
    """Signals that end us wait: half of a removal would leave the other half."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, DEFERRED)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
