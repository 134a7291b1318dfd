"""Parts of the launcher: signals that stop it, the placement of workers, and supervised processes."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from types import FrameType, TracebackType

from reports.format import plain_lines
from reports.ledger.records import MOST_WORKERS
from swarm.errors import UsageError
from swarm.hosts.host import ROOT
from swarm.hosts.hosts_file import HostSpec
from swarm.launcher.orphans import VARIABLE
from swarm.owner import identity

TAIL_LINES = 12
STOP_S = 25.0
"""How long a supervisor may take to end its process, also over ssh."""


class StopSignal(BaseException):
    """Ctrl-C, SIGTERM or SIGHUP."""


class Signals:
    """The first signal raises StopSignal wherever we are, until it is `over`; further ones are counted."""

    def __init__(self) -> None:
        self.count = 0
        self.over = False
        """Everything is being shut down, which must not be interrupted."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            # `nohup` has one ignored, a shell that starts a job in the background another.
            if signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, self._on_signal)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self.count += 1
        if self.count == 1 and not self.over:
            raise StopSignal


def workers_wanted(locustfile: str) -> int:
    """By the study in a locustfile. Raises UsageError where there is none to run."""
    command = [sys.executable, "-P", "-m", "swarm.study.describe", locustfile]
    done = subprocess.run(
        command, capture_output=True, text=True, stdin=subprocess.DEVNULL, env=environment()
    )
    if done.returncode:
        said = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise UsageError(f"-f {locustfile}: cannot be used: {said[-1]}")
    return int(done.stdout.splitlines()[-1])


def environment() -> dict[str, str]:
    """Ours, in which `python -P` finds the suite, whatever packages are in the current folder."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": path}


def spread(specs: Sequence[HostSpec], workers: int) -> list[int]:
    """How many workers each host runs: its own number, else evenly.

    Raises UsageError where a host would have none, or all would have more than a study's ledger takes.
    """
    counts = [spec.workers or 0 for spec in specs]
    if max(workers, sum(counts)) > MOST_WORKERS:
        raise UsageError(
            f"--workers: a study has at most {MOST_WORKERS:,} workers, by all hosts together; give fewer"
        )
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
    with socket.create_server((address, 0)) as found:
        return int(found.getsockname()[1])


class SupervisedProcess(subprocess.Popen[bytes]):
    """A supervised process while it is entered; what it writes goes to a file, or to our own output.

    It is told `variables` beside our own, and marked as this launcher's. Where it is killed, the kernel ends
    what is under its supervisor.
    """

    def __init__(
        self, name: str, command: Sequence[str], output: Path | None, variables: Mapping[str, str]
    ) -> None:
        self.name = name
        self._output = output
        with ExitStack() as opened:
            written = opened.enter_context(output.open("wb")) if output else None
            super().__init__(
                command,
                stdin=subprocess.PIPE,
                stdout=written,
                stderr=subprocess.STDOUT if written else None,
                env={**environment(), VARIABLE: identity(), **variables},
                # Ctrl-C in the terminal reaches the launcher alone, which ends the study in order.
                start_new_session=True,
            )

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the supervisor's input, and wait until the process has gone."""
        self.let_go()
        if not self.ends(STOP_S):
            self.kill()
            self.wait()

    def let_go(self) -> None:
        """Close the supervisor's input: what is under it ends."""
        assert self.stdin is not None
        with suppress(BrokenPipeError):
            self.stdin.close()

    def ends(self, patience_s: float) -> bool:
        """Whether it ends within that time."""
        with suppress(subprocess.TimeoutExpired):
            self.wait(patience_s)
        return self.returncode is not None

    def tail(self) -> str:
        """The last lines that it wrote."""
        said = self._output.read_text(errors="replace").strip() if self._output else ""
        return plain_lines("\n".join(said.splitlines()[-TAIL_LINES:]))
