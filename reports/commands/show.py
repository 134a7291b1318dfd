"""inferswarm report: one study's files, and its tables on the terminal."""

import argparse
import math
from pathlib import Path
from typing import Any

from reports.gates.verdict import kept_in
from reports.render.console import OK, print_page, public_path
from reports.render.files import write_report, writing
from reports.study.study import load_study
from reports.topics.report import build_page


def add_show(commands: Any) -> None:
    """Adds the sub-command to those of `argparse`."""
    shown = commands.add_parser(
        "report",
        aliases=["show"],
        help="write study.json, cells.csv, timeline.csv, summary.md and report.html, and print the tables",
        description="Reads DIR/ledger.jsonl, finished or not, writes study.json, cells.csv, timeline.csv, "
        "summary.md and report.html into DIR, and prints the tables.",
        epilog="Example: inferswarm report results/step7-20261121T110000Z. "
        "Exit code: 0 when rendered, 2 when DIR has no readable ledger or gates.json, or cannot be written. "
        "With python -X dev, what a damaged record leads to ends with its traceback.",
    )
    shown.add_argument("directory", metavar="DIR", type=Path, help="the directory that a study left")
    shown.add_argument(
        "--usd-per-hour",
        metavar="USD",
        type=price,
        help="what the servers cost together (default: what the study was told, if it was)",
    )
    shown.add_argument("--brief", action="store_true", help="print the first screen only, without tables")
    shown.add_argument("--quiet", action="store_true", help="write the files and print nothing")
    shown.set_defaults(run=show)


def price(text: str) -> float:
    """US dollars an hour, at least 0; 0 is unknown. Raises argparse.ArgumentTypeError."""
    try:
        usd = float(text)
    except ValueError:
        usd = math.nan
    if not (usd >= 0 and math.isfinite(usd)):
        raise argparse.ArgumentTypeError(f"{text!r}: give US dollars an hour, e.g. 0.85, or 0 for unknown")
    return usd


def show(arguments: argparse.Namespace) -> int:
    """Renders one result directory; 0, or GateError, LedgerError or WriteError."""
    directory: Path = arguments.directory
    verdicts = kept_in(directory)
    study = load_study(directory, arguments.usd_per_hour)
    page = build_page(study, public_path(directory, Path.cwd()), arguments.usd_per_hour, verdicts)
    with writing(directory, "fix that, and try again"):
        write_report(directory, study, page, verdicts)
    if not arguments.quiet:
        print_page(page, f"Report: {directory / 'report.html'}", tables=not arguments.brief)
    return OK
