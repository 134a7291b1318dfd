"""python -m reports: makes reports from the ledgers that studies leave."""

import argparse
import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from reports.ledger import LedgerError
from reports.page import build_page
from reports.render.console import render_console
from reports.render.files import write_report
from reports.study import load_study

OK, USAGE_ERROR = 0, 2


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command; 0 where it was done, 2 where the input cannot be used."""
    arguments = parser().parse_args(argv)
    try:
        return show(arguments.directory, arguments.quiet)
    except LedgerError as error:
        sentence = str(error)
    except OSError as error:
        sentence = (
            f"{arguments.directory}: cannot be written ({error.strerror}): mend that, then show it again."
        )
    print(f"reports: {sentence}", file=sys.stderr)
    return USAGE_ERROR


def parser() -> argparse.ArgumentParser:
    """The command line: one sub-command for each thing to do."""
    top = argparse.ArgumentParser(prog="python -m reports", description=__doc__)
    commands = top.add_subparsers(required=True, metavar="COMMAND")
    shown = commands.add_parser(
        "show",
        help="write study.json, cells.csv, timeline.csv, summary.md and report.html, and print the tables",
        description="Reads DIR/ledger.jsonl, finished or not, writes study.json, cells.csv, timeline.csv, "
        "summary.md and report.html into DIR, and prints the tables.",
        epilog="Example: python -m reports show results/step7-20261121T110000Z. "
        "Exit code: 0 when rendered, 2 when DIR has no readable ledger or cannot be written.",
    )
    shown.add_argument("directory", metavar="DIR", type=Path, help="the directory that a study left")
    shown.add_argument("--quiet", action="store_true", help="write the files and print nothing")
    return top


def show(directory: Path, quiet: bool) -> int:
    """Renders one result directory."""
    study = load_study(directory)
    page = build_page(study, public_path(directory, Path.cwd()))
    write_report(directory, study, page)
    if not quiet:
        console = PatientConsole(highlight=False)
        render_console(page, console)
        console.print(f"\nThe whole report: {directory / 'report.html'}", markup=False, soft_wrap=True)
    return OK


def public_path(directory: Path, here: Path) -> str:
    """The directory as seen from here, or its name alone where it is not below: reports are passed around."""
    whole = Path(os.path.abspath(here / directory))
    below = whole != here and whole.is_relative_to(here)
    return str(whole.relative_to(here)) if below else f"DIR/{whole.name}"


class PatientConsole(Console):
    """A console whose reader may leave early, as `| head` does; in Rich that ends the program with 1."""

    def on_broken_pipe(self) -> None:
        """Prints no more, and lets Python flush what is left into nowhere."""
        self.quiet = True
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a dash must not end the report where the locale is ASCII
    sys.exit(main())
