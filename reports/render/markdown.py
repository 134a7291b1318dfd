"""The page and gates.md as Markdown, fit for a pull request: what is for looking up opens on demand."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from reports.format import plain, plain_lines, plural
from reports.gates.verdict import PASS, SYMBOLS, Verdict, headline, not_passed, outcome_of
from reports.page.answer import AnswerRow
from reports.page.page import Page, Section
from reports.page.table import Table, TableCell
from reports.topics.gates import JUDGED, gate_table

_SPECIAL = re.compile(r"([\\`*_\[\]|#~$!])")
# At its beginning: a list, or a rule.
_BLOCK = re.compile(r"^(\s*\d*)([-+.)])(?=[\s-]|$)")
# GitHub would notify the owner of such a name, or link such a number to an issue, escaped or not.
_PING = re.compile(r"([@#])(?=\w)")
_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


def escaped(text: object) -> str:
    """Text that Markdown shows as it is: neither markup, HTML, a mention, nor a cell's end."""
    shown = _SPECIAL.sub(r"\\\1", plain(text).translate(_ENTITIES))
    shown = _BLOCK.sub(r"\1\\\2", shown)
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
    yield from (escaped(" ".join(page.banner)), "") if page.banner else ()
    for notice in page.notices:
        yield from (f"> **Note:** {escaped(notice)}", "")
    if page.answers:
        yield from ("| | |", "| --- | --- |")
    yield from (_answer(answer) for answer in page.answers)
    yield from (f"- {escaped(sentence)}" for sentence in page.findings)
    for section in page.sections:
        yield from _section(section, long_tables)
    yield from ("", "## How to reproduce", "", *_code(page.commands))


def _code(commands: Sequence[str]) -> Iterator[str]:
    """Commands as they are typed, in a fence that is longer than any run of backticks in them."""
    text = plain_lines("\n".join(commands))
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    yield from (fence, text, fence)


def _answer(answer: AnswerRow) -> str:
    detail = f" {escaped(answer.detail)}" if answer.detail else ""
    # A backtick in it would end a code span.
    command = f" <code>{escaped(answer.command)}</code>" if answer.command else ""
    return f"| {escaped(answer.question)} | **{escaped(answer.said)}**{detail}{command} |"


def _section(section: Section, long_tables: bool) -> Iterator[str]:
    if not section.tables and not section.sentences:
        return
    yield from ("", f"## {section.heading}")
    for sentence in section.sentences:
        yield from ("", escaped(sentence))
    for table in section.tables:
        title, rows = escaped(table.title), plural(len(table.rows), "row")
        if not table.folded:
            yield from ("", f"### {title}", "", *table_lines(table))
        elif long_tables:
            # GitHub and GitLab show the summary, and the table once that is clicked.
            yield from ("", f"<details><summary>{title} ({rows})</summary>", "", *table_lines(table))
            yield from ("", "</details>")
        else:
            yield from ("", f"{title}: {rows}, in report.html.")


def table_lines(table: Table) -> Iterator[str]:
    """The table with its caption above and its footnotes below."""
    if table.caption:
        yield from (escaped(table.caption), "")
    yield _row(escaped(head) for head in table.heads)
    yield _row("--:" if index in table.numeric else "---" for index in range(len(table.heads)))
    yield from (_row(map(_cell, row)) for row in table.rows)
    if table.notes:
        yield ""
    yield from (f"- {escaped(note)}" for note in table.named_notes)


def _cell(cell: TableCell) -> str:
    text = escaped(cell.text) + escaped(cell.reference)
    return f"**{text}**" if cell.best else text


def _row(cells: Iterator[str]) -> str:
    return f"| {' | '.join(cells)} |"


MOST_ROWS = 1_000
"""Of each table: more would not fit, however short they are."""


def gates_markdown(verdicts: Sequence[Verdict], title: str, command: str) -> str:
    """The file, of as many verdicts as a comment can hold; `command` is the one that makes it again."""
    most = min(len(verdicts), MOST_ROWS)
    while len(text := joined(_verdict_lines(verdicts, title, command, most))) > MOST_CHARACTERS and most:
        most //= 2
    return text


def _verdict_lines(verdicts: Sequence[Verdict], title: str, command: str, most: int) -> Iterator[str]:
    passed = [verdict for verdict in verdicts if verdict.outcome == PASS]
    yield from (f"## Gates: {escaped(title)}", "")
    yield f"{SYMBOLS[outcome_of(verdicts)]} **{escaped(headline(verdicts))}.**"
    if others := not_passed(verdicts):
        yield from ("", *_table(others, most))
    if passed:
        yield from ("", f"<details><summary>{SYMBOLS[PASS]} {len(passed):,} passed</summary>", "")
        yield from (*_table(passed, most), "", "</details>")
    yield from ("", escaped(JUDGED), "", "To judge again:", "", *_code([command]))


def _table(verdicts: Sequence[Verdict], most: int) -> Iterator[str]:
    """The first of some verdicts, and how many are left out."""
    left_out = len(verdicts) - most
    if most:
        yield from table_lines(replace(gate_table("", verdicts[:most]), caption=""))
    if left_out > 0:
        yield ""
        yield f"{plural(left_out, 'more gate')} did not fit here: junit.xml and gates.json have all."
