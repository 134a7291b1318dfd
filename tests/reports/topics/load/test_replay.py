"""How well a trace was replayed: the table, the chart, the row of the first screen, what is no caveat."""

from pathlib import Path
from typing import Any

import pytest

from reports.ledger.ledger import LedgerError
from reports.study.study import Study, load_study
from reports.topics.load.open_load import open_finding
from reports.topics.load.replay import REPLAY, replay_chart, replay_finding, replay_table
from reports.topics.report import build_page
from tests.reports.builder import Book
from tests.reports.lines import FIRST_SECOND, Record, drained_line, encoded, phase_line
from tests.reports.open_load import MS, notes_at, texts

ASKED = {"width_s": 1, "requests": [300, 600, 100]}


def replay(
    book: Book, endpoint: str = "onnx-http", delay_ms: float = 0.4, sent: int = 1_000, **more: Any
) -> Record:
    """A run of a trace of 1,000 requests in 3 seconds, whose latency is 30 ms."""
    axes = {"replay": "burst", "variant": "replay-burst", "asked": ASKED, "batch_mix": "1:0.7,4:0.3"}
    tag = book.add_open(
        endpoint, 333, {"w0": [30 * MS] * sent}, batch=4, arrivals="trace", axes=axes, phase_s=3.1, **more
    )
    begin = phase_line(tag, "measure", "2026-11-21T10:59:59.950Z")
    book.records.append(begin | {"start_utc_ns": FIRST_SECOND * 10**9})
    book.records.append(phase_line(tag, "drain", "2026-11-21T11:00:03.1Z"))
    for window in book.measured(tag):
        window["images"] = window["ok"]
        delays = [0] * (window["ok"] - 20) + [round(delay_ms * MS)] * 20
        window["histograms"] |= {"send_delay": encoded(delays)}
    return tag


def study(book: Book, folder: Path) -> Study:
    return load_study(book.write(folder))


def test_a_trace_that_was_replayed_whole(tmp_path: Path) -> None:
    book = Book()
    replay(book)
    found = study(book, tmp_path)
    table = replay_table(found)
    assert table.heads == (
        *("endpoint", "trace", "asked", "lost", "late"),
        *("error p50 ms", "error p90 ms", "error p99 ms", "error max ms", "p50 ms", "p95 ms", "p99 ms"),
    )
    assert texts(table) == [
        ["onnx-http", "burst", "1,000", "0", "0", "0.0", "0.0", "0.4", "0.4", "30.0", "30.0", "30.0"]
    ]
    row = replay_finding(found)
    assert row is not None
    assert row.text == (
        "Replay: trace burst: nothing lost of 1,000 requests, send delay p99 0.4 ms. "
        "Latency p95: onnx-http 30.0 ms."
    )
    assert [one.code for run in found.runs for one in run.caveats if one.tainted] == []


def test_what_was_lost_and_what_was_late_is_said(tmp_path: Path) -> None:
    book = Book()
    replay(book)
    replay(book, "onnx-grpc", 8, sent=980, late=7, dropped=20)
    found = study(book, tmp_path)
    assert [row[:5] for row in texts(replay_table(found))] == [
        ["onnx-grpc", "burst", "1,000", "20", "7"],
        ["onnx-http", "burst", "1,000", "0", "0"],
    ]
    row = replay_finding(found)
    assert row is not None
    # those of the run that lost requests are the client's: `rate-missed` invalidates it
    assert row.said == "trace burst: 20 of 2,000 requests lost in 2 runs, send delay p99 0.4 ms."
    assert row.detail == "Latency p95: onnx-http 30.0 ms. 1 invalidated run left out, but for losses."
    assert "rate-missed" in {one.code for one in found.runs[1].caveats}


@pytest.mark.parametrize(
    ("phase_s", "sent", "dropped", "lost", "not_due"),
    [(2.5, 950, 0, "0", 50), (2.5, 850, 10, "50", 100), (1.0, 300, 0, "0", 700), (3.1, 980, 0, "20", 0)],
)
def test_what_was_not_due_when_a_run_was_stopped_is_not_lost(
    tmp_path: Path, phase_s: float, sent: int, dropped: int, lost: str, not_due: int
) -> None:
    book = Book()
    tag = replay(book, sent=sent, dropped=dropped)
    book.header["plan"][0]["asked"] = ASKED | {"seconds": 3.0}
    for record in book.of(tag):
        if record["kind"] == "drained":
            record["phase_ns"] = round(phase_s * 1e9)
    found = study(book, tmp_path)
    assert texts(replay_table(found))[0][2:4] == ["1,000", lost]
    row = replay_finding(found)
    assert row is not None
    assert (f"{not_due} requests not due" in row.detail) == bool(not_due)
    assert f"of {1_000 - not_due:,} requests" in row.said


def test_what_a_lost_worker_had_sent_is_not_lost(tmp_path: Path) -> None:
    book = Book()
    tag = replay(book, drained=False)
    book.records.append(
        drained_line(tag, "w1", 1, 400) | {"sent": 400, "phase_ns": 3 * 10**9, "due": 400, "dropped": 0}
    )
    row = replay_finding(study(book, tmp_path))
    assert row is not None
    assert "nothing lost of 1,000 requests" in row.said


def test_few_requests_have_no_p99_but_a_longest_delay(tmp_path: Path) -> None:
    book = Book()
    tag = replay(book, sent=400)
    book.header["plan"][0]["asked"] = {"width_s": 2, "requests": [300, 100]}
    found = study(book, tmp_path)
    assert texts(replay_table(found))[0][5:9] == ["0.0", "0.0", "–", "0.4"]
    assert notes_at(replay_table(found), 0, 7) == ["p99 takes 500 results"]
    row = replay_finding(found)
    assert row is not None
    assert tag
    assert row.said == "trace burst: nothing lost of 400 requests, send delay 0.4 ms at most."


def test_the_chart_has_what_was_asked_beside_what_came_back(tmp_path: Path) -> None:
    book = Book()
    replay(book)
    replay(book, repeat=2)
    chart = replay_chart(study(book, tmp_path))
    assert chart is not None
    assert chart.data["t_s"] == [0, 1, 2, None]
    assert chart.data["runs"] == [
        {"name": "onnx-http/mix/r333/replay-burst", "from": 0, "to": 3, "aside": []}
    ]
    (panel,) = chart.data["panels"]
    assert {line["label"]: line["values"] for line in panel["lines"]} == {
        "asked": [300, 600, 100, None],
        "answered": [500, 500, 0, None],
    }


def test_a_wide_course_is_spread_over_its_seconds(tmp_path: Path) -> None:
    book = Book()
    replay(book)
    book.header["plan"][0]["asked"] = {"width_s": 2, "requests": [600, 400]}
    (found,) = study(book, tmp_path).replays
    assert [second.asked_per_s for second in found.seconds] == [300, 300, 200, 200]
    assert found.asked == 1_000


def test_the_page_of_a_replay(tmp_path: Path) -> None:
    book = Book()
    replay(book)
    found = study(book, tmp_path)
    page = build_page(found, "x")
    asked = [answer.question for answer in page.answers]
    assert "Replay" in asked
    assert "Rates kept" not in asked
    assert open_finding(found)
    titles = {section.heading: [table.title for table in section.tables] for section in page.sections}
    assert "Replayed traces" in titles["Results"]


def test_other_studies_are_not_asked(tmp_path: Path) -> None:
    book = Book()
    book.add_open("onnx-http", 50, {"w0": [MS] * 50})
    found = study(book, tmp_path)
    assert not REPLAY.applies(found)
    assert (found.replays, replay_finding(found), replay_chart(found)) == ((), None, None)


def test_a_replay_that_was_not_begun(tmp_path: Path) -> None:
    book = Book()
    axes = {"replay": "burst", "variant": "replay-burst", "asked": ASKED}
    book.plan("onnx-http", 1, 333, arrivals="trace", axes=axes)
    found = study(book, tmp_path)
    assert texts(replay_table(found))[0][:5] == ["onnx-http", "burst", "–", "–", "–"]
    assert replay_finding(found) is None


@pytest.mark.parametrize(
    "course",
    [5, {}, {"width_s": 0, "requests": []}, {"width_s": 1},
     {"width_s": 1, "requests": [1, -1]},
     {"width_s": 1, "requests": [None]}, {"width_s": 1, "requests": [0.5]},
     {"width_s": 9.0, "requests": [1]},
     {"width_s": 1, "requests": [1], "seconds": "1"}, {"width_s": 1, "requests": [1], "seconds": -1}],
)  # fmt: skip
def test_a_course_that_is_none(tmp_path: Path, course: object) -> None:
    book = Book()
    replay(book)
    book.header["plan"][0]["asked"] = course
    with pytest.raises(LedgerError, match="asked of a planned run"):
        study(book, tmp_path)
