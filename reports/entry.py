"""How a command begins: Ctrl-C during its imports ends it in silence, and it outlasts its output's reader."""

import errno
import io
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

INTERRUPTED = 130
"""The exit code of a command that Ctrl-C stopped; a study's is 3."""


def leave_at_interrupt(code: int = INTERRUPTED) -> None:
    """From here on Ctrl-C ends the process at once, in silence; where it is ignored it stays so.

    Modules are being imported, which may print an exception, or turn it into another.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, lambda *_: os._exit(code))


@contextmanager
def leaving_at_interrupt(code: int = INTERRUPTED) -> Iterator[None]:
    """The same for as long as it is entered."""
    before = signal.getsignal(signal.SIGINT)
    leave_at_interrupt(code)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


class LastingOutput(io.FileIO):
    """Standard output or error that drops what it cannot write: its reader has left, or its disk is full."""

    _told = False

    def write(self, data: bytes | memoryview) -> int | None:  # type: ignore[override]
        """As a file's own, but that it raises nothing."""
        try:
            return super().write(data)
        except OSError as error:
            if error.errno != errno.EPIPE and not self._told:
                self._told = True
                self._tell(str(error.strerror))
            return len(data)

    def _tell(self, why: str) -> None:
        place = f"output {self.fileno()}"
        with suppress(OSError):
            place = os.readlink(f"/proc/self/fd/{self.fileno()}")
        with suppress(OSError):
            os.write(2, f"inferswarm: {place} cannot be written ({why}): it lacks the rest.\n".encode())


def outlast_output() -> None:
    """Let standard output and error be such, but where others have taken the place of Python's own.

    What the encoding of standard output lacks is shown as a question mark: a dash must not end a report.
    """
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if not isinstance(stream, io.TextIOWrapper) or stream is not getattr(sys, f"__{name}__"):
            continue
        output = LastingOutput(stream.fileno(), "wb", closefd=False)
        binary: Any = output if stream.write_through else io.BufferedWriter(output)
        lasting = io.TextIOWrapper(
            binary,
            encoding=stream.encoding,
            errors="replace" if stream.errors == "strict" else stream.errors,
            line_buffering=stream.line_buffering,
            write_through=stream.write_through,
        )
        setattr(sys, name, lasting)
