"""How a stand-in server is told to misbehave, and its journal of what became of each request."""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path

GOOD, NO_FAULT = "good", ""
ENDLESS = 1 << 30


class Commanded:
    """A stand-in's side: faults come by its standard input, its journal is a file that outlives it.

    A command is a line `{"fault": NAME, "count": N}`: the next N requests meet the fault. Each is confirmed
    by a line on the standard output. The process ends with its standard input.
    """

    def __init__(self, journal: str) -> None:
        self._file = os.open(journal, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        self._lock = threading.Lock()
        self._fault, self._left = NO_FAULT, 0

    def take(self) -> str:
        """The fault that the request at hand meets, or none."""
        with self._lock:
            if not self._left:
                return NO_FAULT
            self._left -= 1
            return self._fault

    def note(self, what: str) -> None:
        """What became of a request, a line: one write, which a kill does not halve."""
        os.write(self._file, f"{what}\n".encode())

    def obey(self) -> None:
        """Take commands until the standard input ends, and then end the process."""
        print("ready", flush=True)
        for line in sys.stdin:
            told = json.loads(line)
            with self._lock:
                self._fault, self._left = told["fault"], told["count"]
            print("told", flush=True)
        os._exit(0)


def entries(journal: Path) -> list[str]:
    """The whole lines of a journal: what became of each request."""
    return journal.read_text().split("\n")[:-1] if journal.exists() else []
