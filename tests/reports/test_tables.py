from pathlib import Path

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
from tests.reports.open_load import texts

MS = 1_000_000


def tables(study: Study) -> dict[str, Table]:
    return {table.title: table for table in matrix_tables(study)}


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
    assert texts(ratio) == [["onnx", "1", "0.63×"]]
    assert ratio.notes == (FEW,)
    unconfirmed = "unconfirmed: 2 repeats in common, 3 are needed"
    assert row(study, "Best").startswith(f"onnx-http ({unconfirmed}): 100 images/s ")
    assert "Next: onnx-grpc 0.63× of its images/s." in row(study, "Best")


def test_where_every_repeat_is_tainted_all_count_and_are_marked(tmp_path: Path) -> None:
    study = with_tainted(tmp_path, (10, 25), tainted=(1, 2))
    throughput = tables(study)["Serial throughput"]
    assert texts(throughput) == [["onnx-grpc", "63 (0.19–21,000)"], ["onnx-http", "100 (99.8–100)"]]
    assert [row[1].marks for row in throughput.rows] == [(1,), ()]
    assert throughput.notes == ("invalidated: client-bound",)
    assert row(study, "HTTP or gRPC") == ""
    assert "onnx-grpc" not in row(study, "Best")


def test_rows_follow_the_header_whatever_the_run_order(tmp_path: Path) -> None:
    book, shuffled = example(), example()
    shuffled.header["plan"].reverse()
    planned, other = (load_study(it.write(tmp_path / str(at))) for at, it in enumerate((book, shuffled)))
    assert {title: texts(table) for title, table in tables(other).items()} == {
        title: texts(table) for title, table in tables(planned).items()
    }


def test_three_significant_digits() -> None:
    values = (0, 5266.9, 0.041364, 9.996, 48.5, 1, 999.6)
    assert [*map(digits, values)] == ["0", "5,270", "0.0414", "10.0", "48.5", "1.00", "1,000"]


def test_foreign_text_is_made_harmless() -> None:
    assert ms(None) == "–"
    assert plain("a\nb\x1b[2J\u202ec") == r"a b\x1b[2J\u202ec"
    assert escaped("@octocat, a@b, @ c, #12") == r"@&#8203;octocat, a@&#8203;b, @ c, \#&#8203;12"
    assert escaped("a|b\n<b>&`*_[x](y)") == r"a\|b &lt;b&gt;&amp;\`\*\_\[x\](y)"
