"""inferswarm baseline: a small file of a study, which later ones are compared with."""

import argparse
from pathlib import Path
from typing import Any

from reports.format import counted, plain, plural
from reports.gates.baseline import baseline_text, incomplete
from reports.gates.source import Counting, GateSource, source_of
from reports.render.console import NOT_TOLD, OK, refused
from reports.render.files import write_whole, writing
from reports.study.study import Study, load_study

ENDING = ".baseline.json"
MEASURE = "requests"
"""A run that counts for it says something of its cell, whatever its load is."""


def add_baseline(commands: Any) -> None:
    """Adds the sub-command to those of `argparse`."""
    kept = commands.add_parser(
        "baseline",
        help="keep what comparisons need of studies in a small file",
        description="Writes the headers and the rows of cells.csv of complete studies into one file, which "
        "`inferswarm gate --baseline FILE` compares later studies with. Name three or more, made at "
        "different times: they tell how much the machine changes by itself.",
        epilog="Example: inferswarm baseline DIR DIR DIR --out main.baseline.json. "
        "Exit code: 0 when written, 2 when a DIR has no readable ledger or nothing can be written, 3 when a "
        "study is not complete or has no run that counts.",
    )
    kept.add_argument("directories", metavar="DIR", nargs="+", type=Path, help="what a study left")
    kept.add_argument(
        "--out",
        metavar="FILE",
        type=Path,
        help=f"the file (default: the last DIR's name and {ENDING}, in the current folder)",
    )
    kept.set_defaults(run=baseline)


def baseline(arguments: argparse.Namespace) -> int:
    """Writes the file; 0 or 3, or GateError, LedgerError or WriteError."""
    places: list[Path] = arguments.directories
    file = arguments.out or Path(f"{places[-1].resolve().name}{ENDING}")
    studies = [(path, load_study(path)) for path in places]
    if useless := next(filter(None, (_useless(path, study) for path, study in studies)), ""):
        return refused(useless, NOT_TOLD)
    text, told = baseline_text(studies), _told(source_of(studies))
    with writing(file, "name another --out"):
        write_whole(file, text)
    print(f"{plain(file)}: {told}, {counted(len(text.encode()))} bytes")
    return OK


def _useless(path: Path, study: Study) -> str:
    """Why nothing may be compared with a study; empty where it may."""
    if why := incomplete(study.status):
        return f"{path}: {why}"
    if not any(_counting(source_of([(path, study)]))):
        return f"{path}: has no run that counts: read its caveats, fix their causes, and run it again."
    return ""


def _counting(source: GateSource) -> list[int]:
    """How many runs of each cell count."""
    every = Counting()
    return [len(every.counted(runs, source.cells[cell], MEASURE).runs) for cell, runs in source.runs.items()]


def _told(source: GateSource) -> str:
    counts = _counting(source)
    runs = sum(len(runs) for runs in source.runs.values())
    return f"{plural(len(counts), 'cell')}, {sum(counts)} of {plural(runs, 'run')} count"
