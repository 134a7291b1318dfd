"""inferswarm history: what became of each cell's figures over many studies, and what changed then."""

import argparse
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from reports.history.changes import LEAST_EFFECT
from reports.history.csv import render_history
from reports.history.page import History, history_page, is_worse
from reports.history.reading import read_history
from reports.history.series import FOLLOWED, told_series
from reports.render.console import NOT_TOLD, OK, print_page, public_path, refused
from reports.render.files import write_files, writing
from reports.render.html import render_html

REGRESSED = 1
COLUMNS = {measure.column: measure for measure in FOLLOWED}
MOST_EFFECT = 100.0


def add_history(commands: Any) -> None:
    """Adds the sub-command to those of `argparse`."""
    told = commands.add_parser(
        "history",
        help="follow each cell over many studies: change points, and what else changed then",
        description="Reads every complete study below the folders, which may be URLs such as "
        "s3://bucket/results. Says which figures changed, since when, by how much, and what of versions, "
        "machine and options changed at the same time. Writes history.html and history.csv.",
        epilog="Example: inferswarm history results --since 2026-10-01. "
        "Exit code: 0 when told, 1 with --fail-on-regression where one stands, 2 when a folder cannot be "
        "read or nothing can be written, 3 when no study below the folders counts.",
    )
    told.add_argument("places", metavar="DIR", nargs="+", help="folders with results of studies, or URLs")
    told.add_argument(
        "--out",
        metavar="DIR",
        type=Path,
        default=Path("results/history"),
        help="where to write (default: results/history)",
    )
    told.add_argument("--since", metavar="DATE", type=_date, help="leave out studies before, e.g. 2026-10-01")
    told.add_argument("--cells", metavar="GLOB", default="*", help="only such cells, e.g. '*-grpc/b1/*'")
    told.add_argument(
        "--measure",
        metavar="COLUMN",
        action="append",
        choices=tuple(COLUMNS),
        help=f"only this one, repeatable: {', '.join(COLUMNS)}",
    )
    told.add_argument(
        "--least-effect",
        metavar="PERCENT",
        type=_percent,
        default=100 * (LEAST_EFFECT - 1),
        help="the least change that is told (default: 2)",
    )
    told.add_argument(
        "--fail-on-regression",
        action="store_true",
        help="exit with 1 where a rate or latency got worse and was not mended",
    )
    told.add_argument("--quiet", action="store_true", help="write the files and print nothing")
    told.set_defaults(run=history)


def history(arguments: argparse.Namespace) -> int:
    """Tells the history of the folders; 0, 1 or 3, or HistoryError or WriteError."""
    studies, skipped = read_history(arguments.places)
    kept = [study for study in studies if not arguments.since or study.began >= arguments.since]
    measures = [COLUMNS[name] for name in arguments.measure or COLUMNS]
    least = 1 + arguments.least_effect / 100
    series = told_series(kept, measures, lambda cell: fnmatchcase(cell, arguments.cells), least)
    if not series:
        return refused(_nothing(arguments, len(studies), skipped), NOT_TOLD)
    places = tuple(
        place if "://" in place else public_path(Path(place), Path.cwd()) for place in arguments.places
    )
    told = History(places, _given(arguments), kept, skipped, series, least)
    page = history_page(told)
    with writing(arguments.out, "fix that, or give --out"):
        write_files(arguments.out, {"history.html": render_html(page), "history.csv": render_history(series)})
    if not arguments.quiet:
        print_page(page, f"The whole history: {arguments.out / 'history.html'}")
    return REGRESSED if arguments.fail_on_regression and is_worse(told) else OK


def _nothing(arguments: argparse.Namespace, complete: int, skipped: list[str]) -> str:
    """Why there is nothing to tell."""
    where = " ".join(arguments.places)
    if complete:
        return (
            f"{where}: of {complete} complete studies none has what --since, --cells and --measure ask for."
        )
    first = f"; the first of {len(skipped)} that are left out: {skipped[0].rstrip('.')}" if skipped else ""
    return f"{where}: has no complete study: name a folder with results of studies{first}."


def _given(arguments: argparse.Namespace) -> tuple[str, ...]:
    """The options that make the page again."""
    told = []
    if arguments.since:
        told += ["--since", f"{arguments.since:%Y-%m-%d}"]
    if arguments.cells != "*":
        told += ["--cells", arguments.cells]
    for name in arguments.measure or ():
        told += ["--measure", name]
    if arguments.least_effect != 100 * (LEAST_EFFECT - 1):
        told += ["--least-effect", f"{arguments.least_effect:g}"]
    return tuple(told)


def _date(text: str) -> datetime:
    try:
        return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no date: give one such as 2026-10-01") from None


def _percent(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= MOST_EFFECT:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no percentage: give a number from 0 to {MOST_EFFECT:g}"
        )
    return value
