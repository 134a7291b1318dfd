"""A process we start, whose output goes to a log and which never outlives us."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from server.spec import ROOT

GUARD = Path(__file__).with_name("guard.py")
STOP_S = 4.0
TAIL_LINES = 15


class ServerProcess:
    """One process and the group it leads, which ends when we do, even if we are killed."""

    def __init__(self, name: str, command: list[str], environ: Mapping[str, str], log_dir: Path) -> None:
        self.name = name
        self.log = log_dir / f"{name}.log"
        log_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open(self.log, "wb", opener=_for_us_alone) as log:
            # A group of its own, so that Ctrl-C reaches us alone and its helpers can be stopped with it.
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(GUARD), *command],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=dict(environ),
                cwd=ROOT,
                start_new_session=True,
            )
        self.pid = self._process.pid
        self._buried = False

    def exit_code(self) -> int | None:
        """None while it runs; minus the signal's number where a signal ended it."""
        return self._process.poll()

    def said(self) -> str:
        """Its output so far, without characters that a terminal obeys."""
        text = self.log.read_text(errors="replace")
        return "".join(char if char.isprintable() or char == "\n" else " " for char in text)

    def log_tail(self) -> str:
        """The last lines of its output."""
        # Without the tables in which tritonserver lists its options.
        lines = [line for line in self.said().splitlines() if line[:1] not in "|+"]
        return "\n".join(lines[-TAIL_LINES:])

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to its whole group, if anything of it is left; none after its burial."""
        # Until we close its stdin the guard keeps the group; after that its number may be another's.
        if self._buried:
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    def bury(self) -> None:
        """End what is left of its group once it has ended itself."""
        self.signal(signal.SIGKILL)
        self._buried = True
        if self._process.stdin:
            self._process.stdin.close()

    def wait(self, seconds: float) -> bool:
        """Whether it ends within `seconds`."""
        try:
            self._process.wait(max(0.0, seconds))
        except subprocess.TimeoutExpired:
            return False
        return True


def _for_us_alone(path: str, flags: int) -> int:
    """A file that nobody else reads, and that is no link to another."""
    return os.open(path, flags | os.O_NOFOLLOW, 0o600)


def stop_all(children: Iterable[ServerProcess]) -> None:
    """Ask all to stop at once, and after 4 s stop what is left, their helpers included."""
    children = list(children)
    for child in children:
        child.signal(signal.SIGTERM)
    deadline = time.monotonic() + STOP_S
    for child in children:
        child.wait(deadline - time.monotonic())
        child.bury()
    for child in children:
        child.wait(1.0)
