"""python -m reports compare: two or more sides beside each other, cell by cell."""

import argparse
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from reports.cells_csv.load import load_sides
from reports.cells_csv.side import Side, SideError
from reports.compare.csv import render_comparison
from reports.compare.matching import matches
from reports.compare.page import compare_page
from reports.ledger.ledger import LedgerError, damage_refused
from reports.page.page import Page
from reports.published_figures.figures import published_files
from reports.render.console import PatientConsole, public_path, refused, render_console
from reports.render.files import write_whole
from reports.render.html import render_html
from reports.render.markdown import render_markdown

OK, USAGE_ERROR, NOTHING_IN_COMMON = 0, 2, 3


def add_compare(commands: Any) -> None:
    """Adds the sub-command to those of `argparse`."""
    compared = commands.add_parser(
        "compare",
        help="set two or more studies side by side: ratio with interval for each cell, HTML, Markdown, CSV",
        description="Matches cells by name and says for each measure how the other sides stand to the first, "
        "which is the base. A side is a directory with a ledger.jsonl, a file with the columns of cells.csv, "
        f"or the name of a published study: {', '.join(published_files())}. Writes compare.html, compare.md "
        "and compare.csv, and prints the tables.",
        epilog="Example: python -m reports compare step7-a100 results/step7-20261121T110000Z. "
        "Exit code: 0 when compared, 2 when a side cannot be used or nothing can be written, 3 when the "
        "sides have nothing in common.",
    )
    compared.add_argument("sides", metavar="SIDE", nargs="+", help="the base, then what is compared with it")
    compared.add_argument(
        "--out",
        metavar="DIR",
        type=Path,
        help="where to write (default: results/compare-A-vs-B, A and B being the sides' names)",
    )
    compared.add_argument("--quiet", action="store_true", help="write the files and print nothing")
    compared.set_defaults(run=compare)


def compare(arguments: argparse.Namespace) -> int:
    """Compares the sides that were named; 0, 2 with a sentence on standard error, or 3."""
    try:
        sides = load_sides(arguments.sides)
        folder = arguments.out or default_folder(sides)
        with damage_refused(" or ".join(side.place for side in sides)):
            page = compare_page(sides, lambda place: public_path(Path(place), Path.cwd()))
            _write(folder, sides, page)
    except (SideError, LedgerError) as error:
        return refused(str(error))
    except OSError as error:
        return refused(
            f"{error.filename or folder}: cannot be written ({error.strerror}): mend that, or give --out."
        )
    if not arguments.quiet:
        console = PatientConsole(highlight=False)
        render_console(page, console)
        console.print(f"\nThe whole comparison: {folder / 'compare.html'}", markup=False, soft_wrap=True)
    base, *others = sides
    return OK if any(any(matches(base, other)) for other in others) else NOTHING_IN_COMMON


def _write(folder: Path, sides: Sequence[Side], page: Page) -> None:
    """Renders everything, then writes it; OSError where the folder cannot be written."""
    files = {
        "compare.html": render_html(page),
        "compare.md": render_markdown(page),
        "compare.csv": render_comparison(sides),
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        write_whole(folder / name, text)


def default_folder(sides: Sequence[Side]) -> Path:
    """results/compare-A-vs-B with the sides' names, as file names take them."""
    names = (re.sub(r"[^\w.-]+", "-", side.name).strip("-") for side in sides)
    return Path("results") / f"compare-{'-vs-'.join(names)}"
