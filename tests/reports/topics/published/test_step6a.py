"""Three backends beside the published ones: whose figure is whose, timeouts, and no ratio between them."""

from pathlib import Path

from reports.cells_csv.rows import read_published
from reports.study.study import Study, load_study
from reports.topics.published.step6a import backends_finding, batches_beside, single_images_beside
from tests.reports.builder import Book
from tests.reports.lines import triton
from tests.reports.open_load import notes_at, texts

MS = 1_000_000
DASH = "–"
A100 = read_published("step6a-a100")
SINGLE = "published: Step 6A results on an A100 SXM4 80 GB, 2026-02-15, single images: 30 iterations, one run"
TIMEOUT = "published: Step 6A results on an A100 SXM4 80 GB, 2026-02-15, batches: timeout, one run"
SPEEDS_MS = {"pytorch-http": 40, "onnx-http": 50, "openvino-http": 20}


def a_study(folder: Path, name: str = "step6a", repeats: int = 1, requests: int = 40) -> Study:
    """Three backends at batches 1 and 8, a tenth slower with each repeat; Triton states compute and queue."""
    book = Book(study=name)
    for endpoint in SPEEDS_MS:
        book.endpoint(endpoint, "127.0.0.1:8010")
    for repeat in range(1, repeats + 1):
        for endpoint, each_ms in SPEEDS_MS.items():
            for batch in (1, 8):
                values = [round(each_ms * batch * MS * (0.9 + 0.1 * repeat))] * requests
                told = {"counters": triton(requests, batch, 15 * MS)} if "pytorch" not in endpoint else {}
                book.add(endpoint, batch, 1, {"w0": values}, repeat=repeat, **told)
    return load_study(book.write(folder))


def test_the_published_figures_have_percentiles_parts_and_timeouts() -> None:
    onnx = next(it for it in A100 if it.endpoint == "onnx-http")
    told = {"latency_mean_ms": 182.9, "latency_p95_ms": 199.4, "latency_p99_ms": 210.5}
    told |= {"server_compute_ms": 4.4, "server_ms": 15.1, "gpu_memory_bytes": 3.3e9}
    assert told.items() <= onnx.numbers.items()
    assert [(it.endpoint, it.batch) for it in A100 if "failures" in it.codes] == [
        ("trt-http", batch) for batch in (8, 16, 32)
    ]


def test_single_images_stand_beside_both_published_studies(tmp_path: Path) -> None:
    table = single_images_beside(a_study(tmp_path))
    rows = texts(table)
    assert [row[:2] for row in rows] == [
        [endpoint, whose]
        for ours, theirs in (
            ("pytorch-http", "pytorch-http"), ("onnx-http", "onnx-http"), ("openvino-http", "trt-http"),
        )
        for endpoint, whose in (
            (ours, "ours"), (theirs, "published step6a-a100"), (theirs, "published step6a-rtx4080"),
        )
    ]  # fmt: skip
    assert rows[3][2:] == ["50.0", "50.0", DASH, DASH, "15.0", rows[3][7]]
    assert rows[4][2:] == ["182.9", "180.2", "199.4", "210.5", "4.4", "15.1"]
    assert rows[5][2:] == ["337", DASH, DASH, DASH, "5.7", DASH]
    assert rows[7][2:] == ["212.5", "200.3", "324.9", "350.2", "29.1", "39.7"]
    assert notes_at(table, 4, 2) == [SINGLE]


def test_a_percentile_of_few_requests_is_marked_or_left_out_and_a_median_is_not(tmp_path: Path) -> None:
    few = single_images_beside(a_study(tmp_path / "few"))
    assert notes_at(few, 0, 3) == []
    assert notes_at(few, 0, 4) == ["p95 takes 100 results"]
    assert notes_at(few, 0, 5) == ["p99 takes 500 results"]
    more = single_images_beside(a_study(tmp_path / "more", requests=150))
    assert (notes_at(more, 0, 4), texts(more)[0][4]) == ([], "40.0*")
    assert notes_at(more, 0, 5) == ["p99 takes 500 results"]


def test_images_per_second_by_batch_show_timeouts_as_such(tmp_path: Path) -> None:
    table = batches_beside(a_study(tmp_path))
    assert table.heads == ("endpoint", "whose", *(f"batch {batch}" for batch in (1, 4, 8, 16, 32)))
    rows = texts(table)
    assert rows[0][2:] == ["25.0", DASH, "25.0", DASH, DASH]
    assert rows[1][2:] == ["17.5", "29.8", "39.7", "52", "64.3"]
    assert rows[7] == ["trt-http", "published step6a-a100", "5", "10.2", *["timeout"] * 3]
    assert notes_at(table, 7, 4) == [TIMEOUT]
    assert rows[8][2:] == [DASH, DASH, DASH, DASH, "18.6"]


def test_there_is_no_ratio_and_the_caption_says_why(tmp_path: Path) -> None:
    study = a_study(tmp_path)
    for table in (single_images_beside(study), batches_beside(study)):
        assert "×" not in "".join(text for row in texts(table) for text in row)
        assert "no ratio of the two would mean anything" in table.caption


def test_another_study_has_no_such_tables(tmp_path: Path) -> None:
    study = a_study(tmp_path, "step7")
    assert (single_images_beside(study).rows, batches_beside(study).rows) == ((), ())


def test_with_repeats_who_is_ahead_is_named_and_who_cannot_be_told_apart(tmp_path: Path) -> None:
    said = backends_finding(a_study(tmp_path, repeats=3))
    assert said == (
        "Most images per second with one user: openvino-http 46 at batch 1; openvino-http 46 at batch 8."
    )
    once = backends_finding(a_study(tmp_path / "once"))
    assert once == (
        "Highest images per second seen, which is no ranking, with one user: "
        "openvino-http 50.0 at batch 1; openvino-http 50.0 at batch 8."
    )


def test_close_backends_are_not_told_apart(tmp_path: Path) -> None:
    book = Book(study="step6a")
    for repeat, (onnx_ms, openvino_ms) in enumerate(((20, 21), (24, 23), (22, 20)), 1):
        book.add("onnx-http", 1, 1, {"w0": [onnx_ms * MS] * 40}, repeat=repeat)
        book.add("openvino-http", 1, 1, {"w0": [openvino_ms * MS] * 40}, repeat=repeat)
    said = backends_finding(load_study(book.write(tmp_path)))
    assert said.endswith(": openvino-http 47 at batch 1 (not significantly different from onnx-http).")
