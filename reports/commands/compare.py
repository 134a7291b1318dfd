"""inferswarm compare: one or more candidates against a base, cell by cell."""

import argparse
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from reports.cells_csv.rows import published_files
from reports.cells_csv.sides import Side, load_sides
from reports.compare.csv import render_comparison
from reports.compare.mapping import OPTION, mapped, rules_of
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
        help="compare studies with a base: ratio with 95 %% CI for each cell; HTML, Markdown, CSV",
        description="Matches cells by name and says for each measure how every candidate compares with the "
        "base. Each of them is a directory with a ledger.jsonl, a file with the columns of cells.csv, or the "
        f"name of a published study: {', '.join(published_files())}. Writes compare.html, compare.md and "
        "compare.csv, and prints the answer and the tables.",
        epilog="Example: inferswarm compare step7-a100 results/step7-20261121T110000Z. "
        "Exit code: 0 when compared, 2 when a study cannot be used or nothing can be written, 3 when the "
        "candidates have nothing in common with the base.",
    )
    compared.add_argument(
        "sides", metavar="STUDY", nargs="+", help="the base, then one or more candidates to compare with it"
    )
    compared.add_argument(
        OPTION,
        metavar="CANDIDATE=BASE[,…]",
        action="append",
        default=[],
        help="compare endpoints of other names: the candidate's endpoint, or the start of its name, and what "
        "the base has in its place; staging=prod compares staging-http with prod-http (repeatable)",
    )
    compared.add_argument(
        "--out",
        metavar="DIR",
        type=Path,
        help="where to write (default: results/compare-BASE-vs-CANDIDATE, by the names of the studies)",
    )
    compared.add_argument("--quiet", action="store_true", help="write the files and print nothing")
    compared.set_defaults(run=compare)


def compare(arguments: argparse.Namespace) -> int:
    """Compares the studies that were named; 0 or 3, or LedgerError or WriteError."""
    rules = rules_of(arguments.map)
    made = mapped(load_sides(arguments.sides), rules)
    sides = made.sides
    folder = arguments.out or default_folder(sides)
    page = compare_page(made, lambda place: public_path(Path(place), Path.cwd()))
    html, markdown, table = render_html(page), render_markdown(page), render_comparison(sides)
    with writing(folder, "fix that, or give --out"):
        write_files(folder, {"compare.html": html, "compare.md": markdown, "compare.csv": table})
    if not arguments.quiet:
        print_page(page, f"The whole comparison: {folder / 'compare.html'}")
    base, *others = sides
    return OK if any(any(matches(base, other)) for other in others) else NOT_TOLD


def default_folder(sides: Sequence[Side]) -> Path:
    """results/compare-BASE-vs-CANDIDATE with the sides' names, as file names take them."""
    names = (re.sub(r"[^\w.-]+", "-", side.name).strip("-") for side in sides)
    return Path("results") / f"compare-{'-vs-'.join(names)}"
