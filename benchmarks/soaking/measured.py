"""What a soak's ledger tells: when each cell was measured, its minutes, and what was lost."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reports.fold.records import epoch_s
from reports.histogram import buckets, codec
from reports.ledger.ledger import FILE_NAME

PERCENTS = (50.0, 95.0, 99.0)


@dataclass
class Cell:
    """One cell: its measure phase by the wall clock, bytes of ledger, counts, and latencies by second."""

    name: str
    began_s: float = 0.0
    ended_s: float = 0.0
    ledger_bytes: int = 0
    ok: int = 0
    lost: int = 0
    """Failed, abandoned or dropped."""
    latencies: defaultdict[int, list[str]] = field(default_factory=lambda: defaultdict(list))

    @property
    def minutes(self) -> float:
        """How long it was measured."""
        return (self.ended_s - self.began_s) / 60

    def by_minute(self, skipped_s: float) -> list[tuple[float, ...]]:
        """Percentiles in ms of each whole minute after so many seconds, in order."""
        begin = int(self.began_s + skipped_s) + 1
        held: defaultdict[int, list[str]] = defaultdict(list)
        for second, texts in self.latencies.items():
            if begin <= second < self.ended_s - 1:
                held[(second - begin) // 60] += texts
        whole = range(int((self.ended_s - 1 - begin) // 60))
        return [percentiles_ms(held[minute]) for minute in whole if held[minute]]


def percentiles_ms(texts: Iterable[str]) -> tuple[float, ...]:
    """Of histograms as the ledger has them."""
    found = buckets.percentiles_ns(codec.merged(texts), PERCENTS)
    return tuple((value or 0.0) / 1e6 for value in found)


@dataclass
class Soak:
    """A study's cells that came to their measure phase, in the order that they were run, and how it ended."""

    cells: list[Cell]
    status: str
    """`complete`, `interrupted`, `failed`; empty where the ledger does not tell."""
    planned: list[str] = field(default_factory=list)
    """The names of all its cells."""

    @property
    def unmeasured(self) -> list[str]:
        """The planned cells that never came to their measure phase, or not to its end."""
        return [name for name in self.planned if name not in {cell.name for cell in self.cells}]


def soak_of(folder: Path) -> Soak:
    """Read from the ledger of a study's folder; a last line that was cut off is left out."""
    cells: dict[str, Cell] = {}
    status, planned = "", list[str]()
    with (folder / FILE_NAME).open() as lines:
        for line in lines:
            if not line.endswith("\n"):
                break
            record = json.loads(line)
            if "cell" in record and "repeat" in record:
                cell = cells.setdefault(record["cell"], Cell(record["cell"]))
                take(cell, record, len(line))
            elif record["kind"] == "header":
                planned = list(dict.fromkeys(entry["cell"] for entry in record["plan"]))
            elif record["kind"] == "footer":
                status = record["status"]
    return Soak([cell for cell in cells.values() if cell.ended_s > cell.began_s > 0], status, planned)


def take(cell: Cell, record: Mapping[str, Any], size: int) -> None:
    """Add one record of a ledger to its cell."""
    if record.get("phase") == "measure" and record["kind"] != "phase":
        cell.ledger_bytes += size
    match record["kind"], record.get("phase"):
        case "phase", "measure":
            cell.began_s = epoch_s(record["utc"])
        case "phase", "drain":
            cell.ended_s = epoch_s(record["utc"])
        case "window", "measure":
            cell.ok += record["ok"]
            cell.lost += sum(record["failures"].values())
            if "latency" in record["histograms"]:
                cell.latencies[record["second"]].append(record["histograms"]["latency"])
        case "drained", _:
            # A worker that could not say with what it has drained says why instead: `results-lost`.
            cell.lost += record.get("abandoned", 0) + (record.get("dropped") or 0)
