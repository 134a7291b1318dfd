"""Redaction of the tokens in what our processes print, log and save."""

from locust.runners import Runner

import logging
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TextIO

from reports.ledger.ledger import LedgerWriter, Record
from users.redact import redacted, spellings

OURS = frozenset(("kind", "cell", "phase", "event", "when", "status", "code", "worker", "lag", "histograms"))
"""Fields of a ledger by which its lines belong together, and such that hold no words."""


def redact_output() -> None:
    """From here on; a process without a token is unaffected. Calling it twice is harmless."""
    if not spellings() or isinstance(sys.stdout, Redacting):
        return
    sys.stdout, sys.stderr = Redacting(sys.stdout), Redacting(sys.stderr)
    made = logging.getLogRecordFactory()
    formatter = logging.Formatter()

    def make_record(*args: Any, **kwargs: Any) -> logging.LogRecord:
        record = made(*args, **kwargs)
        try:
            text = record.getMessage()
        except Exception:
            # Logged with arguments that do not fit: its handler says so, and its caller goes on.
            return record
        if (shown := redacted(text)) != text:
            record.msg, record.args = shown, ()
        if record.exc_info:
            # What a handler writes of it: formatters take what is there already.
            record.exc_text = redacted(formatter.formatException(record.exc_info))
        return record

    logging.setLogRecordFactory(make_record)


def redact_exceptions(runner: Runner) -> None:
    """What workers' own code raised, which Locust writes into its CSV file as they tell it."""
    keep = runner.log_exception

    def log_exception(node_id: str, msg: str, formatted_tb: str) -> None:
        keep(node_id, redacted(msg), redacted(formatted_tb))

    runner.log_exception = log_exception  # type: ignore[method-assign]


class Redacting:
    """A stream that is written to through `redacted`, and otherwise itself."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """As a stream's own; the length is that of the text as it was given."""
        self._stream.write(redacted(text))
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


def copy_redacted(source: str, target: str) -> None:
    """Copy a log, for `shutil.copytree`: servers and libraries write them, too."""
    if not spellings():
        shutil.copy2(source, target)
        return
    with (
        Path(source).open(encoding="utf-8", errors="surrogateescape", newline="") as lines,
        Path(target).open("w", encoding="utf-8", errors="surrogateescape", newline="") as copied,
    ):
        copied.writelines(map(redacted, lines))
