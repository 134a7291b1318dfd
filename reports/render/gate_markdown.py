"""gates.md: verdicts for a pull request, those first that somebody must look at."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from reports.format import plain, plural
from reports.gates.verdict import (
    FAIL,
    FAILED,
    INCONCLUSIVE,
    NOT_TOLD,
    PASS,
    PASSED,
    SYMBOLS,
    Verdict,
    exit_code,
    headline,
    not_passed,
)
from reports.render.markdown import MOST_CHARACTERS, escaped, joined, table_lines
from reports.topics.gates import JUDGED, gate_table

_SYMBOL = {PASSED: SYMBOLS[PASS], FAILED: SYMBOLS[FAIL], NOT_TOLD: SYMBOLS[INCONCLUSIVE]}
MOST_ROWS = 1_000
"""Of each table: more would not fit, however short they are."""


def gates_markdown(verdicts: Sequence[Verdict], title: str = "", command: str = "") -> str:
    """The file, of as many verdicts as a comment can hold; `command` is the one that makes it again."""
    most = min(len(verdicts), MOST_ROWS)
    while len(text := joined(_lines(verdicts, title, command, most))) > MOST_CHARACTERS and most:
        most //= 2
    return text


def _lines(verdicts: Sequence[Verdict], title: str, command: str, most: int) -> Iterator[str]:
    passed = [verdict for verdict in verdicts if verdict.outcome == PASS]
    yield from (f"## Gates{': ' if title else ''}{escaped(title)}", "")
    yield f"{_SYMBOL[exit_code(verdicts)]} **{escaped(headline(verdicts))}.**"
    if others := not_passed(verdicts):
        yield from ("", *_table(others, most))
    if passed:
        yield from ("", f"<details><summary>{SYMBOLS[PASS]} {len(passed):,} passed</summary>", "")
        yield from (*_table(passed, most), "", "</details>")
    yield from ("", escaped(JUDGED))
    if command:
        yield from ("", "To judge again:", "", f"    {plain(command)}")


def _table(verdicts: Sequence[Verdict], most: int) -> Iterator[str]:
    """The first of some verdicts, and how many are left out."""
    left_out = len(verdicts) - most
    if most:
        yield from table_lines(replace(gate_table("", verdicts[:most]), shared=()))
    if left_out > 0:
        yield from (
            "",
            f"{plural(left_out, 'more gate')} did not fit here: junit.xml and gates.json have all.",
        )
