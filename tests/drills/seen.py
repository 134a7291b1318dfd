"""What a drill has seen: its study's results, what was printed, processes and files that were left."""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.drills.processes import GONE_S, marked
from tests.faults import GOOD
from tests.locustfiles.console import ROOT
from tests.processes import eventually

if TYPE_CHECKING:
    from tests.drills.rig import Rig

SHOWN_S = 60.0
"""How long a report may take to be made."""
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
    `shown`: the exit code of `inferswarm report` on what was left, None where nothing was.
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


def look(rig: Rig, exit_code: int | None) -> Seen:
    """What is seen after the study's end; its server is killed."""
    noted = rig.target.noted() if rig.target else Counter[str]()
    if rig.target is not None:
        rig.target.kill()
    eventually(lambda: not marked(rig.mark), GONE_S)
    folder = rig.left()
    made = Seen(
        exit_code,
        rig.text + written(rig, folder),
        answered=max(0, noted.pop(GOOD, 0) - rig.before_load) if rig.target else None,
        least_ok=rig.least_ok,
        spoilt=noted,
        processes=tuple(marked(rig.mark).values()),
        temporary=tuple(sorted(entry.name for entry in rig.temporary.iterdir())),
    )
    return made if folder is None else with_results(made, folder, rig.folder / "copy")


def written(rig: Rig, folder: Path | None) -> str:
    """What workers and servers have written: to the results, to the drill's folder, to logs since removed."""
    places = [*rig.folder.glob("worker-*.log"), *(folder.rglob("logs/*.log") if folder else ())]
    outputs = [place.read_bytes() for place in places] + [log.read() for log in rig.held]
    return b"".join(outputs).decode(errors="replace")


def with_results(made: Seen, folder: Path, copy: Path) -> Seen:
    """The same, and what the study left; the report is made again, from a copy."""
    files = frozenset(entry.name for entry in folder.iterdir())
    shutil.copytree(folder, copy)
    code, said = shown(copy)
    found = records(copy)
    ok, failures = in_ledger(found)
    caveats, limit = reported(copy)
    ended = bool(found) and found[-1]["kind"] == "footer"
    return replace(
        made, status=found[-1]["status"] if ended else UNFINISHED, ok=ok, failures=failures,
        caveats=caveats, because=doubted(copy), limit=limit, seconds=reach(copy),
        shown=code, shown_text=said, files=files,
    )  # fmt: skip


def shown(folder: Path) -> tuple[int, str]:
    """What `inferswarm report` says of results: its exit code, and its text."""
    done = subprocess.run(
        [sys.executable, "-m", "reports", "show", str(folder)],
        cwd=ROOT, capture_output=True, text=True, timeout=SHOWN_S, env={**os.environ, "COLUMNS": "200"},
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr
