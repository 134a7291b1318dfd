"""What a drill has seen: read from the folder that the study left and from what was printed."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

UNFINISHED = "unfinished"
"""The status of a study without an end."""
FILES = ("study.json", "cells.csv", "timeline.csv", "summary.md", "report.html")


@dataclass(frozen=True)
class Seen:
    """`exit_code` is None where the study had not ended by its deadline.

    `ok`, `failures`: of warm-up and measure phase, as the ledger's windows count them. `answered`: requests
    of the load that the server says it answered as it should; `spoilt`: those it met with each fault.
    `least_ok`: successes that were in the ledger when the fault came. `answered` is None without a stand-in.
    `because`: why the study calls itself inconclusive. `seconds`: how far timeline.csv reaches.
    `shown`: the exit code of `python -m reports show` on what was left, None where nothing was.
    """

    exit_code: int | None
    text: str
    status: str = ""
    ok: int = 0
    failures: Mapping[str, int] = field(default_factory=dict)
    answered: int | None = None
    least_ok: int = 0
    spoilt: Mapping[str, int] = field(default_factory=dict)
    caveats: frozenset[str] = frozenset()
    because: frozenset[str] = frozenset()
    limit: str = ""
    shown: int | None = None
    shown_text: str = ""
    seconds: int = 0
    files: frozenset[str] = frozenset()
    processes: tuple[str, ...] = ()
    temporary: tuple[str, ...] = ()


def records(folder: Path) -> list[dict[str, Any]]:
    """The whole records of a ledger, which may end in half a line."""
    place = folder / "ledger.jsonl"
    lines = place.read_text().splitlines() if place.exists() else []
    return [json.loads(line) for line in lines if line.endswith("}")]


def measured(folder: Path) -> set[str]:
    """The workers that have a window of the measure phase in the ledger so far."""
    return {r["worker"] for r in records(folder) if r["kind"] == "window" and r["phase"] == "measure"}


def in_ledger(found: list[dict[str, Any]]) -> tuple[int, Counter[str]]:
    """Successes, and failures by kind, of all windows."""
    ok, failures = 0, Counter[str]()
    for record in found:
        if record["kind"] == "window":
            ok += record["ok"]
            failures.update(record["failures"])
    return ok, failures


def reach(folder: Path) -> int:
    """The seconds from the first row of timeline.csv to the last."""
    place = folder / "timeline.csv"
    if not place.exists():
        return 0
    with place.open() as lines:
        found = [int(row["t_s"]) for row in csv.DictReader(lines)]
    return max(found, default=0) - min(found, default=0)


def reported(folder: Path) -> tuple[frozenset[str], str]:
    """The caveats of all rows of cells.csv, and their limits."""
    place = folder / "cells.csv"
    if not place.exists():
        return frozenset(), ""
    with place.open() as lines:
        rows = list(csv.DictReader(lines))
    codes = frozenset(code for row in rows for code in row["caveats"].split(";") if code)
    return codes, ", ".join(sorted({row["limit"] for row in rows if row["limit"]}))


def doubted(folder: Path) -> frozenset[str]:
    """Why study.json says that no verdict is allowed; empty where it allows one, or is not there."""
    place = folder / "study.json"
    return frozenset(json.loads(place.read_text())["inconclusive_because"] if place.exists() else ())
