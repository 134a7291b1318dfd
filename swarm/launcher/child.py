"""What the launcher is made of: the signals that stop it, where workers go, and processes on a leash."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from types import FrameType, TracebackType
from typing import Self

from reports.format import plain_lines
from swarm.errors import UsageError
from swarm.hosts.host import LEASH, ROOT
from swarm.hosts.hosts_file import HostSpec
from swarm.launcher.orphans import mark

TAIL_LINES = 12
LEASH_S, STOP_S = 10.0, 25.0
"""How long a process may take to end in order, and its leash to end it, over ssh as well."""


class StopSignal(BaseException):
    """Ctrl-C, SIGTERM or SIGHUP."""


class Signals:
    """The first signal raises StopSignal wherever we are, until it is `over`; further ones are counted."""

    def __init__(self) -> None:
        self.count = 0
        self.over = False
        """What has been made is being taken down, which nothing may cut short."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._on_signal)
        # `nohup` has it ignored.
        if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
            signal.signal(signal.SIGHUP, self._on_signal)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self.count += 1
        if self.count == 1 and not self.over:
            raise StopSignal


def workers_wanted(locustfile: str) -> int:
    """By the study in a locustfile. Raises UsageError where there is none to run."""
    if not Path(locustfile).is_file():
        raise UsageError(f"-f {locustfile}: no such file; give a locustfile, e.g. locustfiles/step7.py")
    command = [sys.executable, "-m", "swarm.study.describe", locustfile]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode:
        said = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise UsageError(f"-f {locustfile}: cannot be used: {said[-1]}")
    return int(done.stdout.splitlines()[-1])


def spread(specs: Sequence[HostSpec], workers: int) -> list[int]:
    """How many workers each host runs: its own number where it has one, the rest evenly over the others.

    Raises UsageError where a host would have none, or workers no host.
    """
    counts = [spec.workers or 0 for spec in specs]
    free = [index for index, count in enumerate(counts) if not count]
    left = workers - sum(counts)
    if left < len(free) or (left and not free):
        least, most = sum(counts) + len(free), "" if free else " and no more"
        raise UsageError(f"--workers {workers}: these hosts need {least}{most}; give --workers {least}")
    for turn, index in enumerate(free):
        counts[index] = left // len(free) + (turn < left % len(free))
    return counts


def free_port(address: str) -> int:
    """A TCP port at an address of this machine that nobody listens on."""
    with socket.socket() as found:
        found.bind((address, 0))
        port: int = found.getsockname()[1]
        return port


def leashed(command: Sequence[str], patience_s: float = LEASH_S) -> list[str]:
    """The command that runs another one on a leash; it has `patience_s` to end in order."""
    patience = f"--patience={patience_s:g}"
    return [sys.executable, "-I", "-S", str(ROOT / LEASH), patience, "--", *command]


class LeashedProcess:
    """A leashed process while it is entered; what it writes goes to a file, or to our own output.

    It is told `variables` beside our own, and marked as this launcher's.
    """

    def __init__(
        self, name: str, command: Sequence[str], output: Path | None, variables: Mapping[str, str]
    ) -> None:
        self.name = name
        self._output = output
        with ExitStack() as opened:
            written = opened.enter_context(output.open("wb")) if output else None
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=written,
                stderr=subprocess.STDOUT if written else None,
                env={**os.environ, **mark(), **variables},
                # Ctrl-C in the terminal reaches the launcher alone, which ends the study in order.
                start_new_session=True,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let go of the leash, and wait until the process has gone."""
        self.let_go()
        if self.wait(STOP_S) is None:
            self._process.kill()
            self._process.wait()

    def let_go(self) -> None:
        """Close the leash: what is on it ends."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()

    def poll(self) -> int | None:
        """Its exit code, or None while it runs."""
        return self._process.poll()

    def ask_to_end(self) -> None:
        """Signal it to end in order."""
        self._process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it at once: the kernel then ends what is on its leash."""
        self._process.kill()
        self._process.wait()

    def wait(self, patience_s: float) -> int | None:
        """Its exit code, or None where it takes longer."""
        try:
            return self._process.wait(patience_s)
        except subprocess.TimeoutExpired:
            return None

    def tail(self) -> str:
        """The last lines that it wrote."""
        said = self._output.read_text(errors="replace").strip() if self._output else ""
        return plain_lines("\n".join(said.splitlines()[-TAIL_LINES:]))
