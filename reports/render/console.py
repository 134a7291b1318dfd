"""The first screen and the brief sections on a terminal, sized to it; long tables are only named."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from rich import box
from rich.console import Console, JustifyMethod
from rich.table import Table as RichTable
from rich.text import Text

from reports.format import one_line, plain, plural
from reports.page.answer import AnswerRow
from reports.page.page import Page, Section
from reports.page.table import Table, TableCell
from reports.render.github import commands_stopped

OK, USAGE_ERROR, NOT_TOLD = 0, 2, 3
"""How a command that judges nothing ends."""
WIDE = 7
"""Columns; tables with more get narrower gaps."""


def render_console(page: Page, console: Console, tables: bool = True) -> None:
    """Prints the first screen, then the short tables of the brief sections and the names of the long ones."""
    console.print(Text(plain(page.title), style="bold"))
    console.print(Text(plain(page.facts), style="dim"))
    if page.banner:
        console.print(Text(plain(" ".join(page.banner)), style="dim"))
    for notice in page.notices:
        console.print(Text(f"Note: {plain(notice)}", style="yellow"))
    if page.answers:
        console.print(_rows(page.answers))
    for sentence in page.findings:
        console.print(Text(f"• {plain(sentence)}"))
    if tables:
        _print_sections([section for section in page.sections if section.brief], console)


def _rows(answers: Sequence[AnswerRow]) -> RichTable:
    """A row for each answer, behind what it answers."""
    grid = RichTable.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for answer in answers:
        said = Text(plain(answer.said), style="bold")
        if answer.detail:
            said.append(f" {plain(answer.detail)}", style="not bold")
        grid.add_row(Text(plain(answer.question), style="cyan"), said)
        if answer.command:
            grid.add_row("", Text(plain(answer.command), style="green"))
    return grid


def _print_sections(sections: Sequence[Section], console: Console) -> None:
    for section in sections:
        for sentence in section.sentences:
            console.print(Text(f"\n{plain(sentence)}"))
        for table in section.tables:
            if not table.folded:
                _print_table(table, console)
    folded = [table for section in sections for table in section.tables if table.folded]
    if long := [f"{plain(table.title)} ({plural(len(table.rows), 'row')})" for table in folded]:
        console.print()
        console.print(Text(f"Only in the files: {', '.join(long)}.", style="dim"))


def _print_table(table: Table, console: Console) -> None:
    console.print()
    console.print(Text(plain(table.title), style="bold"))
    if table.caption:
        console.print(Text(plain(table.caption), style="dim"))
    console.print(_rich_table(table))
    for note in table.named_notes:
        console.print(Text(plain(note), style="dim"))


def _rich_table(table: Table) -> RichTable:
    wide = len(table.heads) > WIDE
    rich_table = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 0 if wide else 1))
    for index, head in enumerate(table.heads):
        justify: JustifyMethod = "right" if index in table.numeric else "left"
        # Folded rather than cut: half a number is worse than an ugly table.
        rich_table.add_column(Text(plain(head)), justify=justify, no_wrap=index == 0, overflow="fold")
    for row in table.rows:
        rich_table.add_row(*map(_cell, row))
    return rich_table


def _cell(cell: TableCell) -> Text:
    return Text(plain(cell.text) + cell.reference, style="bold" if cell.best else "")


def print_page(page: Page, ending: str = "", tables: bool = True) -> None:
    """Prints it on standard output, and after it where more is."""
    console = Console(highlight=False)
    with commands_stopped(os.environ):
        render_console(page, console, tables)
        if ending:
            console.print("\n" * tables + plain(ending), markup=False, soft_wrap=True)


def public_path(directory: Path, here: Path) -> str:
    """The directory as seen from here, or its name alone where it is not below: reports are passed around."""
    whole = Path(os.path.abspath(here / directory))
    below = whole != here and whole.is_relative_to(here)
    return str(whole.relative_to(here)) if below else f"DIR/{whole.name}"


def refused(why: str, code: int = USAGE_ERROR) -> int:
    """Says on standard error why a command does not do it; the exit code, 2 where the input is to blame."""
    print(f"inferswarm: {one_line(why)}", file=sys.stderr)
    return code
