"""Triton's own trace in the report: percentiles of each part, three rows a run, and study.json."""

import json
from dataclasses import asdict
from pathlib import Path

from reports.render.study_json import render_json
from reports.study.study import Study, load_study
from reports.topics.report import build_page
from reports.topics.servers.breakdown import traced_requests
from tests.reports.builder import Book
from tests.reports.open_load import texts

MS = 1_000_000


def traced(folder: Path) -> Study:
    """100 requests of which 99 were found, a floor of which none was, and a run that was not traced."""
    book = Book()
    tag = book.add("onnx-http", 1, 1, {"w0": [10 * MS] * 100})
    ascending = [(place + 1) * MS for place in range(99)]
    book.trace(tag, 100, queue=ascending, compute=[5 * MS] * 99, outside=[0] * 99)
    floor = book.add("onnx-http-floor", 1, 1, {"w0": [MS] * 20})
    book.trace(floor, 20)
    book.caveat(floor, "trace-gap", "0 of 20 requests were found in Triton's trace")
    book.add("pytorch-http", 1, 1, {"w0": [MS] * 20})
    book.footer()
    return load_study(book.write(folder))


def test_three_rows_for_each_traced_run(tmp_path: Path) -> None:
    table = traced_requests(traced(tmp_path))
    assert table.folded
    assert table.heads[:4] == ("run", "joined", "of", "")
    unknown = ["–"] * 8
    assert texts(table) == [
        ["onnx-http/b1/c1", "99", "100", "p50", "–", "50.0", "–", "5.0", "–", "–", "–", "0.0"],
        ["", "", "", "p95", *unknown],
        ["", "", "", "p99", *unknown],
        ["onnx-http-floor/b1/c1", "0", "20", "p50", *unknown],
        ["", "", "", "p95", *unknown],
        ["", "", "", "p99", *unknown],
    ]
    assert "compare these runs with traced ones only" in table.caption


def test_the_study_says_it_and_a_gap_disqualifies_nothing(tmp_path: Path) -> None:
    study = traced(tmp_path)
    page = build_page(study, "x")
    runs = json.loads(render_json(study, page, ()))["runs"]
    assert runs[0]["trace"] == json.loads(json.dumps(asdict(study.runs[0].trace)))  # type: ignore[arg-type]
    assert runs[2]["trace"] is None
    (gap,) = [doubt for doubt in study.runs[1].caveats if doubt.code == "trace-gap"]
    assert not gap.tainted
    assert "--raw-results" in gap.advice
    (section,) = [section for section in page.sections if section.heading == "Runs"]
    assert "Triton's trace, request by request" in [table.title for table in section.tables]
