"""A stranger's ledger: what is in it stays text in every file and on the terminal. Pages: test_browser.py."""

import csv
import re
import subprocess
import sys
from pathlib import Path
from xml.etree.ElementTree import fromstring

import pytest

from reports.cells_csv.columns import csv_text
from tests.reports.builder import Book
from tests.reports.example import MS
from tests.reports.rendered import foreign_markup, prose

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
FORMULAS = ("=cmd|'/C calc'!A0", "+1+1", "-2+3", "@SUM(1)", "\t=1", "\r=1")
TERMINAL = "\x1b]0;title\x07\x1b[2J\x9b31m\x08\x7f\u202e\u2066"
MARKDOWN = "[click](javascript:alert(1)) ![x](http://evil.example/x) <script>x</script> @owner #1 `code` |"
THRESHOLDS = '[[threshold]]\nname = "=1+1\\u001b[2J]]>"\nrequire = "failure_ratio <= 0"\n'


def hostile(text: str) -> Book:
    """A ledger in which everything that is text is this one."""
    book = Book(title=text, study=text, fingerprint={text: text}, options={"command": text})
    book.endpoint("onnx-http", text, weights=text, model=text)
    axes = {"variant": text, "link": text, "channels": text}
    tag = book.add("onnx-http", 1, 1, {text: [MS] * 30}, axes=axes, failures={text: 1}, note=text)
    book.caveat(tag, text, text)
    book.footer("failed", text)
    return book


def shown(folder: Path, *arguments: str) -> str:
    """What the terminal gets."""
    command = [sys.executable, "-m", "reports", *arguments, str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr
    return done.stdout + done.stderr


@pytest.mark.parametrize("formula", FORMULAS)
def test_no_field_of_a_csv_is_a_formula(tmp_path: Path, formula: str) -> None:
    folder = hostile(formula).write(tmp_path / "study")
    shown(folder, "show")
    for name in ("cells.csv", "timeline.csv"):
        with (folder / name).open(encoding="utf-8", newline="") as lines:
            fields = [field for row in csv.reader(lines) for field in row]
        assert not [field for field in fields if re.match(r"[=+@\t\r]|-[^\d.]", field)], name
    with (folder / "cells.csv").open(encoding="utf-8", newline="") as lines:
        (row,) = csv.DictReader(lines)
    assert row["study"] == f"'{formula.replace(chr(13), ' ')}"
    assert float(row["latency_p50_ms"]) == pytest.approx(1, rel=0.01)


def test_a_negative_number_stays_one() -> None:
    assert csv_text(["a", "b", "c"], [[-1.5, "-1.5", None]]) == "a,b,c\n-1.5,'-1.5,\n"


def test_nothing_moves_the_terminals_cursor_or_turns_its_text(tmp_path: Path) -> None:
    folder = hostile(f"before {TERMINAL} after").write(tmp_path / "study")
    (folder / "thresholds.toml").write_text(THRESHOLDS, encoding="utf-8")
    said = shown(folder, "show") + shown(folder, "gate")
    assert "before" in said
    assert not [char for char in said if not char.isprintable() and char != "\n"]


def test_a_study_that_cannot_be_read_says_so_without_its_control_characters(tmp_path: Path) -> None:
    folder = tmp_path / "study"
    folder.mkdir()
    (folder / "ledger.jsonl").write_text('{"kind": "\\u001b[2J", "version": "\\u001b]0;x\\u0007"}\n')
    said = shown(folder, "show")
    assert said.startswith("inferswarm: ")
    assert not [char for char in said if not char.isprintable() and char != "\n"]


def test_markdown_and_junit_hold_text_alone(tmp_path: Path) -> None:
    folder = hostile(MARKDOWN).write(tmp_path / "study")
    (folder / "thresholds.toml").write_text(THRESHOLDS, encoding="utf-8")
    shown(folder, "show")
    shown(folder, "gate")
    for name in ("summary.md", "gates.md"):
        whole = (folder / name).read_text(encoding="utf-8")
        assert foreign_markup(whole) == set()
        text = prose(whole)
        assert "<script" not in text
        assert "](" not in re.sub(r"\\[\[\]]", "", text)
        assert not re.search(r"(?<![\\;])[@#](?=owner|1 )", text)
    suite = fromstring((folder / "junit.xml").read_text(encoding="utf-8"))
    names = {case.get("name") for case in suite.iter("testcase")}
    assert names == {r"=1+1\x1b[2J]]>"}
