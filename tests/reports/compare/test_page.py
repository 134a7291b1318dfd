"""The page of a comparison: what differs said first, what was found, tables and lone cells."""

import json
from pathlib import Path

from reports.cells_csv.columns import render_csv
from reports.cells_csv.sides import load_side, load_sides
from reports.compare.differences import differences
from reports.compare.matching import NONE_SHOWN
from reports.study.study import load_study
from tests.reports.compare_book import page_of


def test_what_differs_comes_first_and_what_spoils_is_a_notice(pair: tuple[str, str]) -> None:
    page = page_of(*pair)
    found = {it.what: it.values for it in differences(load_sides(pair))}
    assert found == {
        "endpoints.onnx-http.weights": ("random (seed 0)", "laion2b"),
        "endpoints.onnx-grpc.weights": ("random (seed 0)", "laion2b"),
        "images.sha256": ("ab12", "cd34"),
        "cpu.model": ("Example CPU", "Other CPU"),
        "options.seconds": ("10", "20"),
    }
    assert page.sections[0].heading == "What differs"
    assert page.findings[0].startswith(
        "What differs: endpoints.onnx-http.weights and endpoints.onnx-grpc.weights "
        "(random (seed 0) in A, laion2b in B); "
    )
    assert page.findings[0].endswith("cpu.model (Example CPU in A, Other CPU in B); and 1 more.")
    assert (
        "The sides were sent different images. Differing: images.sha256 (ab12 in A, cd34 in B)."
        in page.notices
    )
    assert "B (after): The study ended as interrupted: Ctrl-C." in page.notices


def test_the_findings_count_the_verdicts_and_name_the_biggest_change(pair: tuple[str, str]) -> None:
    findings = page_of(*pair).findings
    assert findings[1] == (
        "B (after) against A (before): 5 cells in common, 1 only in A and 1 only in B. "
        "Images per second: 1 faster, 1 slower, 1 no difference shown, 2 inconclusive. "
        "Latency, p50: 1 faster, 1 slower, 1 no difference shown, 2 inconclusive."
    )
    assert findings[2].startswith("The biggest change of B: ")
    assert "B has 1 cell with more failures." in findings


def test_chance_is_counted_in_the_caption(pair: tuple[str, str]) -> None:
    table = next(t for s in page_of(*pair).sections for t in s.tables if t.title == "Images per second")
    assert (
        "3 comparisons allow a verdict: at 95 % about 1 in 20 shows a difference by chance" in table.caption
    ), "a fourth has an interval, and failures that leave it open"
    assert table.heads == ("cell", "A images/s", "B images/s", "B/A", "verdict")
    assert [cell.text for cell in table.rows[0]][:3] == ["onnx-http/b1/c1", "50.0", "100"]


def test_three_sides_stand_in_one_row(pair: tuple[str, str]) -> None:
    page = page_of(*pair, pair[0])
    table = next(t for s in page.sections for t in s.tables if t.title == "Latency, p50")
    assert table.heads[5:] == ("C p50 ms", "C/A", "C against A")
    assert [cell.text for cell in table.rows[0]][4:] == ["faster", "20.0", "1.00× (0.956–1.05)", NONE_SHOWN]
    assert page.facts == "Base A: before (A), B: after, C: before (C); 5 cells in common"


def test_cells_of_one_side_are_listed(pair: tuple[str, str]) -> None:
    table = next(t for s in page_of(*pair).sections for t in s.tables if t.title == "Cells that a side lacks")
    assert [[cell.text for cell in row] for row in table.rows] == [
        ["pytorch-http/b8/c1", "yes", "no"],
        ["trt-http/b1/c1", "no", "yes"],
    ]


def test_a_cells_csv_compares_as_its_ledger_does(pair: tuple[str, str], tmp_path: Path) -> None:
    file = tmp_path / "before" / "cells.csv"
    file.parent.mkdir()
    file.write_text(render_csv(load_study(pair[0])), encoding="utf-8")
    side = load_side(str(file))
    assert (side.name, side.header) == ("before/cells.csv", {})
    assert side.rows == load_side(pair[0]).rows
    assert "Nothing else is known of what B ran on." in page_of(pair[0], str(file)).findings[0]


def test_findings_and_facts_hold_no_paths(pair: tuple[str, str]) -> None:
    page = page_of(*pair)
    assert str(Path(pair[0]).parent) not in json.dumps(
        [page.facts, page.findings, page.notices, page.commands]
    )
    assert page.commands == ("python -m reports compare results/before results/after",)
