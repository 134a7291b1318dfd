"""What the live page knows of a study: finished cells, progress, what is new, what was forgotten."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import swarm.web.state
from reports.study.study import load_study
from swarm.web.cells import cell_of, tab_row
from swarm.web.page import LivePage
from tests.reports.builder import Book
from tests.reports.lines import FIRST_SECOND, health_line, phase_line
from tests.swarm.fakes import FakeClock
from tests.swarm.web_stand import MS, a_book, begun, left, second_of, tagged

LIVE = Path("results/step7-1")


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def page(clock: FakeClock) -> LivePage:
    return LivePage(clock)


def told(page: LivePage, book: Book, folder: Path = LIVE) -> dict[str, Any]:
    """Everything of a whole ledger, told to the page; what it says afterwards."""
    page.begun(folder, book.header)
    for record in book.records:
        page.on_record(record)
    return page.data(0)


def test_before_anything_was_started(page: LivePage) -> None:
    found = page.data(0)
    assert (found["study"], found["next"], found["earlier"]) == ({"id": "", "status": "idle"}, 0, [])
    assert page.tab() == []


def test_a_finished_cell_has_the_reports_own_numbers(page: LivePage, tmp_path: Path) -> None:
    book = a_book()
    book.write(tmp_path)
    (run,) = load_study(tmp_path).runs
    (cell,) = told(page, book)["cells"]
    assert cell == cell_of(run)
    assert (cell["cell"], cell["images_per_s"], cell["failures"]) == ("onnx-grpc/b1/c2", "50.0", "0")
    assert (cell["p50"], cell["p95"], cell["p99"]) == ("40.0", "40.0", "40.0")
    doubt = cell["caveats"][0]
    assert (doubt["code"], doubt["tainted"], bool(doubt["advice"])) == ("few-samples", False, True)


def test_a_row_of_locusts_table_has_numbers_where_they_are_known(page: LivePage) -> None:
    told(page, a_book())
    (row,) = page.tab()
    assert (row["cell"], row["repeat"], row["rate"], row["p50"], row["failures"]) == (
        *("onnx-grpc/b1/c2", 1, 50.0, 40.0, 0.0),
    )
    assert row["caveats"].startswith("few-samples")
    failed = Book()
    failed.add("onnx-grpc", 1, 1, {"w0": []}, status="failed", note="<b>no</b>")
    (cell,) = told(page, failed)["cells"]
    assert tab_row(cell, 1)["p50"] == "–"
    assert {"code": "failed", "text": "<b>no</b>"}.items() <= cell["caveats"][0].items()


def test_progress_names_the_run_its_phase_and_the_time_left(page: LivePage, clock: FakeClock) -> None:
    book = a_book(repeats=3)
    first = [record for record in book.records if record.get("repeat") == 1]
    page.begun(LIVE, book.header)
    assert page.data(0)["progress"] | {"left": ""} == {
        "done": 0, "run": 0, "runs": 3, "cell": "", "repeat": None, "phase": "", "left": "",
    }  # fmt: skip
    page.on_record(first[0])
    page.on_record(phase_line(tagged(book), "warm-up", "2026-11-21T11:00:00Z"))
    here = page.data(0)["progress"]
    assert (here["run"], here["cell"], here["phase"], here["left"]) == (1, "onnx-grpc/b1/c2", "warm-up", "")
    clock.now = 10.0
    for record in first[1:]:
        page.on_record(record)
    after = page.data(0)["progress"]
    assert (after["done"], after["cell"], after["left"]) == (1, "", "20 s")


def test_a_search_does_not_know_how_many_runs_there_will_be(page: LivePage) -> None:
    book = a_book()
    plan = book.header.pop("plan")
    page.begun(LIVE, {**book.header, "plan": []})
    for record in ({"kind": "plan", "runs": plan}, *book.records):
        page.on_record(record)
    found = page.data(0)
    assert (found["progress"]["runs"], found["progress"]["done"], len(found["cells"])) == (None, 1, 1)


def test_since_leaves_out_what_is_known(page: LivePage) -> None:
    book = a_book(repeats=2)
    all_of_it = told(page, book)
    assert (len(all_of_it["seconds"]), len(all_of_it["cells"])) == (4, 2)
    assert all_of_it["next"] == 6
    newer = page.data(3, "step7-1")
    assert (len(newer["seconds"]), len(newer["cells"])) == (2, 1)
    assert newer["cells"] == all_of_it["cells"][1:]
    nothing = page.data(6, "step7-1")
    assert (nothing["seconds"], nothing["cells"], nothing["next"]) == ([], [], 6)
    assert page.data(6, "another")["seconds"] == all_of_it["seconds"]


def test_old_seconds_are_forgotten_and_it_says_so(page: LivePage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(swarm.web.state, "KEPT_S", 3)
    book = a_book()
    page.begun(LIVE, book.header)
    page.on_record(begun(tagged(book)))
    for at in range(3):
        page.on_record(health_line(tagged(book), "w0", FIRST_SECOND + at))
    page.on_record({"kind": "run", **tagged(book), "event": "end", "status": "done", "note": ""})
    assert (len(page.data(0)["seconds"]), page.data(0)["forgotten"]) == (3, False)
    page.on_record(begun(tagged(book)))
    for record in second_of(tagged(book), 9, [MS]):
        page.on_record(record)
    page.on_record({"kind": "run", **tagged(book), "event": "end", "status": "done", "note": ""})
    found = page.data(0)
    assert ([row[0] - FIRST_SECOND for row in found["seconds"]], found["forgotten"]) == ([1, 2, 9], True)


def test_a_run_too_long_to_hold_is_left_to_the_report(
    page: LivePage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(swarm.web.state, "MOST_RECORDS", 3)
    (cell,) = told(page, a_book())["cells"]
    assert (cell["images_per_s"], cell["limit"], cell["caveats"][0]["code"]) == ("–", None, "too-long")
    assert cell["caveats"][0]["text"] == "more than 3 records, too many to hold"


def test_a_second_study_takes_the_place_of_the_first(page: LivePage, tmp_path: Path) -> None:
    first, second = left(tmp_path, "step7-1"), tmp_path / "step7-2"
    seen = told(page, a_book(), first)["next"]
    assert page.file("", "report.html") is None
    page.ended("interrupted", "stopped before its end", 3)
    assert page.file("", "report.html") == first / "report.html"
    page.begun(second, a_book().header)
    found = page.data(seen, "step7-1")
    assert (found["study"]["id"], found["study"]["status"]) == ("step7-2", "running")
    assert (found["seconds"], found["cells"]) == ([], [])
    (earlier,) = found["earlier"]
    assert (earlier["id"], earlier["status"], earlier["report"]) == ("step7-1", "interrupted", True)
    assert page.file("step7-1", "cells.csv") == first / "cells.csv"
    assert page.file("step7-2", "cells.csv") is None


def test_how_a_study_ended(page: LivePage, tmp_path: Path) -> None:
    told(page, a_book(), tmp_path / "none")
    page.ended("failed", "no worker is left", 3)
    about = page.data(0)["study"]
    assert (about["status"], about["reason"], about["code"]) == ("failed", "no worker is left", 3)
    assert (about["report"], about["csv"]) == (False, False)
    page.refused("--iterations nope: give 1 or more")
    assert page.data(0)["refused"] == "--iterations nope: give 1 or more"
    page.begun(LIVE, a_book().header)
    assert page.data(0)["refused"] == ""


def test_a_record_that_cannot_be_read_ends_the_page_and_not_the_study(page: LivePage) -> None:
    book = a_book()
    page.begun(LIVE, book.header)
    page.on_record({**begun(tagged(book)), "cell": "never/planned"})
    page.on_record(begun(tagged(book)))
    found = page.data(0)
    assert (found["fault"], found["progress"]["run"]) == ("KeyError: 'never/planned was not planned'", 0)


def test_records_of_other_runs_and_without_a_study_are_let_pass(page: LivePage) -> None:
    page.on_record(begun(tagged(a_book())))
    book = a_book(repeats=2)
    page.begun(LIVE, book.header)
    page.on_record(begun(tagged(book)))
    for record in second_of({**tagged(book), "repeat": 2}, 0, [MS]):
        page.on_record(record)
    page.on_record({"kind": "run", **tagged(book), "event": "end", "status": "done", "note": ""})
    assert page.data(0)["seconds"] == []


def test_what_goes_wrong_on_the_page_costs_no_study(page: LivePage) -> None:
    page.begun(LIVE, {})
    assert page.data(0)["fault"] == "KeyError: 'plan'"
    told(page, a_book())
    page.on_record({"kind": "run", "event": "start", "cell": "not-planned", "repeat": 1})
    found = page.data(0)
    assert found["fault"] == "KeyError: 'not-planned was not planned'"
    assert found["progress"]["cell"] == ""
    page.ended("complete", "", 0)
    assert page.data(0)["study"]["status"] == "complete"


def test_of_earlier_studies_only_the_head_is_kept_and_of_the_last_50(page: LivePage) -> None:
    for number in range(60):
        told(page, a_book(), Path(f"results/step7-{number}"))
    found = page.data(0)
    assert len(found["earlier"]) == 49
    assert found["earlier"][0]["id"] == "step7-58"
    assert [len(study.cells) for study in page._studies[-2:]] == [0, 1]


def test_a_study_that_is_not_known_here_writes_nothing_over_the_one_before(page: LivePage) -> None:
    told(page, a_book())
    page.ended("complete", "", 0)
    page.begun(Path("results/step7-2"), {})
    page.on_record(begun(tagged(a_book())))
    page.ended("failed", "no worker is left", 3)
    found = page.data(0)
    assert (found["study"]["id"], found["study"]["status"], found["fault"]) == (
        *("step7-1", "complete", "KeyError: 'plan'"),
    )


def test_after_a_fault_there_is_no_time_left_to_tell(page: LivePage, clock: FakeClock) -> None:
    book = a_book(repeats=3)
    page.begun(LIVE, book.header)
    clock.now = 10.0
    for record in book.records:
        if record.get("repeat") == 1:
            page.on_record(record)
    assert page.data(0)["progress"]["left"] == "20 s"
    page.on_record({**begun(tagged(book)), "cell": "never/planned"})
    assert page.data(0)["progress"]["left"] == ""


def test_a_run_that_the_studys_end_cut_off_is_not_done(page: LivePage) -> None:
    book = a_book()
    book.add("onnx-grpc", 1, 2, {"w0": [40 * MS]}, repeat=2, status="aborted")
    progress = told(page, book)["progress"]
    assert (progress["done"], progress["run"], progress["runs"], progress["cell"]) == (1, 2, 2, "")


def test_a_second_that_comes_again_takes_its_own_place(page: LivePage, clock: FakeClock) -> None:
    tag = tagged(book := a_book())
    page.begun(LIVE, book.header)
    page.on_record(begun(tag))
    page.on_record(health_line(tag, "w0", FIRST_SECOND))
    clock.now = 5.0
    page.on_record(health_line(tag, "w0", FIRST_SECOND + 1))
    (first,) = page.data(0)["seconds"]
    page.on_record(health_line(tag, "w1", FIRST_SECOND))
    clock.now = 10.0
    page.on_record(health_line(tag, "w0", FIRST_SECOND + 2))
    (again, _) = page.data(0)["seconds"]
    users = page.data(0)["columns"].index("users")
    assert (again[0], first[users], again[users]) == (first[0], 4, 8)
    assert (page.data(1, "step7-1")["seconds"][0], page.data(0)["late"]) == (again, 0)


def test_a_row_of_locusts_table_is_made_once(page: LivePage) -> None:
    told(page, a_book())
    (first,), (again,) = page.tab(), page.tab()
    assert first is again
