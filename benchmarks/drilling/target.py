"""A stand-in server as a process that the drill commands, stops, kills and starts again."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.drilling.commanded import ENDLESS, GOOD, entries
from benchmarks.drilling.processes import ROOT

HTTP, GRPC = "benchmarks.drilling.http_server", "benchmarks.drilling.grpc_server"


class Target:
    """One stand-in, from `start` to `kill`; its journal goes on over restarts."""

    def __init__(
        self, module: str, journal: Path, port: int, environment: Mapping[str, str], options: Sequence[str]
    ) -> None:
        self._journal, self.port = journal, port
        self._command = [sys.executable, "-m", module, str(journal), str(port), *options]
        self._environment = dict(environment)
        self._process: subprocess.Popen[str] | None = None

    def start(self, prefix: Sequence[str] = ()) -> None:
        """Start it and wait until it listens."""
        self._process = subprocess.Popen(
            [*prefix, *self._command], cwd=ROOT, env=self._environment, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        self._hear("ready")

    def fault(self, name: str, count: int = ENDLESS) -> None:
        """The next so many requests meet a fault."""
        process = self._running()
        assert process.stdin is not None
        process.stdin.write(json.dumps({"fault": name, "count": count}) + "\n")
        process.stdin.flush()
        self._hear("told")

    def signal(self, number: signal.Signals) -> None:
        """Stop it, let it go on, kill it."""
        self._running().send_signal(number)

    def kill(self) -> None:
        """SIGKILL, and until it is gone. Safe to call twice."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()

    def noted(self) -> Counter[str]:
        """How many requests it has noted, by what became of them."""
        return Counter(entry.what for entry in entries(self._journal))

    @property
    def good(self) -> int:
        """How many it has answered as it should."""
        return self.noted()[GOOD]

    def _running(self) -> subprocess.Popen[str]:
        assert self._process is not None, "start() comes first"
        return self._process

    def _hear(self, word: str) -> None:
        process = self._running()
        assert process.stdout is not None
        said = process.stdout.readline().strip()
        if said != word:
            raise SystemExit(f"a stand-in server said {said!r} and not {word!r}")
