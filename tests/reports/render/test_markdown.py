"""gates.md: the outcome first, what did not pass open, what passed folded, and never too long."""

from dataclasses import replace

import pytest

from reports.gates.verdict import Verdict
from reports.render.markdown import MOST_CHARACTERS, gates_markdown
from tests.reports.gates.outcomes import ALL, EVIL, FAILED, MADE, UNSURE, WARNED, evil

COMMAND = "inferswarm gate results/a"


def test_it_says_the_outcome_then_what_did_not_pass_then_the_rest() -> None:
    lines = gates_markdown(ALL, "Step 7", COMMAND).splitlines()
    assert lines[0] == "## Gates: Step 7"
    assert lines[2] == "✗ **1 of 4 gates failed, 2 are inconclusive; 1 warning.**"
    rows = [line for line in lines if line.startswith(("| ✗", "| ?", "| ✓"))]
    assert [row.split("|")[1].strip() for row in rows] == [
        *("✗ fail", "✗ warning", r"? inconclusive \[a\]", r"? inconclusive \[b,c\]", "✓ pass")
    ]
    assert lines[-1] == f"    {COMMAND}"
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
    outside_code = "\n".join(line for line in text.splitlines() if not line.startswith("    "))
    assert "<script" not in outside_code
    assert not {"\x1b", "\x00"} & set(text)
    assert r"&lt;script&gt;alert(1)&lt;/script&gt;\|\`x\` ::error::" in text
    tables = [line for line in text.splitlines() if line.startswith("|")]
    assert {line.replace(r"\|", "").count("|") for line in tables} == {6}
    assert "@me" not in outside_code
