from pathlib import Path

import pytest

from reports.format import digits, ms, plain
from reports.page.table import Table
from reports.render.markdown import escaped
from reports.stats.repeats import scarcity
from reports.study.study import Study, load_study
from reports.topics.payloads.matrix import seed_tables
from reports.topics.report import findings
from tests.reports.builder import Book
from tests.reports.example import example
from tests.reports.lines import triton

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
    assert found["Serial latency, p50"].whole_caption == (
        "Milliseconds per request, one user; lower is better. "
        "Median of up to 3 repeats; disqualified ones count only where there is no other."
    )
    assert texts(found["Server compute"]) == [["onnx-grpc", "5.00", "20.0"], ["onnx-http", "5.00", "–"]]
    assert "Concurrent throughput, batch 1" not in found


def test_the_ratio_is_grpc_over_http(tmp_path: Path) -> None:
    table = tables(two_protocols(tmp_path))["gRPC over HTTP"]
    assert table.heads == ("backend", "batch 1", "batch 4")
    assert texts(table) == [["onnx", "1.50×", "–"]]
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
    ("repeats", "note"),
    [
        (1, "inconclusive: one run per cell; --repeats 5 would tell"),
        (2, "with fewer than 3 runs per cell, small differences may be chance"),
        (3, ""),
    ],
)
def test_a_ratio_says_how_few_runs_it_rests_on(tmp_path: Path, repeats: int, note: str) -> None:
    study = both_protocols(tmp_path, repeats)
    table = tables(study)["gRPC over HTTP"]
    assert texts(table) == [["onnx", "0.800×", "1.25×"]]
    assert table.notes == ((note,) if note else ())
    assert [cell.marks for cell in table.rows[0][1:]] == [(1,) if note else ()] * 2
    low, high = ("", "") if repeats == 1 else (" (0.798–0.802)", " (±0.200 %)")
    ratios = f"onnx 0.800×{low} at batch 1, 1.25×{high} at batch 4"
    said = f"gRPC over HTTP, images per second with one user: {ratios}{'; ' if note else ''}{note}."
    assert findings(study)[1] == said


def test_where_some_cells_have_one_run_only_those_are_inconclusive() -> None:
    assert scarcity([5, 1]) == "inconclusive where a cell has one run; --repeats 5 would tell"
    assert scarcity([5, 3]) == ""


@pytest.mark.parametrize(
    ("repeats", "sentence"),
    [
        (
            1,
            "Highest images per second seen, which is no ranking: with one user onnx-grpc, 500 at batch 4 "
            "(as few as 1 run and 200 results per cell; --repeats 5 would tell).",
        ),
        (
            2,
            "Most images per second: with one user onnx-grpc, 500 at batch 4 "
            "(as few as 2 runs and 200 results per cell: an indication, not a ranking).",
        ),
        (
            3,
            "Most images per second: with one user onnx-grpc, 500 at batch 4 "
            "(as few as 3 runs and 200 results per cell).",
        ),
    ],
)
def test_the_fastest_is_hedged_by_its_runs(tmp_path: Path, repeats: int, sentence: str) -> None:
    assert findings(both_protocols(tmp_path, repeats))[0] == sentence


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
    throughput, ratio = tables(study)["Serial throughput"], tables(study)["gRPC over HTTP"]
    assert texts(throughput) == [["onnx-grpc", "70.0"], ["onnx-http", "100"]]
    assert throughput.notes == ()
    assert texts(ratio) == [["onnx", "0.700×"]]
    assert ratio.notes == ("with fewer than 3 runs per cell, small differences may be chance",)
    assert "(as few as 2 runs and 200 results per cell: an indication" in findings(study)[0]


def test_where_every_repeat_is_tainted_all_count_and_are_marked(tmp_path: Path) -> None:
    study = with_tainted(tmp_path, (10, 25), tainted=(1, 2))
    throughput = tables(study)["Serial throughput"]
    assert texts(throughput) == [["onnx-grpc", "70.0"], ["onnx-http", "100"]]
    assert [row[1].marks for row in throughput.rows] == [(1,), ()]
    assert throughput.notes[0].startswith("client-bound: ")
    assert not any("gRPC over HTTP" in sentence for sentence in findings(study))


def test_rows_follow_the_header_whatever_the_run_order(study: Study, tmp_path: Path) -> None:
    book = example()
    book.header["plan"].reverse()
    shuffled = tables(load_study(book.write(tmp_path)))
    assert {title: texts(table) for title, table in shuffled.items()} == {
        title: texts(table) for title, table in tables(study).items()
    }


def test_findings_are_computed_and_hedged(tmp_path: Path) -> None:
    assert findings(two_protocols(tmp_path)) == (
        "Highest images per second seen, which is no ranking: with one user onnx-grpc, 100 at batch 1, "
        "not told apart from onnx-http at batch 1 (as few as 1 run and 10 results per cell; --repeats 5 "
        "would tell).",
        "gRPC over HTTP, images per second with one user: onnx 1.78× (0.0603–52.4) at batch 1.",
        "What held back 7 runs: offered-load 2, server-compute 1, not known 4.",
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
        "What held back 1 run: client-loop 1. Disqualified: 1 of 1 run (client-bound 1).",
    )


def test_stand_ins_and_random_weights_are_named_at_every_table(study: Study) -> None:
    for table in seed_tables(study):
        rows = [row[0] for row in table.rows if row[0].text.startswith("openvino")]
        assert all(table.notes[row.marks[0] - 1].startswith("OpenVINO: a stand-in") for row in rows)
        assert "Random weights: timings are real, embeddings mean nothing." in table.shared


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
    assert escaped("@octocat, a@b, @ c, #12") == r"@&#8203;octocat, a@&#8203;b, @ c, \#&#8203;12"
    assert escaped("a|b\n<b>&`*_[x](y)") == r"a\|b &lt;b&gt;&amp;\`\*\_\[x\](y)"
