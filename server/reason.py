"""Why a server ended while starting, in one line of its log."""

from __future__ import annotations

import re

# A tritonserver says it of each model, and ends with no more than that some did not load. A Python error is
# followed by where it was raised, after line breaks that are written as `\n`.
FAILED = re.compile(
    r"\"failed to load '([^']+)' version \d+: (?:Internal: )?(?:RuntimeError: )?(.+?)(?:\\n|\"$)",
    re.MULTILINE,
)


def reason_of(log: str, tail: str) -> str:
    """What its log says of a model that could not be loaded, else what the log ends with."""
    if failed := FAILED.search(log):
        return f"says: {failed[1]} could not be loaded: {failed[2]}"
    return f"ends with: {(tail.splitlines() or ['nothing'])[-1]}"
