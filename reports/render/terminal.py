"""What a report may show of the place it lies in, and a console whose reader may leave."""

import os
import sys
from pathlib import Path

from rich.console import Console

from reports.format import one_line


def public_path(directory: Path, here: Path) -> str:
    """The directory as seen from here, or its name alone where it is not below: reports are passed around."""
    whole = Path(os.path.abspath(here / directory))
    below = whole != here and whole.is_relative_to(here)
    return str(whole.relative_to(here)) if below else f"DIR/{whole.name}"


class PatientConsole(Console):
    """A console whose reader may leave early, as `| head` does; in Rich that ends the program with 1."""

    def on_broken_pipe(self) -> None:
        """Prints no more, and lets Python flush what is left into nowhere."""
        self.quiet = True
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def refused(sentence: str, code: int = 2) -> int:
    """Says on standard error why a command does not do it; the exit code, 2 where the input is to blame."""
    print(f"reports: {one_line(sentence)}", file=sys.stderr)
    return code
