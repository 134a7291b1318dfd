"""gates.md: the outcome first, what did not pass open, what passed folded, and never too long."""

from dataclasses import replace
from html.parser import HTMLParser

import pytest
from markdown_it.token import Token

from reports.format import plain, plain_lines
from reports.gates.verdict import Verdict
from reports.page.answer import AnswerRow
from reports.page.page import Page, Section
from reports.page.table import Table, TableCell
from reports.render.html import render_html
from reports.render.markdown import MOST_CHARACTERS, gates_markdown, render_markdown
from tests.reports.gates.outcomes import ALL, EVIL, FAILED, MADE, UNSURE, WARNED, evil
from tests.reports.rendered import READER, fences, foreign_markup, prose

COMMAND = "inferswarm gate results/a"


def test_it_says_the_outcome_then_what_did_not_pass_then_the_rest() -> None:
    lines = gates_markdown(ALL, "Step 7", COMMAND).splitlines()
    assert lines[0] == "## Gates: Step 7"
    assert lines[2] == "✗ **1 of 4 gates failed, 2 are inconclusive; 1 warning.**"
    rows = [line for line in lines if line.startswith(("| ✗", "| ?", "| ✓"))]
    assert [row.split("|")[1].strip() for row in rows] == [
        *("✗ fail", "✗ warning", r"? inconclusive \[a\]", r"? inconclusive \[b,c\]", "✓ pass")
    ]
    assert lines[-3:] == ["```", COMMAND, "```"]
    assert "<details><summary>✓ 1 passed</summary>" in lines
    assert "4 more repeats would decide, if like these." in "\n".join(lines)
    assert "Down to 0.905× is tolerated." in "\n".join(lines)


@pytest.mark.parametrize(
    ("verdicts", "said"),
    [
        ([MADE], "✓ **The gate passed.**"),
        ([MADE, MADE], "✓ **All 2 gates passed.**"),
        ([MADE, WARNED], "✓ **The gate passed; 1 warning.**"),
        ([UNSURE, MADE], "? **1 of 2 gates is inconclusive.**"),
        ([UNSURE, UNSURE], "? **2 of 2 gates are inconclusive.**"),
        ([WARNED], "? **No gate decides; 1 warning.**"),
        ([], "? **No gate decides.**"),
    ],
)
def test_the_headline(verdicts: list[Verdict], said: str) -> None:
    assert gates_markdown(verdicts, "Step 7", COMMAND).splitlines()[2] == said


@pytest.mark.parametrize("count", [1_000, 30_000])
def test_a_comment_can_hold_it_however_many_there_are(count: int) -> None:
    text = gates_markdown(
        [replace(FAILED, cell=f"c{at}") for at in range(count)] + [MADE] * count, "Step 7", COMMAND
    )
    assert len(text) <= MOST_CHARACTERS
    assert f"**{count:,} of {2 * count:,} gates failed.**" in text
    assert "more gates did not fit here: junit.xml and gates.json have all." in text


def test_a_text_as_long_as_a_comment_is_left_out() -> None:
    text = gates_markdown([replace(FAILED, cell="c" * MOST_CHARACTERS)], "Step 7", COMMAND)
    assert len(text) < 1_000
    assert "1 more gate did not fit here" in text


def test_text_from_outside_shows_as_text() -> None:
    text = gates_markdown([evil(verdict) for verdict in ALL], EVIL, EVIL)
    outside_code = prose(text)
    assert "<script" not in outside_code
    assert not {"\x1b", "\x00"} & set(text)
    assert r"&lt;script&gt;alert(1)&lt;/script&gt;\|\`x\` ::error::" in text
    tables = [line for line in text.splitlines() if line.startswith("|")]
    assert {line.replace(r"\|", "").count("|") for line in tables} == {6}
    assert "@me" not in outside_code


NASTY = (
    "</code><script>alert(1)</script>", "`", "``", "a ``` b", "```\n# h\n```", "~~~", "a|b", "a\nb",
    "[x](javascript:alert(1))", "![](http://evil.example/x)", "<img src=x onerror=alert(1)>", "<!-- x", "]]>",
    "</details>", "- x", "+ x", "1. x", "2) x", "---", "# h", "> q", "*b* _i_ ~~s~~", "$x$", "&lt;", "\\",
    "[r]: http://evil.example", "http://x/`y`", "\x1b]0;t\x07", "\u202e", "\ud800", "\t# h", "\\`", "a\n\nb",
)  # fmt: skip


def everywhere(text: str) -> Page:
    """A page in which all that can come from outside is one text."""
    cells = (TableCell(text), TableCell(text, best=True))
    table = Table(text, text, (text, text), (cells, cells), (text,))
    section = Section("Tables", (table, replace(table, folded=True)), sentences=(text,))
    answer = AnswerRow(text, text, text, text)
    return Page(text, text, (text,), (section,), (text, text), (text,), (answer,), (text,))


class Tags(HTMLParser):
    """The elements of a page, with the code that stands in some."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.seen: list[str] = []
        self.code: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)

    def handle_data(self, data: str) -> None:
        if self.seen[-1:] == ["code"]:
            self.code.append(data)

    def handle_endtag(self, tag: str) -> None:
        self.seen.append(f"/{tag}")


def text_of(token: Token) -> str:
    """An inline token as it is read."""
    return "".join(one.content or " " * (one.type == "softbreak") for one in token.children or ())


@pytest.mark.parametrize("text", NASTY)
def test_no_text_is_markup_wherever_it_stands(text: str) -> None:
    shown, plainer = (render_markdown(everywhere(one)) for one in (text, "x"))
    assert foreign_markup(shown) == set()
    assert [token.type for token in READER.parse(shown)] == [token.type for token in READER.parse(plainer)]
    assert fences(shown) == [f"{plain_lines(text)}\n{plain_lines(text)}\n"]
    titles = [text_of(token) for token in READER.parse(shown) if token.type == "inline"][:2]
    assert [title.replace("\u200b", "") for title in titles] == [plain(text).strip()] * 2
    assert fences(gates_markdown([evil(FAILED)], text, text)) == [f"{plain_lines(text)}\n"]


@pytest.mark.parametrize("text", sorted({*NASTY} - {"---"}))  # which is shown as an option is
def test_no_text_is_an_element_of_the_page(text: str) -> None:
    shown, plainer = (Tags(render_html(everywhere(one))) for one in (text, "x"))
    assert shown.seen == plainer.seen
    assert len([code for code in shown.code if code == plain_lines(text)]) >= 2
