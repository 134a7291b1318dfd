"""python -m reports compare: two or more sides beside each other, cell by cell."""

import argparse
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from reports.cells_csv.rows import published_files
from reports.cells_csv.sides import Side, load_sides
from reports.compare.csv import render_comparison
from reports.compare.matching import matches
from reports.compare.page import compare_page
from reports.render.console import NOT_TOLD, OK, print_page, public_path
from reports.render.files import write_files, writing
from reports.render.html import render_html
from reports.render.markdown import render_markdown


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
    """Compares the sides that were named; 0 or 3, or LedgerError or WriteError."""
    sides = load_sides(arguments.sides)
    folder = arguments.out or default_folder(sides)
    page = compare_page(sides, lambda place: public_path(Path(place), Path.cwd()))
    html, markdown, table = render_html(page), render_markdown(page), render_comparison(sides)
    with writing(folder, "mend that, or give --out"):
        write_files(folder, {"compare.html": html, "compare.md": markdown, "compare.csv": table})
    if not arguments.quiet:
        print_page(page, f"The whole comparison: {folder / 'compare.html'}")
    base, *others = sides
    return OK if any(any(matches(base, other)) for other in others) else NOT_TOLD


def default_folder(sides: Sequence[Side]) -> Path:
    """results/compare-A-vs-B with the sides' names, as file names take them."""
    names = (re.sub(r"[^\w.-]+", "-", side.name).strip("-") for side in sides)
    return Path("results") / f"compare-{'-vs-'.join(names)}"
