"""Why a server does not start, in one line of its log."""

from __future__ import annotations

import re

# A tritonserver says it of each model, and ends with no more than that some did not load. A Python error is
# followed by where it was raised, after line breaks that are written as `\n`.
FAILED = re.compile(
    r"\"failed to load '([^']+)' version \d+: (?:Internal: )?(?:RuntimeError: )?(.+?)(?:\\n|\"$)",
    re.MULTILINE,
)

# What a server never gets over: said by the shell that starts a model's process, the loader, or Python.
FATAL = re.compile(
    r"^(bash: (?!warning: ).+|.*error while loading shared libraries: .+|Fatal Python error: .+)$",
    re.MULTILINE,
)


def fatal(log: str) -> str:
    """The line of a log that says that its server will never be ready; nothing where none does."""
    found = FATAL.search(log)
    return found[1] if found else ""


def reason_of(log: str, tail: str) -> str:
    """What its log says of a model that could not be loaded, else what the log ends with."""
    if failed := FAILED.search(log):
        return f"says: {failed[1]} could not be loaded: {failed[2]}"
    return f"ends with: {(tail.splitlines() or ['nothing'])[-1]}"
