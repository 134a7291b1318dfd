"""What starting a server took: until it answered at all, and loading its model."""

from __future__ import annotations

import json
import re
from datetime import datetime, timedelta

from server.net import get

# A tritonserver's log lines begin with their kind and time: `I1121 16:58:01.344705 16135 file.cc:472] "..."`.
STAMP, CLOCK = r"^[A-Z](\d{4} \d\d:\d\d:\d\d\.\d{6}) [^\n]*", "%Y%m%d %H:%M:%S.%f"


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
