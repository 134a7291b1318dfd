"""The page of a comparison: the answers, what differs, tables, and cells without a counterpart."""

import json
from pathlib import Path

import pytest

from reports.cells_csv.columns import render_csv
from reports.cells_csv.sides import load_side
from reports.page.page import Page
from reports.stats.paired import NOT_SIGNIFICANT
from reports.study.study import load_study
from tests.reports.builder import Book
from tests.reports.compare_book import page_of, serial


def answers_of(page: Page) -> dict[str, str]:
    return {answer.question: f"{answer.said} {answer.detail}".strip() for answer in page.answers}


def two(folder: Path, ms: tuple[float, float], repeats: int, command: str = "") -> tuple[str, str]:
    """Two studies of one cell, which takes so many milliseconds in each."""
    places = []
    for name, latency in zip(("a", "b"), ms, strict=True):
        book = Book(options={"command": command} if command else {})
        serial(book, "onnx-http", 1, latency, repeats)
        places.append(str(book.write(folder / name)))
    return places[0], places[1]


@pytest.mark.parametrize(
    ("ms", "repeats", "verdict", "how_much", "step"),
    [
        (
            *((27, 10), 1, "Not confirmed whether candidate (b) is faster than base (a)."),
            "onnx-http/b1/c1 2.70× faster, large, unconfirmed: 1 run (100 against 37.0 ",
            "Rerun both with --repeats 5 to confirm.",
        ),
        (
            *((20, 10), 3, "Candidate (b) is faster than base (a)."),
            "onnx-http/b1/c1 2.00× faster, 95 % CI 1.91–2.09 (100 against 50.0 ",
            "None needed: every cell has a 95 % CI, and more repeats would narrow it.",
        ),
        (
            *((10, 20), 3, "Candidate (b) is slower than base (a)."),
            "onnx-http/b1/c1 2.00× slower, 95 % CI 1.91–2.09 (50.0 against 100 ",
            "None needed: every cell has a 95 % CI, and more repeats would narrow it.",
        ),
        (
            *((20, 20.1), 3, "Candidate (b) is not significantly different from base (a)."),
            "At most 1.05× either way, by the 95 % CIs.",
            "None needed: every cell has a 95 % CI, and more repeats would narrow it.",
        ),
    ],
)
def test_the_verdict_is_what_the_repeats_allow(
    *,
    ms: tuple[float, float],
    repeats: int,
    verdict: str,
    how_much: str,
    step: str,
    tmp_path: Path,
) -> None:
    page = page_of(*two(tmp_path, ms, repeats))
    assert page.answers[0].said == verdict
    told = answers_of(page)
    assert told["Difference"].startswith(how_much)
    assert told["Next step"] == step
    assert len(page.answers) <= 5


def test_the_next_step_has_the_command_that_is_missing_repeats(tmp_path: Path) -> None:
    few = page_of(*two(tmp_path / "few", (20, 10), 1, "locust -f locustfiles/step7.py"))
    enough = page_of(*two(tmp_path / "enough", (20, 10), 3, "locust -f locustfiles/step7.py"))
    assert [answer.command for answer in few.answers if answer.command] == [
        "locust -f locustfiles/step7.py --repeats 5"
    ]
    assert not [answer for answer in enough.answers if answer.command]


def test_published_runs_are_not_told_to_be_repeated() -> None:
    told = answers_of(page_of("step7-a100", "step7-rtx4090"))
    assert told["Next step"] == (
        "The base and the candidate have 1 published run a cell, which cannot be repeated."
    )
    assert "2 faster but unconfirmed, 16 slower but unconfirmed, 1 about the same but" in told["Verdict"]
    assert told["What differs"].endswith("The environment of base and candidate is not known.")


def test_three_sides_stand_in_one_row(pair: tuple[str, str]) -> None:
    page = page_of(*pair, pair[0])
    table = next(t for s in page.sections for t in s.tables if t.title == "Latency, p50")
    assert table.heads[:5] == ("cell", "base p50 ms", "A p50 ms", "A/base", "A against base")
    assert table.heads[5:] == ("B p50 ms", "B/base", "B against base")
    told = [cell.text for cell in table.rows[0]][4:]
    assert told == ["faster", "20.0", "1.00× (0.96–1.05)", NOT_SIGNIFICANT]
    assert page.facts == (
        "Base: before (base), candidate A: after, candidate B: before (candidate B); "
        "5 cells in common, 1 only in A"
    )
    assert {"Verdict, A", "Verdict, B"} < set(answers_of(page))
    assert answers_of(page)["Next step, A"].startswith("Fix what invalidates runs of candidate A (")


def test_a_cells_csv_compares_as_its_ledger_does(pair: tuple[str, str], tmp_path: Path) -> None:
    file = tmp_path / "before" / "cells.csv"
    file.parent.mkdir()
    file.write_text(render_csv(load_study(pair[0])), encoding="utf-8")
    side = load_side(str(file))
    assert (side.name, side.header) == ("before/cells.csv", {})
    assert side.rows == load_side(pair[0]).rows
    assert answers_of(page_of(pair[0], str(file)))["What differs"].endswith(
        "The environment of candidate is not known."
    )


def test_findings_and_facts_hold_no_paths(pair: tuple[str, str]) -> None:
    page = page_of(*pair)
    assert str(Path(pair[0]).parent) not in json.dumps(
        [page.facts, answers_of(page), page.notices, page.banner, page.commands]
    )
    assert page.commands == ("inferswarm compare results/before results/after",)
