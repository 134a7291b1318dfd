"""The brief sections of the page on a terminal, sized to it; what is for looking things up is only named."""

import os
import sys
from pathlib import Path

from rich import box
from rich.console import Console, JustifyMethod
from rich.table import Table as RichTable
from rich.text import Text

from reports.format import one_line, plain, plural
from reports.page.page import Page
from reports.page.table import Table

OK, USAGE_ERROR, NOT_TOLD = 0, 2, 3
"""How a command that judges nothing ends."""
WIDE = 7
"""Columns; tables with more get narrower gaps."""


def render_console(page: Page, console: Console) -> None:
    """Prints what was found, the short tables of the brief sections, and the names of the long ones."""
    console.print(Text(plain(page.title), style="bold"))
    console.print(Text(plain(page.facts), style="dim"))
    for notice in page.notices:
        console.print(Text(f"Note: {plain(notice)}", style="yellow"))
    for sentence in page.findings:
        console.print(Text(f"• {plain(sentence)}"))
    every = [table for section in page.sections if section.brief for table in section.tables]
    tables = [table for table in every if not table.folded]
    shared = dict.fromkeys(text for table in tables for text in table.shared)
    if unsaid := [text for text in shared if not any(text in finding for finding in page.findings)]:
        console.print()
        console.print(Text(plain(" ".join(unsaid)), style="dim"))
    for table in tables:
        _print_table(table, console)
    folded = [table for table in every if table.folded]
    if long := [f"{plain(table.title)} ({plural(len(table.rows), 'row')})" for table in folded]:
        console.print()
        console.print(Text(f"Only in the files: {', '.join(long)}.", style="dim"))


def _print_table(table: Table, console: Console) -> None:
    console.print()
    console.print(Text(plain(table.title), style="bold"))
    if table.caption:
        console.print(Text(plain(table.caption), style="dim"))
    console.print(_rich_table(table))
    for mark, text in table.numbered_notes:
        console.print(Text(f"{mark.superscript} {plain(text)}", style="dim"))


def _rich_table(table: Table) -> RichTable:
    wide = len(table.heads) > WIDE
    rich_table = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 0 if wide else 1))
    for index, head in enumerate(table.heads):
        justify: JustifyMethod = "right" if index in table.numeric else "left"
        # Folded rather than cut: half a number is worse than an ugly table.
        rich_table.add_column(Text(plain(head)), justify=justify, no_wrap=index == 0, overflow="fold")
    for row in table.rows:
        rich_table.add_row(*(Text(plain(cell.text) + cell.superscript) for cell in row))
    return rich_table


def print_page(page: Page, ending: str = "") -> None:
    """Prints it on standard output, and after it where more is."""
    console = PatientConsole(highlight=False)
    render_console(page, console)
    if ending:
        console.print(f"\n{ending}", markup=False, soft_wrap=True)


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


def refused(why: str, code: int = USAGE_ERROR) -> int:
    """Says on standard error why a command does not do it; the exit code, 2 where the input is to blame."""
    print(f"reports: {one_line(why)}", file=sys.stderr)
    return code
