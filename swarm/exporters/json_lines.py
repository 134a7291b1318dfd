"""A study's events as JSON lines, appended to a file or written to standard output."""

import errno
import json
import os
import stat
import sys
from collections.abc import Callable, Mapping, Set
from dataclasses import is_dataclass
from types import MethodType
from typing import Any

from gevent.lock import BoundedSemaphore
from gevent.socket import wait_write

from reports.format import plural
from swarm.errors import UsageError
from swarm.events import HOOKS
from users.redact import redacted

STDOUT = "-"
LEFT_OUT = {"window": ("results",), "run_started": ("plan",), "study_ended": ("runs",)}
"""Histograms, and what earlier lines have told: by event, the fields that its lines lack."""
PIPE_BYTES = 4_096
"""A pipe that can be written to takes so many bytes without waiting for its reader (PIPE_BUF of pipe(7))."""


class JsonLines:
    """Listens to all events of studies, and writes each as a line to an open file.

    What cannot be written is counted; after a closed pipe nothing more is tried. A pipe whose reader is slow
    delays only this greenlet.
    """

    flag = "--json-lines"

    def __init__(self, descriptor: int) -> None:
        self._file, self._writing = descriptor, BoundedSemaphore()
        self._given = self._lost = 0
        self._fault = ""
        self._closed = False
        for event, hook in HOOKS.items():
            setattr(self, f"on_{event}", self._listener(event, hook.argument))

    def _listener(self, event: str, argument: str) -> Callable[..., None]:
        return MethodType(lambda self, **told: self.write(event, told[argument]), self)

    def write(self, event: str, told: Any) -> None:
        """One event as a line."""
        if event == "study_started":
            self._given = self._lost = 0
            self._fault = self._fault if self._closed else ""
        self._given += 1
        try:
            if not self._closed:
                self._append(line_of(event, told))
        except OSError as error:
            self._closed = isinstance(error, BrokenPipeError)
            self._fault = self._fault or str(error.strerror).lower()
            self._lost += not self._closed
        self._lost += self._closed

    def _append(self, line: bytes) -> None:
        """The whole line, or none of it where a disk is full. Raises OSError."""
        about = os.fstat(self._file)
        try:
            # The next study's first line may come while the last one's still waits for a pipe's reader.
            with self._writing:
                for start in range(0, len(line), PIPE_BYTES):
                    self._write_part(line[start : start + PIPE_BYTES], stat.S_ISREG(about.st_mode))
        except OSError:
            if stat.S_ISREG(about.st_mode):
                # Half a line would make one with the next, once there is room; and what a shell has opened
                # would go on behind it.
                os.ftruncate(self._file, about.st_size)
                os.lseek(self._file, 0, os.SEEK_END)
            raise

    def _write_part(self, left: bytes, to_disk: bool) -> None:
        while left:
            if not to_disk:
                wait_write(self._file)
            left = left[os.write(self._file, left) :]

    def missed(self) -> str:
        """How many events of this study were not written, and why."""
        if not self._lost:
            return ""
        return f"--json-lines: {self._lost:,} of {plural(self._given, 'event')} not written ({self._fault})."


def line_of(event: str, told: Any) -> bytes:
    """An event with its fields as one line of JSON, without tokens."""
    left_out = LEFT_OUT.get(event, ())
    about = {name: value for name, value in vars(told).items() if name not in left_out}
    try:
        text = dumps({"event": event, **about})
    except ValueError:
        text = dumps(finite({"event": event, **about}))
    return redacted(text).encode() + b"\n"


def plain(value: Any) -> Any:
    """What JSON does not know of itself: objects by their fields, arrays as lists, all else by its text."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Set):
        return list(value)
    return vars(value) if is_dataclass(value) else str(value)


dumps = json.JSONEncoder(separators=(",", ":"), default=plain, allow_nan=False).encode


def finite(value: Any) -> Any:
    """The same with null for numbers that JSON lacks."""
    return json.loads(json.dumps(value, default=plain), parse_constant=lambda name: None)


def open_json_lines(place: str) -> JsonLines:
    """What writes to a file, which it appends to, or to standard output.

    Standard output then has nothing else: what this process and those that it starts print from now on goes
    to standard error. Raises UsageError.
    """
    if place == STDOUT:
        if sys.stdout is None:
            raise UsageError("--json-lines -: standard output is closed; name a file")
        sys.stdout.flush()
        kept = os.dup(1)
        os.dup2(2, 1)
        return JsonLines(kept)
    try:
        # Not to wait for the reader of a named pipe.
        opened = os.open(place, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK, 0o644)
    except (OSError, ValueError) as error:
        why = f"cannot be written ({str(getattr(error, 'strerror', 'no name of a file')).lower()})"
        fix = "name a file in a folder that is there"
        if getattr(error, "errno", 0) == errno.ENXIO:
            why, fix = "is a pipe that nobody reads", "start its reader first"
        raise UsageError(f"--json-lines {place}: {why}; {fix}") from error
    os.set_blocking(opened, True)
    return JsonLines(opened)
