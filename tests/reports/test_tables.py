from pathlib import Path

import pytest

from reports.findings import findings
from reports.format import digits, ms, plain
from reports.markdown import escaped
from reports.seed_tables import seed_tables
from reports.study import Study, load_study
from reports.tables import Table
from tests.reports.builder import Book, triton
from tests.reports.example import example

MS = 1_000_000


def tables(study: Study) -> dict[str, Table]:
    return {table.title: table for table in seed_tables(study)}


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


def test_cells_are_medians_over_repeats_and_say_so(tmp_path: Path) -> None:
    found = tables(two_protocols(tmp_path))
    assert texts(found["Serial latency, p50"]) == [["onnx-grpc", "10.0", "40.0"], ["onnx-http", "15.0", "–"]]
    assert texts(found["Serial throughput"]) == [["onnx-grpc", "100", "100"], ["onnx-http", "66.7", "–"]]
    assert "Median of up to 3 repeats." in found["Serial latency, p50"].caption
    assert texts(found["Server compute"]) == [["onnx-grpc", "5.00", "20.0"], ["onnx-http", "5.00", "–"]]
    assert "Concurrent throughput, batch 1" not in found


def test_the_ratio_is_grpc_over_http(tmp_path: Path) -> None:
    table = tables(two_protocols(tmp_path))["gRPC over HTTP"]
    assert texts(table) == [["onnx", "1.50×", "–"]]
    assert table.notes == ("not in this study's plan",)


def test_rows_follow_the_header_whatever_the_run_order(study: Study, tmp_path: Path) -> None:
    book = example()
    book.header["plan"].reverse()
    shuffled = tables(load_study(book.write(tmp_path)))
    assert {title: texts(table) for title, table in shuffled.items()} == {
        title: texts(table) for title, table in tables(study).items()
    }


def test_findings_are_computed_and_hedged(tmp_path: Path) -> None:
    assert findings(two_protocols(tmp_path)) == (
        "Most images per second: with one user onnx-grpc, 100 at batch 1 "
        "(as few as 1 run and 10 results per cell: an indication, not a ranking).",
        "gRPC over HTTP, images per second with one user: 1.50 on onnx; with fewer than 3 runs per cell, "
        "small differences may be chance.",
    )


def test_a_dash_says_why(study: Study) -> None:
    table = tables(study)["Concurrent throughput, batch 1"]
    by_endpoint = {row[0].text: row[2] for row in table.rows}
    assert [table.notes[mark - 1] for mark in by_endpoint["openvino-grpc"].marks] == ["not run"]
    assert [table.notes[mark - 1][:11] for mark in by_endpoint["onnx-grpc"].marks] == [
        "worker-lost",
        "failures: L",
    ]
    failed = next(row for row in tables(study)["Serial throughput"].rows if row[0].text == "openvino-http")[3]
    assert failed.text == "–"
    assert "no request succeeded (failed)" in tables(study)["Serial throughput"].notes


def test_a_tainted_cell_wins_no_finding(study: Study) -> None:
    assert not any("onnx-grpc" in sentence for sentence in findings(study)[:1])


def test_where_every_cell_is_tainted_none_is_called_the_fastest(tmp_path: Path) -> None:
    book = Book()
    tag = book.add("onnx-http", 1, 1, {"w0": [MS] * 10}, counters=triton(10, 1, MS))
    book.caveat(tag, "client-bound", "worker w0 at 98 % CPU")
    assert findings(load_study(book.write(tmp_path))) == (
        "No cell with closed load is free of disqualifying caveats, so none is called the fastest.",
    )


def test_stand_ins_and_random_weights_are_named_at_every_table(study: Study) -> None:
    for table in seed_tables(study):
        rows = [row[0] for row in table.rows if row[0].text.startswith("openvino")]
        assert all(table.notes[row.marks[0] - 1].startswith("OpenVINO: a stand-in") for row in rows)
        assert "Random weights: timings are real, embeddings mean nothing." in table.caption


def test_bars_are_shares_of_the_greatest(study: Study) -> None:
    cells = [
        cell for row in tables(study)["Serial throughput"].rows for cell in row if cell.value is not None
    ]
    best = max(cell.value for cell in cells if cell.value is not None)
    assert all(cell.share == pytest.approx((cell.value or 0) / best) for cell in cells)


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
    assert escaped("a|b\n<b>&`*_[x](y)") == r"a\|b &lt;b&gt;&amp;\`\*\_\[x\](y)"
