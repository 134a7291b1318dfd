"""All that a drill has left, looked at: its study's results, what was printed, processes, files."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

from benchmarks.drilling.commanded import GOOD
from benchmarks.drilling.processes import GONE_S, ROOT, marked, until
from benchmarks.drilling.rig import LOAD_S, Rig
from benchmarks.drilling.seen import UNFINISHED, Seen, doubted, in_ledger, reach, records, reported


def look(rig: Rig, exit_code: int | None) -> Seen:
    """What is seen after the study's end; its server is killed."""
    noted = rig.target.noted() if rig.target else Counter[str]()
    if rig.target is not None:
        rig.target.kill()
    until(lambda: not marked(rig.mark), GONE_S)
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
    """What `python -m reports show` says of results: its exit code, and its text."""
    done = subprocess.run(
        [sys.executable, "-m", "reports", "show", str(folder)],
        cwd=ROOT, capture_output=True, text=True, timeout=LOAD_S, env={**os.environ, "COLUMNS": "200"},
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr
