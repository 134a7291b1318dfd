"""The page as Markdown, fit for a pull request: what is for looking things up opens on demand."""

import re
from collections.abc import Iterator

from reports.format import plain, plural
from reports.page.page import Page, Section
from reports.page.table import Table, TableCell

_SPECIAL = re.compile(r"([\\`*_\[\]|#~$!])")
# GitHub would notify the owner of such a name, or link such a number to an issue, escaped or not.
_PING = re.compile(r"([@#])(?=\w)")
_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


def escaped(text: object) -> str:
    """Text that Markdown shows as it is: neither markup, HTML, a mention, nor a cell's end."""
    shown = _SPECIAL.sub(r"\\\1", plain(text).translate(_ENTITIES))
    return _PING.sub(r"\1&#8203;", shown)


MOST_CHARACTERS = 60_000
"""GitHub takes 65,536 in a comment, with what a person writes above it."""


def render_markdown(page: Page) -> str:
    """The page; without its long tables, which are then named, where a comment could not hold them."""
    whole = joined(_lines(page, long_tables=True))
    return whole if len(whole) <= MOST_CHARACTERS else joined(_lines(page, long_tables=False))


def joined(lines: Iterator[str]) -> str:
    """Lines as a file has them."""
    return "\n".join(lines) + "\n"


def _lines(page: Page, long_tables: bool) -> Iterator[str]:
    yield from (f"# {escaped(page.title)}", "", escaped(page.facts), "")
    for notice in page.notices:
        yield from (f"> **Note:** {escaped(notice)}", "")
    yield from ("## What was found", "")
    yield from (f"- {escaped(sentence)}" for sentence in page.findings)
    for section in page.sections:
        yield from _section(section, long_tables)
    yield from ("", "## How to reproduce", "")
    yield from (f"    {plain(command)}" for command in page.commands)


def _section(section: Section, long_tables: bool) -> Iterator[str]:
    if not section.tables:
        return
    yield from ("", f"## {section.heading}")
    for table in section.tables:
        if not table.folded:
            yield from ("", f"### {escaped(table.title)}", "", *table_lines(table))
        elif long_tables:
            yield from ("", *_on_demand(table))
        else:
            yield from ("", f"{escaped(table.title)}: {plural(len(table.rows), 'row')}, in report.html.")


def _on_demand(table: Table) -> Iterator[str]:
    """GitHub and GitLab show the summary, and the table once that is clicked."""
    rows = plural(len(table.rows), "row")
    yield from (f"<details><summary>{escaped(table.title)} ({rows})</summary>", "", *table_lines(table), "")
    yield "</details>"


def table_lines(table: Table) -> Iterator[str]:
    """The table with its caption above and its footnotes below."""
    if table.whole_caption:
        yield from (escaped(table.whole_caption), "")
    yield _row(escaped(head) for head in table.heads)
    yield _row("--:" if index in table.numeric else "---" for index in range(len(table.heads)))
    yield from (_row(_cell(cell) for cell in row) for row in table.rows)
    if table.notes:
        yield ""
    yield from (f"- {mark.superscript} {escaped(text)}" for mark, text in table.numbered_notes)


def _row(cells: Iterator[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(cell: TableCell) -> str:
    return escaped(cell.text) + cell.superscript
