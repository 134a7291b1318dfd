"""inferswarm calibrate: how noisy a machine is, and what gates can tell on it."""

import argparse
import shlex
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

from reports.format import digits, plural
from reports.gates.calibrate import SURE, Alike, alarms, alike, detectable, pairs_for, pairs_to_pass, passable
from reports.gates.compared import what_differs
from reports.gates.evidence import MOST_REPEATS
from reports.gates.require import COMPARABLE, hint
from reports.gates.source import source_of
from reports.gates.thresholds import LEAST_EFFECT
from reports.page.page import Page, Section
from reports.page.table import Table, table_of
from reports.render.console import NOT_TOLD, OK, print_page, public_path, refused
from reports.render.files import write_whole, writing
from reports.render.markdown import render_markdown
from reports.stats.paired import LEAST_REPEATS
from reports.study.study import Study, load_study

MEASURES = ("images_per_s", "latency_p50_ms", "latency_p95_ms")
PAIRS = (3, 5, 10, 20)
POWERS = (0.80, SURE)
USUAL_PAIRS = 10
CHANGES = (0.05, 0.10, 0.15)
VARIES = (
    "Neighbouring repeats are pairs. Spread, within and drift are standard deviations of one run in percent: "
    "among all, among the two of a pair, and what the two have in common, of which comparing in turns is "
    "free. False alarms are the share, in percent, of the sign flips of the pairs in which a gate would say "
    "fail; in brackets, where any effect counts."
)
TELLS = (
    "The smallest slowdown, in percent, that is caught in 80 % of all cases / in 95 %, all cells being gated "
    "together. 10 % slower is 1.1 times the latency, or the rate divided by 1.1."
)
Columns = Sequence[Sequence[Alike]]


def add_calibrate(commands: Any) -> None:
    """Adds the sub-command to those of `argparse`."""
    told = commands.add_parser(
        "calibrate",
        help="from repeats of one and the same thing: false alarms, and the smallest slowdown that shows",
        description="Takes neighbouring repeats of each cell for pairs in which nothing changed (A/A), and "
        "says how far they are apart, how often a gate would fail them, and which slowdown so many pairs "
        "would show on this machine. Several directories are studies of one thing, made one after the other.",
        epilog="Example: locust -f locustfiles/step7.py --headless --repeats 20 --cells 'emulated-*/b1/c1' "
        "--emulate a100; then inferswarm calibrate results/step7-20261121T110000Z. "
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
            which = hint(name, COMPARABLE)
            raise argparse.ArgumentTypeError(f"{name!r}: is no column whose ratio can be gated; {which}")
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
    """Says what the repeats say; 0, 2 or 3, or GateError, LedgerError or WriteError."""
    studies = [(path, load_study(path)) for path in arguments.directories]
    # in the order in which they were made
    studies.sort(key=lambda one: str(one[1].header["started_utc"]))
    source = source_of(studies)
    cells = [cell for cell in source.runs if fnmatchcase(cell, arguments.cells)]
    if not cells:
        known = ", ".join(source.runs) or "none that was begun"
        return refused(f"--cells {arguments.cells!r}: names no cell; there are {known}.")
    if differing := next(_differing(studies, cells), ""):
        return refused(differing, NOT_TOLD)
    found = alike(source, cells, arguments.measure)
    enough = [one for one in found if one.pairs >= LEAST_REPEATS]
    lacking = [_lacking(one) for one in found if one.pairs < LEAST_REPEATS]
    if not enough:
        return refused(f"{lacking[0]} Make more: --repeats 20.", NOT_TOLD)
    page = calibrate_page(enough, arguments.pairs, lacking, _command(arguments))
    if arguments.out:
        with writing(arguments.out, "name another --out"):
            write_whole(arguments.out, render_markdown(page))
    print_page(page)
    return OK


def _differing(studies: Sequence[tuple[Path, Study]], cells: Sequence[str]) -> Iterator[str]:
    """Why studies that follow each other are not of one and the same thing."""
    for one, other in pairwise([source_of([study]) for study in studies]):
        for cell in cells:
            if cell in one.runs and cell in other.runs and (different := what_differs(other, one, cell, ())):
                names = f"{one.sides[0].name} and {other.sides[0].name}"
                yield f"{names} are not of one and the same thing: {different}; name studies that are."


def _lacking(one: Alike) -> str:
    why = f": {one.left_out}" if one.left_out else ""
    return f"{one.cell}, {one.column}: {len(one.logs)} repeats count, and it takes {2 * LEAST_REPEATS}{why}."


def _command(arguments: argparse.Namespace) -> str:
    """What makes the same tables again."""
    places = [public_path(path, Path.cwd()) for path in arguments.directories]
    options = ["--measure", ",".join(arguments.measure), "--cells", arguments.cells]
    pairs = ["--pairs", ",".join(map(str, arguments.pairs))]
    return shlex.join(["inferswarm", "calibrate", *places, *options, *pairs])


def calibrate_page(
    found: Sequence[Alike], pairs: Sequence[int], lacking: Sequence[str], command: str
) -> Page:
    """Of cells with enough pairs, column by column; `lacking` are sentences on those with fewer."""
    columns = [list(some) for _, some in groupby(found, key=lambda one: one.column)]
    cells, runs = len({one.cell for one in found}), sum(len(one.logs) for one in columns[0])
    return Page(
        title="Calibration: one and the same thing, measured again and again",
        facts=f"{plural(cells, 'cell')}, {plural(runs, 'run')} that count",
        notices=tuple(lacking),
        findings=(*(text for some in columns for text in _advice(some)), _caution(found)),
        sections=(Section("Noise", (_varies(columns), _tells(columns, pairs))),),
        commands=(command,),
    )


def _advice(found: Sequence[Alike]) -> Iterator[str]:
    """What to write into a file of thresholds, by the cell that varies most."""
    worst = max(found, key=lambda one: one.of_a_pair)
    needed = passable(worst.of_a_pair, USUAL_PAIRS)
    default = _many(pairs_to_pass(worst.of_a_pair, LEAST_EFFECT))
    passes = f"what did not change passes in {100 * SURE:g} % of all cases"
    if needed <= LEAST_EFFECT:
        yield f"{worst.column}: least_effect = {LEAST_EFFECT:g} does; {passes} with {default} pairs."
    else:
        yield (
            f"{worst.column}: put least_effect = {needed:g}, and {passes} with {USUAL_PAIRS} pairs; at the "
            f"default of {LEAST_EFFECT:g} it takes {default} pairs."
        )
    changes = [(change, pairs_for(change, worst.of_a_pair, len(found))) for change in CHANGES]
    told = ", ".join(f"{_many(takes)} for {100 * change:g} %" for change, takes in changes)
    yield (
        f"{worst.column}: pairs that it takes to catch a change in {100 * SURE:g} % of all cases, with a "
        f"least_effect of half of it: {told}."
    )


def _caution(found: Sequence[Alike]) -> str:
    """How far the spreads may be off, which rest on as many values as there are pairs."""
    fewest = min(found, key=lambda one: one.pairs)
    return (
        f"{plural(fewest.pairs, 'pair')} tell a spread only roughly: the true one may be "
        f"{digits(fewest.doubt)} times as large."
    )


def _varies(columns: Columns) -> Table:
    heads = ("cell", "column", "runs", "spread", "within", "drift", "false alarms")
    rows = [row for found in columns for row in _noise_rows(found)]
    return table_of("How the machine varies", heads, rows, caption=VARIES, numeric=range(2, len(heads)))


def _noise_rows(found: Sequence[Alike]) -> Iterator[tuple[object, ...]]:
    each, together = alarms(found, LEAST_EFFECT)
    for one, its in zip(found, each, strict=True):
        spreads = map(_percent, (one.spread, one.within, one.drift))
        yield one.cell, one.column, len(one.logs), *spreads, its
    if len(found) > 1:
        any_of_them = f"any of {len(found)}, gated together"
        yield any_of_them, found[0].column, *[""] * 4, together


def _tells(columns: Columns, pairs: Sequence[int]) -> Table:
    heads = ("cell", "column", *(f"{count} pairs" for count in pairs))
    rows = [
        (one.cell, one.column, *(_detectable_said(one, count, len(found)) for count in pairs))
        for found in columns
        for one in found
    ]
    caption = f"{TELLS} The least effect is {LEAST_EFFECT:g}."
    return table_of("What it can tell", heads, rows, caption=caption, numeric=range(2, len(heads)))


def _detectable_said(one: Alike, pairs: int, cells: int) -> str:
    shares = (detectable(one.of_a_pair, pairs, cells, power, LEAST_EFFECT) for power in POWERS)
    return " / ".join(map(_percent, shares))


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"


def _many(pairs: int | None) -> str:
    return "more than 1,000" if pairs is None else str(pairs)
