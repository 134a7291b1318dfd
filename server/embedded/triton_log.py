"""What a server tells of its start: how long it took, or why it failed, in one line."""

from __future__ import annotations

import json
import re
from datetime import datetime, timedelta

from server.net import get

# A tritonserver's log lines begin with their kind and time: `I1121 16:58:01.344705 16135 file.cc:472] "..."`.
STAMP, CLOCK = r"^[A-Z](\d{4} \d\d:\d\d:\d\d\.\d{6}) [^\n]*", "%Y%m%d %H:%M:%S.%f"
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


def triton_loading_ns(log: str, model: str) -> int | None:
    """Nanoseconds from `loading` to `successfully loaded` in a tritonserver's log; None without both."""
    name = re.escape(model)
    began = re.search(rf'{STAMP}"loading: {name}:1"', log, re.MULTILINE)
    ended = re.search(rf"{STAMP}\"successfully loaded '{name}'\"", log, re.MULTILINE)
    if not began or not ended:
        return None
    # The log tells no year: any that has a 29 February will do, and a load over New Year's Eve is not told.
    first, last = (datetime.strptime(f"2000{stamp[1]}", CLOCK) for stamp in (began, ended))
    return (last - first) // timedelta(microseconds=1) * 1000 if last >= first else None


def service_loading_ns(address: str) -> int | None:
    """Nanoseconds that the PyTorch service says loading its model took; None where it does not say."""
    reply = get(address, "/readyz")
    try:
        return round(json.loads(reply[1])["load_s"] * 1e9) if reply else None
    except (ValueError, KeyError, TypeError):
        return None


def fatal(log: str) -> str:
    """The line of a log that says that its server will never be ready; nothing where none does."""
    found = FATAL.search(log)
    return found[1] if found else ""


def reason_of(log: str, tail: str) -> str:
    """What its log says of a model that could not be loaded, else what the log ends with."""
    if failed := FAILED.search(log):
        return f"says: {failed[1]} could not be loaded: {failed[2]}"
    return f"ends with: {(tail.splitlines() or ['nothing'])[-1]}"
