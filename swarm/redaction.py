"""Tokens, and what a terminal obeys, are kept out of what our processes print, log and save."""

from locust.runners import Runner

import logging
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TextIO

from reports.format import plain_lines
from reports.ledger.ledger import LedgerWriter, Record
from users.redact import redacted, spellings

OURS = frozenset(("kind", "cell", "phase", "event", "when", "status", "code", "worker", "lag", "histograms"))
"""Fields of a ledger by which its lines belong together, and such that hold no words."""


def guard_output() -> None:
    """From here on: nothing that is logged, or written to stderr, tells a terminal anything or has a token.

    What is printed has no tokens. Calling it again is harmless, and takes in tokens named since. A stream
    that was closed before Python began is None, and stays so.
    """
    logging.setLogRecordFactory(GuardedRecord)
    if not isinstance(sys.stderr, GuardedStream | None):
        sys.stderr = GuardedStream(sys.stderr, guarded)
    if spellings() and not isinstance(sys.stdout, GuardedStream | None):
        sys.stdout = GuardedStream(sys.stdout, redacted)


_COLOUR = re.compile(r"\x1b\[[\d;]*m")
"""Python's own, from 3.13 on, in tracebacks and in how a command is used."""


def guarded(text: str) -> str:
    """A text of several lines, whoever said it, as a terminal and a log may have it."""
    return plain_lines(redacted(_COLOUR.sub("", text)))


class GuardedRecord(logging.LogRecord):
    """A line of any log, Locust's too: what a peer or a server said in it is escaped and redacted."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.exc_info:
            # What a handler writes of it: formatters take what is there already.
            self.exc_text = guarded(logging.Formatter().formatException(self.exc_info))

    def getMessage(self) -> str:
        """As handlers write it."""
        return guarded(super().getMessage())


def redact_exceptions(runner: Runner) -> None:
    """What workers' own code raised, which Locust writes into its CSV file as they tell it."""
    keep = runner.log_exception

    def log_exception(node_id: str, msg: str, formatted_tb: str) -> None:
        keep(node_id, redacted(msg), redacted(formatted_tb))

    runner.log_exception = log_exception  # type: ignore[method-assign]


class GuardedStream:
    """A stream that is written to through a function, and otherwise itself."""

    def __init__(self, stream: TextIO, guard: Callable[[str], str]) -> None:
        self._stream, self._guard = stream, guard

    def write(self, text: str) -> int:
        """As a stream's own; the length is that of the text as it was given."""
        self._stream.write(self._guard(text))
        return len(text)

    def writelines(self, lines: list[str]) -> None:
        """As a stream's own."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class RedactedLedger(LedgerWriter):
    """A ledger's records as they are, but for tokens."""

    def write(self, record: Record) -> None:
        """As a ledger does."""
        super().write(redacted_texts(record) if spellings() else record)


def redacted_texts(value: Any) -> Any:
    """The same with its texts redacted; what only we can have written stays, whatever a token looks like."""
    if isinstance(value, str):
        return redacted(value)
    if isinstance(value, Mapping):
        return {name: one if name in OURS else redacted_texts(one) for name, one in value.items()}
    return [redacted_texts(one) for one in value] if isinstance(value, (list, tuple)) else value


def copy_escaped(source: str, target: str) -> None:
    """Copy a log, for `shutil.copytree`: servers and libraries write them, too."""
    with (
        Path(source).open(encoding="utf-8", errors="backslashreplace") as lines,
        Path(target).open("w", encoding="utf-8") as copied,
    ):
        copied.writelines(map(guarded, lines))
