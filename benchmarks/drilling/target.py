"""A stand-in server as a process that the drill commands, stops, kills and starts again."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.drilling.commanded import ENDLESS, GOOD, entries
from benchmarks.drilling.processes import GONE_S, ROOT, Failure

HTTP, GRPC = "benchmarks.drilling.http_server", "benchmarks.drilling.grpc_server"
HEAR_S = 30.0
"""How long a stand-in may take to confirm; a busy machine starts one in several seconds."""


class Target:
    """One stand-in, from `start` to `kill`; its journal goes on over restarts."""

    def __init__(
        self, module: str, journal: Path, port: int, environment: Mapping[str, str], options: Sequence[str]
    ) -> None:
        self._journal, self.port = journal, port
        self._command = [sys.executable, "-m", module, str(journal), str(port), *options]
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
        return Counter(entries(self._journal))

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
