"""Whether closed-loop users waited for answers all the time."""

from pathlib import Path

import pytest

from reports.cells_csv.columns import CELLS
from reports.study.study import Study, load_study
from reports.topics.runs.workers import generator_health
from tests.reports.builder import Book
from tests.reports.lines import health_line

MS = 1_000_000


def a_study(folder: Path, users: int, user_s: float | None, failures: int = 0) -> Study:
    """One run of users who each get 100 answers of 20 ms in `user_s` of their time."""
    book = Book()
    kinds = {"timeout": failures} if failures else None
    tag = book.add("onnx-http", 1, users, {"w0": [20 * MS] * 100 * users}, failures=kinds)
    if user_s is not None:
        drained = next(record for record in book.of(tag) if record["kind"] == "drained")
        drained["users_ns"] = round(user_s * 1e9) * users
    book.records.append(health_line(tag, "w0"))
    return load_study(book.write(folder))


def said(study: Study) -> dict[str, str]:
    return {one.code: one.text for one in study.runs[0].caveats}


@pytest.mark.parametrize(("user_s", "busy"), [(2.0, 1.0), (2.03, 0.985)])
def test_users_who_wait_nearly_all_the_time_are_as_they_should_be(
    tmp_path: Path, user_s: float, busy: float
) -> None:
    study = a_study(tmp_path, 8, user_s)
    assert CELLS["users_busy"](study.runs[0]) == pytest.approx(busy, abs=0.001)
    assert "littles-law" not in said(study)


def test_time_between_requests_is_said(tmp_path: Path) -> None:
    study = a_study(tmp_path, 8, 2.15)
    assert said(study)["littles-law"] == (
        "8 users kept 7.44 requests in flight (X·R): 6.94 % of their time passed between an answer and the "
        "next request"
    )
    assert not study.runs[0].tainted
    table = generator_health(study)
    assert table.heads[-1] == "X·R of N users"
    assert table.rows[0][-1].text == "7.44 of 8"


def test_older_ledgers_do_not_tell_of_each_users_time(tmp_path: Path) -> None:
    study = a_study(tmp_path, 8, None)
    assert "littles-law" not in said(study)
    assert CELLS["users_busy"](study.runs[0]) == pytest.approx(1.0, abs=0.001)


def test_nothing_is_known_where_requests_failed(tmp_path: Path) -> None:
    study = a_study(tmp_path, 8, 3.0, failures=8)
    assert CELLS["users_busy"](study.runs[0]) is None
    assert "littles-law" not in said(study)
    assert generator_health(study).rows[0][-1].text == "–"


def test_arrivals_are_no_users(tmp_path: Path) -> None:
    book = Book()
    book.add_open("onnx-http", 100, {"w0": [20 * MS] * 600})
    assert CELLS["users_busy"](load_study(book.write(tmp_path)).runs[0]) is None
