"""The output of `inferswarm up`: JSON lines for a program, plain lines for a person."""

import json
import sys
from collections.abc import Sequence
from typing import Any


class StopRequested(BaseException):
    """The servers are no longer wanted: a signal, the end of stdin, or no reader left."""


class Events:
    """Events on stdout, flushed; a person finds errors on stderr."""

    def __init__(self, as_json: bool) -> None:
        self._as_json = as_json

    def progress(self, text: str) -> None:
        """A step began or ended."""
        self._say({"event": "progress", "text": text}, text)

    def ready(
        self, about: dict[str, Any], endpoints: dict[str, dict[str, Any]], warnings: Sequence[str] = ()
    ) -> None:
        """All servers answer; `about` says which model and weights they hold.

        Warnings go to a person's stderr. A program gets them in the event: in a network namespace, say,
        nobody else reaches what is open.
        """
        for warning in () if self._as_json else warnings:
            print(warning, file=sys.stderr, flush=True)
        warned = {"warnings": warnings} if warnings else {}
        self._say({"event": "ready", **about, "endpoints": endpoints, **warned}, _table(about, endpoints))

    def died(self, server: str, exit_code: int, log: str, log_tail: str) -> None:
        """A server ended by itself; minus a signal's number is a signal."""
        how = f"signal {-exit_code}" if exit_code < 0 else f"exit code {exit_code}"
        event = {"event": "died", "server": server, "exit": exit_code, "log": log, "log_tail": log_tail}
        self._say(event, f"{server} died ({how}); {log} ends:\n{log_tail}")

    def error(self, text: str, log_tail: str) -> None:
        """The servers cannot start: one sentence, and the end of the log with details, if any."""
        if self._as_json:
            self._say({"event": "error", "text": text, "log_tail": log_tail}, text)
        else:
            print(f"{text}\n{log_tail}".rstrip(), file=sys.stderr, flush=True)

    def _say(self, event: dict[str, Any], text: str) -> None:
        try:
            print(json.dumps(event) if self._as_json else text, flush=True)
        except BrokenPipeError:
            raise StopRequested from None


def _table(about: dict[str, Any], endpoints: dict[str, dict[str, Any]]) -> str:
    lines = [f"ready: {about['model']}, weights {about['weights']}"]
    for name, endpoint in endpoints.items():
        addresses = [
            f"{kind} {endpoint[kind]}" for kind in ("url", "http", "grpc", "metrics") if kind in endpoint
        ]
        lines.append(f"  {name:9} {'  '.join(addresses)}")
    return "\n".join([*lines, "Ctrl-C stops them."])
