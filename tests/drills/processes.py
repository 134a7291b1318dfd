"""Processes of a drill: marked by their environment, so that whatever they start is found and counted; and
the stand-in server among them, which the drill commands, stops, kills and starts again.
"""

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from tests.faults import ENDLESS, GOOD
from tests.locustfiles.console import ROOT

HTTP, GRPC = "fake_service.py", "fake_triton.py"
MARK = "INFERSWARM_DRILL"
GONE_S = 30.0
"""How long processes may take to be gone once they have ended or were killed."""
HEAR_S = 30.0
"""How long a stand-in may take to confirm; a busy machine starts one in several seconds."""


class Failure(Exception):
    """A drill that could not be carried out; the text says why."""


def marked(mark: str) -> dict[int, str]:
    """Every live process with this mark in its environment: its command line by its id."""
    wanted, found = f"{MARK}={mark}".encode(), {}
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if wanted in (entry / "environ").read_bytes().split(b"\0"):
                words = (entry / "cmdline").read_bytes().split(b"\0")
                found[int(entry.name)] = " ".join(word.decode(errors="replace") for word in words).strip()
    return found


def named(mark: str, *words: str) -> list[int]:
    """The ids of those whose command line has all these words, or paths that end in them."""
    lines = {pid: {Path(part).name for part in line.split()} for pid, line in marked(mark).items()}
    return sorted(pid for pid, has in lines.items() if has.issuperset(words))


def end_all(mark: str) -> None:
    """Kill them, by id."""
    for pid in marked(mark):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


class Target:
    """One stand-in, from `start` to `kill`; its journal goes on over restarts."""

    def __init__(
        self, script: str, journal: Path, port: int, environment: Mapping[str, str], options: Sequence[str]
    ) -> None:
        self._journal, self.port = journal, port
        place = str(ROOT / "tests" / script)
        self._command = [sys.executable, place, str(port), "--journal", str(journal), *options]
        self._environment = dict(environment)
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, prefix: Sequence[str] = ()) -> None:
        """Start it and wait until it listens. Raises Failure where it does not."""
        self._process = subprocess.Popen(
            [*prefix, *self._command], cwd=ROOT, env=self._environment, bufsize=0,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        self._hear("ready")

    def fault(self, name: str, count: int = ENDLESS) -> None:
        """The next so many requests meet a fault. Raises Failure where it is not confirmed."""
        process = self._running()
        assert process.stdin is not None
        process.stdin.write(json.dumps({"fault": name, "count": count}).encode() + b"\n")
        self._hear("told")

    def signal(self, number: signal.Signals) -> None:
        """Stop it, let it go on, kill it."""
        self._running().send_signal(number)

    def kill(self) -> None:
        """SIGKILL, and until it is gone. Safe to call twice."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate(timeout=GONE_S)

    def noted(self) -> Counter[str]:
        """How many requests it has noted, by what became of them."""
        return Counter(self._journal.read_text().split("\n")[:-1] if self._journal.exists() else [])

    @property
    def good(self) -> int:
        """How many it has answered as it should."""
        return self.noted()[GOOD]

    def _running(self) -> subprocess.Popen[bytes]:
        assert self._process is not None, "start() comes first"
        return self._process

    def _hear(self, word: str) -> None:
        process = self._running()
        assert process.stdout is not None
        said = heard(process.stdout.fileno(), HEAR_S)
        if said != word:
            raise Failure(f"a stand-in server said {said!r} within {HEAR_S:g} s, and not {word!r}")


def heard(pipe: int, seconds: float) -> str:
    """A line of an unbuffered pipe, or what there is of it at the pipe's end or when the time is over."""
    deadline, said = time.monotonic() + seconds, b""
    while not said.endswith(b"\n"):
        ready, _, _ = select.select([pipe], [], [], max(0.0, deadline - time.monotonic()))
        # Byte for byte, so that none of the next line is taken.
        got = os.read(pipe, 1) if ready else b""
        if not got:
            break
        said += got
    return said.decode(errors="replace").strip()
