"""python -m reports calibrate: how noisy a machine is, and what gates can tell on it."""

import argparse
import shlex
from collections.abc import Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase
from itertools import pairwise
from pathlib import Path
from typing import Any

from reports.commands.calibrate_page import calibrate_page
from reports.gates.calibrate import Alike, alike
from reports.gates.claim import LEAST_REPEATS
from reports.gates.columns import FAILURE_RATIO, GATED, Kind, kind_of
from reports.gates.error import GateError
from reports.gates.evidence import MOST_REPEATS
from reports.gates.same import what_differs
from reports.gates.source import Source, source_of
from reports.ledger.damage import damage_refused
from reports.ledger.ledger import FILE_NAME, LedgerError
from reports.render.console import render_console
from reports.render.files import write_whole
from reports.render.markdown import render_markdown
from reports.render.terminal import PatientConsole, public_path, refused
from reports.study.study_reports import load_study

OK, USAGE_ERROR, NOT_TOLD = 0, 2, 3
MEASURES = ("images_per_s", "latency_p50_ms", "latency_p95_ms")
PAIRS = (3, 5, 10, 20)
COMPARABLE = tuple(name for name in GATED if name != FAILURE_RATIO and kind_of(name) is not Kind.EVIDENCE)


def add_calibrate(commands: Any) -> None:
    """Adds the sub-command to those of `argparse`."""
    told = commands.add_parser(
        "calibrate",
        help="from repeats of one and the same thing: false alarms, and the smallest slowdown that shows",
        description="Takes neighbouring repeats of each cell for pairs in which nothing changed (A/A), and "
        "says how far they are apart, how often a gate would fail them, and which slowdown so many pairs "
        "would show on this machine. Several directories are studies of one thing, made one after the other.",
        epilog="Example: locust -f locustfiles/step7.py --headless --repeats 20 --cells 'emulated-*/b1/c1' "
        "--emulate a100; then python -m reports calibrate results/step7-20261121T110000Z. "
        "Exit code: 0 when told, 2 when a DIR or an option cannot be used, 3 when no cell has 6 repeats "
        "that count, or the studies differ.",
    )
    told.add_argument("directories", metavar="DIR", nargs="+", type=Path, help="what a study left")
    told.add_argument(
        "--measure",
        metavar="COLUMN[,COLUMN]",
        type=columns,
        default=MEASURES,
        help=f"columns of cells.csv (default: {','.join(MEASURES)})",
    )
    told.add_argument(
        "--cells", metavar="GLOB", default="*", help="only cells with such names (default: all)"
    )
    told.add_argument(
        "--pairs",
        metavar="N[,N]",
        type=counts,
        default=PAIRS,
        help=f"numbers of pairs to tell of (default: {','.join(map(str, PAIRS))})",
    )
    told.add_argument("--out", metavar="FILE", type=Path, help="a Markdown file to write it to as well")
    told.set_defaults(run=calibrate)


def columns(text: str) -> tuple[str, ...]:
    """Columns of which a ratio means something. Raises argparse.ArgumentTypeError."""
    names = tuple(dict.fromkeys(text.split(",")))
    for name in names:
        if name not in COMPARABLE:
            near = get_close_matches(name, COMPARABLE, 1)
            hint = f"did you mean {near[0]}?" if near else f"they are {', '.join(COMPARABLE)}"
            raise argparse.ArgumentTypeError(f"{name!r}: is no column whose ratio can be gated; {hint}")
    return names


def counts(text: str) -> tuple[int, ...]:
    """Numbers of pairs, as many as a ratio takes or more. Raises argparse.ArgumentTypeError."""
    found = tuple(int(one) if one.isdecimal() else 0 for one in text.split(","))
    if not all(LEAST_REPEATS <= one <= MOST_REPEATS for one in found):
        raise argparse.ArgumentTypeError(
            f"{text!r}: give numbers from {LEAST_REPEATS} to {MOST_REPEATS:,}, e.g. 5,10"
        )
    return found


def calibrate(arguments: argparse.Namespace) -> int:
    """Says what the repeats say; 0, or 2 or 3 with a sentence on standard error."""
    places: list[Path] = arguments.directories
    try:
        with damage_refused(" or ".join(str(path / FILE_NAME) for path in places)):
            found = _found(places, arguments.cells, arguments.measure)
            enough = [one for one in found if one.pairs >= LEAST_REPEATS]
            lacking = [_lacking(one) for one in found if one.pairs < LEAST_REPEATS]
            if not enough:
                return refused(f"{lacking[0]} Make more: --repeats 20.", NOT_TOLD)
            page = calibrate_page(enough, arguments.pairs, lacking, _command(arguments))
        if arguments.out:
            write_whole(arguments.out, render_markdown(page))
    except _Differ as error:
        return refused(str(error), NOT_TOLD)
    except (GateError, LedgerError) as error:
        return refused(str(error), USAGE_ERROR)
    except OSError as error:
        return refused(
            f"{arguments.out}: cannot be written ({error.strerror}): name another --out.", USAGE_ERROR
        )
    render_console(page, PatientConsole(highlight=False))
    return OK


class _Differ(Exception):
    """The studies are not of one and the same thing."""


def _found(places: Sequence[Path], wanted: str, measures: Sequence[str]) -> list[Alike]:
    """Every cell and column of the studies, which are taken in the order in which they were made."""
    studies = [(path, load_study(path)) for path in places]
    studies.sort(key=lambda one: str(one[1].header["started_utc"]))
    source = source_of(studies)
    cells = [cell for cell in source.runs if fnmatchcase(cell, wanted)]
    if not cells:
        known = ", ".join(source.runs) or "none that was begun"
        raise GateError(f"--cells {wanted!r}: names no cell; there are {known}.")
    for one, other in pairwise([source_of([study]) for study in studies]):
        _check_alike(one, other, cells)
    return alike(source, cells, measures)


def _check_alike(one: Source, other: Source, cells: Sequence[str]) -> None:
    for cell in cells:
        if cell in one.runs and cell in other.runs and (different := what_differs(other, one, cell, ())):
            names = f"{one.sides[0].name} and {other.sides[0].name}"
            raise _Differ(f"{names} are not of one and the same thing: {different}; name studies that are.")


def _lacking(one: Alike) -> str:
    why = f": {one.left_out}" if one.left_out else ""
    return f"{one.cell}, {one.column}: {len(one.logs)} repeats count, and it takes {2 * LEAST_REPEATS}{why}."


def _command(arguments: argparse.Namespace) -> str:
    """What makes the same tables again."""
    places = [public_path(path, Path.cwd()) for path in arguments.directories]
    options = ["--measure", ",".join(arguments.measure), "--cells", arguments.cells]
    pairs = ["--pairs", ",".join(map(str, arguments.pairs))]
    return shlex.join(["python", "-m", "reports", "calibrate", *places, *options, *pairs])
