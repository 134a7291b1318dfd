"""A soak's ledger, as short as one can be."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from reports.ledger.ledger import FILE_NAME
from tests.reports.lines import FIRST_SECOND, window

MS = 1_000_000


def ledger(folder: Path, seconds: int, failures: int = 0, others: tuple[str, ...] = ()) -> None:
    """A study of one cell of so long, whose latencies come to 2 ms and more with every minute; the `others`
    were planned, and never measured.
    """
    tag: dict[str, Any] = {"cell": "a-floor/b1/r50", "repeat": 1}
    began = FIRST_SECOND
    phase = {"kind": "phase", **tag, "phase": "measure", "utc": utc(began)}
    plan = [{"cell": cell, "repeat": 1} for cell in (tag["cell"], *others)]
    lines: list[dict[str, Any]] = [{"kind": "header", "plan": plan}, phase]
    for second in range(seconds):
        made = window(tag, "w0", [(2 + second // 60) * MS] * 5, 1)
        lines.append(made | {"second": began + second, "failures": {"timeout": failures} if failures else {}})
    lines += [
        {"kind": "phase", **tag, "phase": "drain", "utc": utc(began + seconds)},
        {"kind": "drained", **tag, "phase": "measure", "abandoned": 1, "dropped": 2},
        {"kind": "drained", **tag, "phase": "measure", "error": "its disk is full"},
        {"kind": "footer", "status": "complete"},
    ]
    (folder / FILE_NAME).write_text("".join(f"{json.dumps(line)}\n" for line in lines))


def utc(second: int) -> str:
    """As ledgers write the time."""
    return datetime.fromtimestamp(second, UTC).isoformat().replace("+00:00", "Z")
