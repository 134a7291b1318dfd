"""A study from its ledger, of which only open runs are held: late records, a cut line, the plan's order."""

from pathlib import Path
from typing import Any

import pytest

from reports.fold.run_records import RunRecords
from reports.ledger.ledger import LedgerError
from reports.study.study import load_study, notices
from reports.study.summarise import summarise
from reports.summary.summary import Summary
from tests.reports.builder import Book
from tests.reports.lines import triton

MS = 1_000_000


def test_a_record_that_comes_after_another_run_has_begun_counts_too(tmp_path: Path) -> None:
    book = Book()
    first = book.add("onnx-http", 1, 1, {"w0": [MS] * 400}, counters=triton(400, 1, MS))
    late = [record for record in book.records if record["kind"] in ("window", "drained")][-2:]
    book.records = [record for record in book.records if record not in late]
    book.add("onnx-grpc", 1, 1, {"w0": [MS] * 300}, counters=triton(300, 1, MS))
    book.records[-3:-3] = late
    one, other = load_study(book.write(tmp_path)).runs
    assert (one.cell, one.counts.requests, other.counts.requests) == (first["cell"], 400, 300)
    assert "results-lost" not in [doubt.code for doubt in one.caveats]


def test_a_ledger_that_was_cut_in_a_runs_line_reports_up_to_there(tmp_path: Path) -> None:
    book = Book()
    book.add("onnx-http", 1, 1, {"w0": [MS] * 400}, counters=triton(400, 1, MS))
    book.add("onnx-grpc", 1, 1, {"w0": [MS] * 300}, counters=triton(300, 1, MS))
    ledger = book.write(tmp_path) / "ledger.jsonl"
    ledger.write_bytes(ledger.read_bytes()[:-20])
    study = load_study(tmp_path)
    assert (study.cut_line, study.status) == (True, "unfinished")
    assert [(run.counts.requests, run.status) for run in study.runs] == [(400, "done"), (300, "unfinished")]


def test_listeners_that_missed_events_are_told_of_before_any_number(tmp_path: Path) -> None:
    book = Book()
    book.add("onnx-http", 1, 1, {"w0": [MS] * 400}, counters=triton(400, 1, MS))
    book.footer()
    assert list(notices(load_study(book.write(tmp_path / "heard")))) == []
    book.records[-1]["events"] = ["timelines.py missed events: 2 of 9 events dropped."]
    assert list(notices(load_study(book.write(tmp_path / "missed")))) == [
        "timelines.py missed events: 2 of 9 events dropped. No figure here depends on it."
    ]
    book.records[-1]["events"] = 7
    with pytest.raises(LedgerError, match="is not what a ledger holds"):
        load_study(book.write(tmp_path / "damaged"))


def test_runs_stand_in_the_order_of_the_plan_and_not_of_their_ends(tmp_path: Path) -> None:
    book = Book()
    book.add("onnx-http", 1, 1, {"w0": [MS] * 10}, repeat=2)
    book.plan("onnx-http", 1, 1, 3)
    book.add("onnx-grpc", 1, 1, {"w0": [MS] * 10})
    book.plan_later()
    book.header["plan"].reverse()
    study = load_study(book.write(tmp_path))
    assert [(run.endpoint, run.repeat) for run in study.runs] == [
        ("onnx-http", 3),
        ("onnx-http", 2),
        ("onnx-grpc", 1),
    ]


def test_a_price_that_is_given_takes_the_place_of_the_studys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    def noted(run: RunRecords, header: dict[str, Any]) -> Summary:
        seen.append(header["options"]["usd_per_hour"])
        return summarise(run, header)

    monkeypatch.setattr("reports.study.study.summarise", noted)
    book = Book(options={"usd_per_hour": 1.5})
    book.plan("onnx-http", 1, 1)
    book.write(tmp_path)
    load_study(tmp_path)
    load_study(tmp_path, 4.0)
    assert seen == [1.5, 4.0]
