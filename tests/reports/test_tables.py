from pathlib import Path

import pytest

from reports.format import digits, ms, plain
from reports.page.table import Table
from reports.render.markdown import escaped
from reports.stats.repeats import scarcity
from reports.study.study import Study, load_study
from reports.topics.payloads.matrix import matrix_tables
from reports.topics.payloads.payloads import FEW, protocols_map
from reports.topics.report import build_page
from tests.reports.answers import row
from tests.reports.builder import Book
from tests.reports.example import example
from tests.reports.lines import triton

MS = 1_000_000


def tables(study: Study) -> dict[str, Table]:
    return {table.title: table for table in matrix_tables(study)}


def texts(table: Table) -> list[list[str]]:
    return [[cell.text for cell in row] for row in table.rows]


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    return load_study(example().write(tmp_path_factory.mktemp("example")))


def two_protocols(folder: Path) -> Study:
    """gRPC 1.5 times as fast at batch 1 in the median of three repeats; no HTTP at batch 4."""
    book = Book()
    for repeat, grpc_ms in enumerate((10, 2, 30), 1):
        book.add("onnx-http", 1, 1, {"w0": [15 * MS] * 10}, repeat=repeat, counters=triton(10, 1, 5 * MS))
        book.add(
            "onnx-grpc", 1, 1, {"w0": [grpc_ms * MS] * 10}, repeat=repeat, counters=triton(10, 1, 5 * MS)
        )
    book.add("onnx-grpc", 4, 1, {"w0": [40 * MS] * 10}, counters=triton(10, 4, 20 * MS))
    book.footer()
    return load_study(book.write(folder))


def test_cells_are_of_all_repeats_and_say_so(tmp_path: Path) -> None:
    found = tables(two_protocols(tmp_path))
    assert texts(found["Serial latency, p50"]) == [
        ["onnx-grpc", "10 (0.3–290)", "–"],
        ["onnx-http", "15.0 (15.0–15.0)", "–"],
    ]
    assert found["Serial latency, p50"].notes == ("p50 takes 20 results", "not in this study's plan")
    assert texts(found["Serial throughput"]) == [
        ["onnx-grpc", "120 (4.0–3,500)", "100"],
        ["onnx-http", "66.7 (66.5–66.8)", "–"],
    ]
    assert found["Serial latency, p50"].caption == "Milliseconds per request, one user; lower is better."
    assert texts(found["Server compute"]) == [["onnx-grpc", "5.0", "20.0"], ["onnx-http", "5.0", "–"]]
    assert "Concurrent throughput, batch 1" not in found
    first, *others = build_page(two_protocols(tmp_path), "x").sections
    said = first.sentences[0]
    assert said.startswith(
        "Percentiles are of all requests of up to 3 repeats; other figures with a 95 % CI in brackets are "
    )
    assert [section.heading for section in others if said in section.sentences] == []


def test_the_ratio_is_grpc_over_http(tmp_path: Path) -> None:
    table = protocols_map(two_protocols(tmp_path))
    assert table.heads == ("backend", "users", "batch 1", "batch 4")
    # Geometric means: 100, 500 and 33.3 images/s over 66.7.
    assert texts(table) == [["onnx", "1", "1.8× (0.060–52)", "–"]]
    assert table.notes == ("not in this study's plan",)


def both_protocols(folder: Path, repeats: int) -> Study:
    """gRPC at 0.800 of HTTP for one image and 1.25 of it for four, with enough results."""
    book = Book()
    for repeat in range(1, repeats + 1):
        for batch, grpc_ms in ((1, 12.5), (4, 8)):
            for name, each_ms in (("onnx-http", 10), ("onnx-grpc", grpc_ms)):
                book.add(name, batch, 1, {"w0": [round(each_ms * MS)] * 200}, repeat=repeat)
    return load_study(book.write(folder))


@pytest.mark.parametrize(
    ("repeats", "ratios", "note"),
    [
        (1, ("0.800×", "1.25×"), FEW),
        (2, ("0.800×", "1.25×"), FEW),
        (3, ("▼ 0.800× (0.798–0.802)", "▲ 1.25× (±0.200 %)"), ""),
    ],
)
def test_a_ratio_of_fewer_than_three_pairs_has_no_interval_and_says_so(
    tmp_path: Path, repeats: int, ratios: tuple[str, str], note: str
) -> None:
    table = protocols_map(both_protocols(tmp_path, repeats))
    assert texts(table) == [["onnx", "1", *ratios]]
    assert table.notes == ((note,) if note else ())
    assert [cell.marks for cell in table.rows[0][2:]] == [(1,) if note else ()] * 2


def test_where_some_cells_have_one_run_only_those_are_inconclusive() -> None:
    assert scarcity([5, 1]) == "unconfirmed where a cell has one run; rerun with --repeats 5 to confirm"
    assert scarcity([5, 3]) == ""


def with_tainted(folder: Path, each_ms: tuple[int, ...], tainted: tuple[int, ...]) -> Study:
    """gRPC repeats of some durations, some of them client-bound, beside HTTP repeats of 10 ms."""
    book = Book()
    for repeat, duration_ms in enumerate(each_ms, 1):
        tag = book.add("onnx-grpc", 1, 1, {"w0": [duration_ms * MS] * 200}, repeat=repeat)
        if repeat in tainted:
            book.caveat(tag, "client-bound", "worker w0 at 98 % CPU")
        book.add("onnx-http", 1, 1, {"w0": [10 * MS] * 200}, repeat=repeat)
    return load_study(book.write(folder))


def test_tainted_repeats_are_left_out_where_clean_ones_exist(tmp_path: Path) -> None:
    study = with_tainted(tmp_path, (10, 25, 1_000, 1_000), tainted=(3, 4))
    throughput, ratio = tables(study)["Serial throughput"], protocols_map(study)
    assert texts(throughput) == [["onnx-grpc", "63 (0.19–21,000)"], ["onnx-http", "100 (99.8–100)"]]
    assert throughput.notes == ()
    assert texts(ratio) == [["onnx", "1", "0.632×"]]
    assert ratio.notes == (FEW,)
    unconfirmed = "unconfirmed: 2 repeats in common, 3 are needed"
    assert row(study, "Best").startswith(f"onnx-http ({unconfirmed}): 100 images/s ")
    assert "Next: onnx-grpc 0.632× of its images/s." in row(study, "Best")


def test_where_every_repeat_is_tainted_all_count_and_are_marked(tmp_path: Path) -> None:
    study = with_tainted(tmp_path, (10, 25), tainted=(1, 2))
    throughput = tables(study)["Serial throughput"]
    assert texts(throughput) == [["onnx-grpc", "63 (0.19–21,000)"], ["onnx-http", "100 (99.8–100)"]]
    assert [row[1].marks for row in throughput.rows] == [(1,), ()]
    assert throughput.notes == ("invalidated: client-bound",)
    assert row(study, "HTTP or gRPC") == ""
    assert "onnx-grpc" not in row(study, "Best")


def test_rows_follow_the_header_whatever_the_run_order(study: Study, tmp_path: Path) -> None:
    book = example()
    book.header["plan"].reverse()
    shuffled = tables(load_study(book.write(tmp_path)))
    assert {title: texts(table) for title, table in shuffled.items()} == {
        title: texts(table) for title, table in tables(study).items()
    }


def test_a_dash_says_why(study: Study) -> None:
    table = tables(study)["Concurrent throughput, batch 1"]
    by_endpoint = {row[0].text: row[2] for row in table.rows}
    assert [table.notes[mark - 1] for mark in by_endpoint["openvino-grpc"].marks] == ["not run"]
    assert [table.notes[mark - 1] for mark in by_endpoint["onnx-grpc"].marks] == [
        "invalidated: worker-lost",
        "invalidated: failures",
        "6 of 1,206 requests failed (0.498 %)",
    ]
    failed = next(row for row in tables(study)["Serial throughput"].rows if row[0].text == "openvino-http")[3]
    assert failed.text == "–"
    assert "no request succeeded (failed)" in tables(study)["Serial throughput"].notes


def test_stand_ins_and_random_weights_are_said_once_above_the_page_and_at_no_table(study: Study) -> None:
    page = build_page(study, "x")
    assert [sentence.partition(":")[0] for sentence in page.banner] == ["OpenVINO", "Floor", "Random weights"]
    assert page.banner[2] == "Random weights: timings are real, embeddings mean nothing."
    tables = [table for section in page.sections for table in section.tables]
    said = [text for table in tables for text in (table.caption, *table.notes)]
    assert len(tables) > 10
    assert [text for text in said if "a stand-in" in text or "Random weights" in text] == []


def best_of(table: Table) -> list[list[str]]:
    """The names of the rows whose cell is marked as the best, column by column."""
    return [[cells[0].text for cells in table.rows if cells[at].best] for at in range(1, len(table.heads))]


def test_the_best_of_each_column_is_marked_the_most_images_and_the_least_time(study: Study) -> None:
    rates, times = tables(study)["Serial throughput"], tables(study)["Serial latency, p50"]
    assert best_of(times) == [["pytorch-http"], ["pytorch-http"], ["openvino-grpc"]]
    # to as many digits as their repeats carry two rates read alike, and are not
    assert best_of(rates) == [["pytorch-http"], ["pytorch-http"], ["openvino-grpc"]]
    assert [texts(times)[at][0:2] for at in range(2)] == [
        ["pytorch-http", "12 (11–13)"],
        ["onnx-http", "20 (18–22)"],
    ]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (5266.9, "5,270"),
        (0.041364, "0.0414"),
        (9.996, "10.0"),
        (48.5, "48.5"),
        (1, "1.00"),
        (999.6, "1,000"),
    ],
)
def test_three_significant_digits(value: float, text: str) -> None:
    assert digits(value) == text


def test_foreign_text_is_made_harmless() -> None:
    assert ms(None) == "–"
    assert plain("a\nb\x1b[2J\u202ec") == "a b [2J c"
    assert escaped("@octocat, a@b, @ c, #12") == r"@&#8203;octocat, a@&#8203;b, @ c, \#&#8203;12"
    assert escaped("a|b\n<b>&`*_[x](y)") == r"a\|b &lt;b&gt;&amp;\`\*\_\[x\](y)"
