"""What servers held in memory: folded from the ledger, shown by server and by run, beside the published."""

import json
from pathlib import Path

from reports.render.study_json import render_json
from reports.study.study import Study, load_study
from reports.topics.published.step6a import backends_finding
from reports.topics.report import build_page
from reports.topics.servers.memory import (
    AFTER_LARGER,
    ALL_OF_GPU,
    OWN_OF_GPU,
    RSS,
    memory_by_run,
    memory_table,
)
from tests.reports.builder import Book
from tests.reports.lines import FIRST_SECOND, phase_line, sample_line
from tests.reports.open_load import notes_at, texts

MS, MB = 1_000_000, 1_000_000
DASH = "–"


def ran(book: Book, endpoint: str, batch: int, before: int, after: int, **stated: object) -> None:
    """One run with both readings, in MB."""
    tag = book.add(endpoint, batch, 1, {"w0": [10 * MS * batch] * 20})
    server = endpoint.partition("-")[0]
    book.memory(tag, "before", server, before * MB, **stated)
    book.memory(tag, "after", server, after * MB, **stated)


def three(study: str = "step6a") -> Book:
    """Three backends; onnx was sent its largest batch first, pytorch its smallest."""
    book = Book(study=study)
    for name in ("pytorch-http", "onnx-http", "openvino-http"):
        book.endpoint(name, "127.0.0.1:8010")
    ran(book, "onnx-http", 32, 684, 816)
    ran(book, "pytorch-http", 1, 799, 802, processes=2)
    ran(book, "onnx-http", 1, 830, 820)
    ran(book, "pytorch-http", 32, 802, 912, processes=2)
    ran(book, "openvino-http", 1, 2_820, 2_830, how="rss")
    return book


def studied(book: Book, folder: Path) -> Study:
    return load_study(book.write(folder))


def test_each_server_has_what_it_held_first_after_both_ends_and_at_most(tmp_path: Path) -> None:
    table = memory_table(studied(three("step7"), tmp_path))
    assert table.heads == (
        *("server", "processes", "before its first run"),
        *("after batch 1", "after batch 32", "most", "on GPU"),
    )
    assert texts(table) == [
        ["pytorch", "2", "799", "802", "912", "912", DASH],
        ["onnx", "4", "684", "820", "816", "830", DASH],
        ["openvino", "4", "2,820", "2,830", DASH, "2,830", DASH],
    ]


def test_what_a_larger_batch_left_behind_and_what_cannot_be_divided_is_said(tmp_path: Path) -> None:
    table = memory_table(studied(three(), tmp_path))
    assert notes_at(table, 0, 3) == []
    assert notes_at(table, 1, 3) == [AFTER_LARGER]
    assert notes_at(table, 1, 4) == []
    assert RSS in notes_at(table, 2, 0)


def test_published_gpu_memory_stands_below_with_its_source_and_in_no_other_column(tmp_path: Path) -> None:
    table = memory_table(studied(three(), tmp_path))
    assert [row[0] for row in texts(table)[3:]] == [
        f"published step6a-a100: {backend}" for backend in ("pytorch", "onnx", "trt")
    ]
    assert texts(table)[3][1:] == [*[DASH] * 5, "3,300"]
    (note,) = notes_at(table, 3, 6)
    assert note.startswith("published: Step 6A results on an A100 SXM4 80 GB, 2026-02-15")
    assert "no measure of a host's memory" in note


def test_gpu_memory_is_the_servers_own_where_the_driver_tells_else_all_of_it(tmp_path: Path) -> None:
    book = Book()
    ran(book, "onnx-http", 1, 600, 700, gpu_memory_bytes=900 * MB)
    ran(book, "pytorch-http", 1, 600, 700)
    for record in list(book.records):
        if record["kind"] == "run" and record["event"] == "start":
            tag = {"cell": record["cell"], "repeat": record["repeat"]}
            gpu = {"util_pct": 50.0, "memory_bytes": 3_300_000_000, "power_w": 70.0}
            book.records.append(phase_line(tag, "measure", "2026-11-21T11:00:00Z"))
            book.records.append(sample_line(tag, FIRST_SECOND, gpus=[gpu]))
    table = memory_table(studied(book, tmp_path))
    assert [(row[0], row[-1]) for row in texts(table)] == [("onnx", "900"), ("pytorch", "3,300")]
    assert [notes_at(table, row, 5) for row in (0, 1)] == [[OWN_OF_GPU], [ALL_OF_GPU]]


def test_run_by_run_it_is_told_what_the_memory_is(tmp_path: Path) -> None:
    book = Book()
    parts = {"anonymous_bytes": 500 * MB, "file_bytes": 90 * MB, "shared_bytes": 10 * MB}
    ran(book, "onnx-http", 4, 550, 600, **parts)
    book.memory(book.add("onnx-http", 1, 1, {"w0": [MS] * 20}, status="failed"), "before", "onnx", 600 * MB)
    assert texts(memory_by_run(studied(book, tmp_path))) == [
        ["onnx-http/b4/c1", "onnx", "550", "600", "500", "90.0", "10.0", DASH, "4"],
        ["onnx-http/b1/c1", "onnx", "600", *[DASH] * 6],
    ]


def test_a_study_of_servers_by_url_has_no_memory_to_show(tmp_path: Path) -> None:
    book = Book(study="step6a")
    book.add("onnx-http", 1, 1, {"w0": [MS] * 20})
    study = studied(book, tmp_path)
    assert (memory_table(study).rows, memory_by_run(study).rows) == ((), ())
    assert study.runs[0].memory is None
    assert "Memory" not in [section.heading for section in build_page(study, "x").sections]


def test_study_json_has_both_readings(tmp_path: Path) -> None:
    study = studied(three(), tmp_path)
    told = json.loads(render_json(study, build_page(study, "x"), ()))["runs"][0]["memory"]
    assert (told["server"], told["before"]["resident_bytes"]) == ("onnx", 684 * MB)
    assert (told["after"]["resident_bytes"], told["after"]["how"]) == (816 * MB, "pss")


def test_the_finding_names_who_is_ahead_by_batch_and_what_each_holds(tmp_path: Path) -> None:
    said = backends_finding(studied(three(), tmp_path))
    assert said.startswith(
        "Highest images per second seen, which is no ranking, with one user: pytorch-http 100 at batch 1; "
    )
    assert said.endswith(
        "Most resident memory read, with all a server's processes: onnx 0.830 GB, pytorch 0.912 GB, "
        "openvino 2.83 GB."
    )
    assert backends_finding(studied(three("step7"), tmp_path / "other")) == ""
