"""A third-party server, started on free ports of 127.0.0.1, and ended with all that it has started."""

from __future__ import annotations

import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from server.embedded import guard
from server.embedded.fleet import ServerProcess, stop_all
from server.errors import SetUpError
from server.net import get

HOST = "127.0.0.1"
READY_S, ENDED_S, POLL_S = 120.0, 5.0, 0.2


@contextmanager
def work_folder() -> Iterator[Path]:
    """Where a server has its home, its temporary files and its log; removed with all that is in it.

    Its path is short, as those of sockets in it must be.
    """
    with tempfile.TemporaryDirectory(prefix="stranger-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@contextmanager
def running(
    name: str, command: list[str], environ: Mapping[str, str], folder: Path, is_ready: Callable[[], bool]
) -> Iterator[ServerProcess]:
    """A command in a session of its own, once it is ready. Raises SetUpError with the end of its log."""
    child = ServerProcess(name, command, environ, folder)
    try:
        wait_until_ready(child, is_ready)
        yield child
    finally:
        end(child)


def wait_until_ready(child: ServerProcess, is_ready: Callable[[], bool]) -> None:
    """Raises SetUpError where it ends before, or takes longer than two minutes."""
    deadline = time.monotonic() + READY_S
    while not is_ready():
        why = "ended" if child.exit_code() is not None else "is not ready"
        if why == "ended" or time.monotonic() > deadline:
            raise SetUpError(f"{child.name} {why}; its log ends with:\n{child.log_tail()}", child.log_tail())
        time.sleep(POLL_S)


def end(child: ServerProcess) -> None:
    """End it as its user would, by asking it alone; then whatever is left of its session, if anything is.

    Some give their helpers process groups of their own, which outlive it where it does not end them.
    """
    # Noted before, while the session is sure to be its own.
    helpers = members(child.pid)
    if child.exit_code() is None:
        os.kill(child.pid, signal.SIGTERM)
    if child.wait(ENDED_S):
        psutil.wait_procs(helpers, timeout=ENDED_S)
    stop_all([child])
    for helper in helpers:
        with suppress(psutil.NoSuchProcess):
            helper.kill()
    psutil.wait_procs(helpers, timeout=ENDED_S)


def members(session: int) -> list[psutil.Process]:
    """The processes of a session, but for its leader, and for the guard that keeps it."""
    found = [one for one in psutil.process_iter() if one.pid != session and session_of(one.pid) == session]
    return [process for process in found if guard.__file__ not in words_of(process)]


def words_of(process: psutil.Process) -> list[str]:
    """Its command line; nothing where it is gone."""
    with suppress(psutil.Error):
        return process.cmdline()
    return []


def session_of(pid: int) -> int:
    """A process's session; 0 where it is gone."""
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return 0


def answers(address: str, path: str) -> bool:
    """Whether a GET is answered with 200."""
    reply = get(address, path)
    return reply is not None and reply[0] == 200
