"""What the live page knows of a study: finished cells, progress, what is new, what was forgotten."""

from pathlib import Path
from typing import Any

import pytest

import swarm.web.state
from reports.study.study import load_study
from swarm.plan.schedule import costs_of
from swarm.web.cells import cell_of, tab_row
from swarm.web.page import LivePage
from swarm.web.state import StudyState
from tests.reports.builder import Book
from tests.reports.lines import FIRST_SECOND, health_line, phase_line
from tests.swarm.fakes import FakeClock
from tests.swarm.followed import END, Followed
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
    Followed(book.header, page.begun(folder, book.header)).tell(*book.records)
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
    assert cell == {"run": 1, **cell_of(run)}
    assert (cell["cell"], cell["images_per_s"], cell["failures"]) == ("onnx-grpc/b1/c2", "50.0", "0")
    assert (cell["p50"], cell["p95"], cell["p99"]) == ("40.0", "40.0", "–")
    doubt = cell["caveats"][0]
    assert (doubt["code"], doubt["tainted"], bool(doubt["advice"])) == ("few-samples", False, True)


def test_a_row_of_locusts_table_has_numbers_where_they_are_known(page: LivePage) -> None:
    told(page, a_book())
    (row,) = page.tab()
    assert (row["cell"], row["repeat"]) == ("onnx-grpc/b1/c2", 1)
    assert (row["rate"], row["p50"], row["failures"]) == (50.0, 40.0, 0.0)
    assert row["caveats"].startswith("few-samples")
    failed = Book()
    failed.add("onnx-grpc", 1, 1, {"w0": []}, status="failed", note="<b>no</b>")
    (cell,) = told(page, failed)["cells"]
    assert tab_row(cell, 1)["p50"] == "–"
    assert {"code": "failed", "text": "<b>no</b>"}.items() <= cell["caveats"][0].items()


def test_progress_names_the_run_its_phase_and_the_time_left(page: LivePage, clock: FakeClock) -> None:
    book = a_book(repeats=3)
    first = [record for record in book.records if record.get("repeat") == 1]
    study = Followed(book.header, page.begun(LIVE, book.header))
    assert page.data(0)["progress"] | {"left": ""} == {
        "done": 0, "run": 0, "runs": 3, "cell": "", "repeat": None, "phase": "", "left": "",
    }  # fmt: skip
    study.tell(first[0], phase_line(tagged(book), "warm-up", "2026-11-21T11:00:00Z"))
    here = page.data(0)["progress"]
    assert (here["run"], here["cell"], here["phase"], here["left"]) == (1, "onnx-grpc/b1/c2", "warm-up", "")
    clock.now = 10.0
    study.tell(*first[1:])
    after = page.data(0)["progress"]
    assert (after["done"], after["cell"], after["left"]) == (1, "", "3 s")


def test_the_latest_study_has_a_pace_once_a_run_is_done(page: LivePage, clock: FakeClock) -> None:
    book = a_book(repeats=3)
    assert page.pace_s is None
    study = Followed(book.header, page.begun(LIVE, book.header))
    assert page.pace_s is None
    clock.now = 14.0
    study.tell(*(record for record in book.records if record.get("repeat") == 1))
    entry = book.header["plan"][0]
    assert page.pace_s == 14.0 / costs_of([entry])[0]
    page.begun(LIVE, book.header)
    assert page.pace_s is None


def test_a_search_does_not_know_how_many_runs_there_will_be(page: LivePage) -> None:
    book = a_book()
    plan = book.header.pop("plan")
    header = {**book.header, "plan": []}
    Followed(header, page.begun(LIVE, header)).tell({"kind": "plan", "runs": plan}, *book.records)
    found = page.data(0)
    assert (found["progress"]["runs"], found["progress"]["done"], len(found["cells"])) == (None, 1, 1)


def test_seconds_and_cells_bear_the_number_of_their_run(page: LivePage) -> None:
    found = told(page, a_book(repeats=2))
    runs = [dict(zip(found["columns"], row, strict=True)) for row in found["seconds"]]
    assert [(row["repeat"], row["run"]) for row in runs] == [(1, 1), (1, 1), (2, 2), (2, 2)]
    assert [(cell["repeat"], cell["run"]) for cell in found["cells"]] == [(1, 1), (2, 2)]


def test_a_study_began_at_a_time_that_people_read(page: LivePage) -> None:
    book = a_book()
    book.header["started_utc"] = "2026-11-25T09:04:20.384Z"
    assert told(page, book)["study"]["started"] == "25 Nov 2026, 09:04 UTC"


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
    study, tag = Followed(book.header, page.begun(LIVE, book.header)), tagged(book)
    study.tell(begun(tag), *(health_line(tag, "w0", FIRST_SECOND + at) for at in range(3)), {**END, **tag})
    assert (len(page.data(0)["seconds"]), page.data(0)["forgotten"]) == (3, False)
    study.tell(begun(tag), *second_of(tag, 9, [MS]), {**END, **tag})
    found = page.data(0)
    assert ([row[0] - FIRST_SECOND for row in found["seconds"]], found["forgotten"]) == ([1, 2, 9], True)


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
    page.refused("--iterations nope: must be at least 1")
    assert page.data(0)["refused"] == "--iterations nope: must be at least 1"
    page.begun(LIVE, a_book().header)
    assert page.data(0)["refused"] == ""


def test_a_record_that_cannot_be_read_ends_the_page_and_not_the_study(page: LivePage) -> None:
    book = a_book()
    study = Followed(book.header, page.begun(LIVE, book.header))
    study.tell({**begun(tagged(book)), "cell": "never/planned"}, begun(tagged(book)))
    found = page.data(0)
    assert (found["fault"], found["progress"]["run"]) == ("ValueError: never/planned was not planned", 0)
    assert study.said == [
        "inferswarm: no more events, live figures or early stops (ValueError: never/planned was not planned)"
    ]


def test_records_of_other_runs_are_let_pass(page: LivePage) -> None:
    book = a_book(repeats=2)
    study, tag = Followed(book.header, page.begun(LIVE, book.header)), tagged(book)
    study.tell(begun(tag), *second_of({**tag, "repeat": 2}, 0, [MS]), {**END, **tag})
    assert page.data(0)["seconds"] == []
    assert study.dispatcher.finish() == ["3 records came too late for events."]


def test_what_goes_wrong_on_the_page_is_told_there(page: LivePage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(swarm.web.state, "COLUMNS", ())
    book = a_book()
    study = Followed(book.header, page.begun(LIVE, book.header))
    study.tell(begun(tagged(book)), {**begun(tagged(book)), "hosts": 2})
    monkeypatch.setattr(StudyState, "_show", lambda *_: {}["no such"])
    study.tell(*second_of(tagged(book), 0, [MS]), {**END, **tagged(book)})
    found = page.data(0)
    assert found["fault"] == "KeyError: 'no such'"
    assert study.said == ["inferswarm: StudyState, listening to events.window, raised KeyError: 'no such'"]
    page.ended("complete", "", 0)
    assert page.data(0)["study"]["status"] == "complete"


def test_of_earlier_studies_only_the_head_is_kept_and_of_the_last_50(page: LivePage) -> None:
    for number in range(60):
        told(page, a_book(), Path(f"results/step7-{number}"))
    found = page.data(0)
    assert len(found["earlier"]) == 49
    assert found["earlier"][0]["id"] == "step7-58"
    assert [len(study.cells) for study in page._studies[-2:]] == [0, 1]


def test_after_a_fault_there_is_no_time_left_to_tell(page: LivePage, clock: FakeClock) -> None:
    book = a_book(repeats=3)
    study = Followed(book.header, page.begun(LIVE, book.header))
    clock.now = 10.0
    study.tell(*(record for record in book.records if record.get("repeat") == 1))
    assert page.data(0)["progress"]["left"] == "3 s"
    study.tell({**begun(tagged(book)), "cell": "never/planned"})
    assert page.data(0)["progress"]["left"] == ""


def test_a_run_that_the_studys_end_cut_off_is_not_done(page: LivePage) -> None:
    book = a_book()
    book.add("onnx-grpc", 1, 2, {"w0": [40 * MS]}, repeat=2, status="aborted")
    progress = told(page, book)["progress"]
    assert (progress["done"], progress["run"], progress["runs"], progress["cell"]) == (1, 2, 2, "")


def test_a_second_that_comes_again_takes_its_own_place(page: LivePage) -> None:
    tag = tagged(book := a_book())
    study = Followed(book.header, page.begun(LIVE, book.header))
    lines = [health_line(tag, "w0", FIRST_SECOND + at) for at in range(4)]
    study.tell(begun(tag), *lines[:2], step_s=1)
    (first,) = page.data(0)["seconds"]
    study.tell(health_line(tag, "w1", FIRST_SECOND), step_s=1)
    study.tell(health_line(tag, "w1", FIRST_SECOND + 4), *lines[2:], step_s=1)
    rows = page.data(0)["seconds"]
    again = next(row for row in rows if row[0] == first[0])
    users = page.data(0)["columns"].index("users")
    assert (len(rows), first[users], again[users]) == (3, 4, 8)
    assert page.data(1, "step7-1")["seconds"][0] == again


def test_a_sample_and_the_figures_of_its_second_stand_in_one_row(page: LivePage) -> None:
    tag = tagged(book := a_book())
    study = Followed(book.header, page.begun(LIVE, book.header))
    gpus = [{"id": "a", "util_pct": 91.234567, "memory_bytes": 2_000_000_000, "power_w": 300.0}]
    study.tell(begun(tag), *second_of(tag, 0, [40 * MS] * 20, gpus=gpus, pending_requests=3), {**END, **tag})
    found = page.data(0)
    (row,) = [dict(zip(found["columns"], row, strict=True)) for row in found["seconds"]]
    assert (row["t_s"], row["cell"], row["repeat"]) == (FIRST_SECOND, "onnx-grpc/b1/c2", 1)
    assert (row["images_per_s"], row["in_flight"], row["worker_cpu_pct"]) == (20, 4, 40.0)
    assert row["latency_p50_ms"] == pytest.approx(40, rel=1e-3)
    assert (row["gpu_util_pct"], row["gpu_power_w"], row["pending_requests"]) == (91.23, 300.0, 3)
    assert (row["latency_p95_ms"], row["server_queue_ms"]) == (None, None)


def test_percentiles_are_of_as_many_seconds_as_they_take(page: LivePage) -> None:
    tag = tagged(book := a_book())
    study = Followed(book.header, page.begun(LIVE, book.header))
    each = (second_of(tag, at, [(at + 1) * MS] * 40) for at in range(4))
    study.tell(begun(tag), *(record for second in each for record in second), {**END, **tag})
    found = page.data(0)
    rows = [dict(zip(found["columns"], row, strict=True)) for row in found["seconds"]]
    assert [row["latency_p50_ms"] for row in rows] == pytest.approx([1, 2, 3, 4], rel=1e-3)
    assert [row["latency_p95_ms"] for row in rows[:2]] == [None, None]
    assert [row["latency_p95_ms"] for row in rows[2:]] == pytest.approx([3, 4], rel=1e-3)
    assert [row["latency_p99_ms"] for row in rows] == [None] * 4


def test_runs_at_the_same_time_have_percentiles_of_their_own_seconds(page: LivePage) -> None:
    book = a_book()
    book.add("onnx-http", 1, 2, {"w0": [40 * MS] * 100})
    study = Followed(book.header, page.begun(LIVE, book.header))
    tags = [{"cell": entry["cell"], "repeat": 1} for entry in book.header["plan"]]
    study.tell(*map(begun, tags))
    for at in range(4):
        for ms, tag in enumerate(tags, 1):
            study.tell(*second_of(tag, at, [ms * MS] * 40))
    study.tell(*({**END, **tag} for tag in tags))
    found = page.data(0)
    rows = [dict(zip(found["columns"], row, strict=True)) for row in found["seconds"]]
    latest = {row["cell"]: row["latency_p95_ms"] for row in rows}
    assert list(latest.values()) == pytest.approx([1, 2], rel=1e-3)
