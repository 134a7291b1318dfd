"""docs/glossary.md says what the code says: the names it gives are there, and so is every caveat."""

import importlib
import re
from pathlib import Path

import pytest

from reports.caveat import KINDS, caveat
from tests.reports.limit_runs import LIMITS

ROOT = Path(__file__).parent.parent
WORDS, CAVEATS = (ROOT / "docs/glossary.md").read_text().split("## Caveats\n")
NAMES = re.findall(r"`((?:users|swarm|reports)\.[\w.]+)`", WORDS)
REPLACED = """
arena crew ears greeting hands leash lending muster pulse seating shelf tallied veil whereabouts
"""
"""Inventions that gave way to words of the field; no module, class or function is called so again."""


def rows(text: str) -> list[list[str]]:
    """The cells of a table's rows, without its head."""
    lines = text.rpartition("|---|\n")[2].splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_every_word_stands_in_the_code() -> None:
    assert len(rows(WORDS.rstrip())) > 20
    assert all("`" in where for *_, where in rows(WORDS.rstrip()))


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_where_the_glossary_says(name: str) -> None:
    parts = name.split(".")
    at = next((place for place, part in enumerate(parts) if part[0].isupper()), len(parts) - 1)
    found = importlib.import_module(".".join(parts[:at]))
    for part in parts[at:]:
        found = getattr(found, part)


def test_every_caveat_is_there_with_what_it_does_and_what_to_do() -> None:
    known = [caveat(code, "") for code in sorted(KINDS)]
    said = [[f"`{one.code}`", "yes" if one.tainted else "no", one.advice] for one in known]
    assert rows(CAVEATS) == said


def test_docs_report_has_every_bottleneck() -> None:
    page = (ROOT / "docs/report.md").read_text(encoding="utf-8")
    table = page.partition("| bottleneck | what it means |\n")[2].partition("\n\n")[0]
    heads = " ".join(row[0] for row in rows(table))
    assert sorted(re.findall(r"`([\w-]+)`", heads)) == sorted(LIMITS)


def test_words_that_were_replaced_stay_so() -> None:
    defined = re.compile(r"^\s*(?:class|def) (\w+)", re.MULTILINE)
    for room in ("swarm", "users", "server", "reports", "locustfiles"):
        for path in (ROOT / room).rglob("*.py"):
            for name in (path.stem, *defined.findall(path.read_text())):
                words = re.findall(r"[a-z]+", re.sub(r"([A-Z])", r"_\1", name).lower())
                assert not set(words) & set(REPLACED.split()), f"{name} in {path}"
