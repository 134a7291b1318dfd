"""JSON against binary: encoding, size and time, beside what was published of both."""

from pathlib import Path

import pytest

from reports.page.table import Table
from reports.study.study import Study, load_study
from reports.topics.payloads.serialisation import (
    AWAITED,
    ENCODING,
    FAR,
    FEW,
    ONE_RUN,
    PREPARED,
    pairs,
    serialisation_finding,
    serialisation_tables,
)
from tests.reports.builder import Book
from tests.reports.example import MS
from tests.reports.lines import health_line
from tests.reports.open_load import notes_at, texts
from tests.reports.strangers import a_book, stranger

US = 1_000
NUMBERS = 150_528


def add(book: Book, name: str, batch: int, encode_ns: int, each: int, **more: object) -> None:
    """One serial run of 40 requests, 100 ms each, so many bytes each."""
    axes = {"client": "library", **more.pop("axes", {})}  # type: ignore[dict-item]
    tag = book.add(name, batch, 1, {"w0": [100 * MS] * 40}, axes=axes, **more)  # type: ignore[arg-type]
    book.phases(tag, encode=encode_ns)
    book.request_bytes(tag, each)


def both(repeats: int = 1) -> Book:
    """Batch 32: JSON 1,200 ms and 20 bytes a number; binary 2 ms and its 4 bytes."""
    book = Book()
    for repeat in range(1, repeats + 1):
        add(book, "onnx-http", 32, 2 * MS + repeat * 10 * US, 32 * 4 * NUMBERS, repeat=repeat)
        add(book, "onnx-json-http", 32, 1_200 * MS, 32 * 20 * NUMBERS, repeat=repeat)
    return book


def written(book: Book, path: Path) -> Study:
    return load_study(book.write(path))


def tables(study: Study) -> dict[str, Table]:
    return {table.title: table for table in serialisation_tables(study)}


def test_one_run_gives_two_digits_and_says_so(tmp_path: Path) -> None:
    table = tables(written(both(), tmp_path))[ENCODING.title]
    assert texts(table) == [["onnx-http", "32", "1,200", "2.01", "597×", "1,842.2", "1.74", "1,060×"]]
    assert notes_at(table, 0, 4) == [ONE_RUN]
    assert notes_at(table, 0, 5)[0].startswith("published: Step 5A report, 2026-02-14, client side")


def test_repeats_give_an_interval(tmp_path: Path) -> None:
    table = tables(written(both(3), tmp_path))[ENCODING.title]
    ratio = table.rows[0][4]
    assert ratio.text.startswith("59")
    assert "×" in ratio.text
    assert "(" in ratio.text
    assert not ratio.marks
    assert table.rows[0][3].text == "2.02 (2.00–2.04)"


def test_a_published_ratio_is_no_sharper_than_its_decimals(tmp_path: Path) -> None:
    """52.5 over 0.01 ms: that may be 0.005 or 0.015."""
    book = Book()
    for name, encode_ns, each in (("onnx-http", 80 * US, 4), ("onnx-json-http", 50 * MS, 20)):
        add(book, name, 1, encode_ns, each * NUMBERS)
    found = tables(written(book, tmp_path))
    assert texts(found[ENCODING.title])[0][5:] == ["52.5", "0.01", "3,500–10,500×"]
    assert texts(found["Payload: JSON against binary"]) == [
        ["onnx-http", "1", "2,940", "588", "5.00×", "20.0", "2,980", "588", "5.07×"]
    ]


def test_end_to_end_names_what_was_published_of_a_remote_gpu(tmp_path: Path) -> None:
    found = tables(written(both(), tmp_path))
    table = found["End to end: JSON against binary"]
    assert texts(table) == [["onnx-http", "32", "100", "100", "1.00×", "9,649", "5,614", "1.72×"]]
    assert notes_at(table, 0, 7) == [FAR]
    local = found["Binary tensors beside a Triton on a CPU"]
    assert texts(local) == [["onnx-http", "32", "100", "100", "–", "1,492"]]


def test_requests_made_beforehand_and_a_side_alone_have_no_encoding(tmp_path: Path) -> None:
    book = both()
    add(book, "onnx-http", 4, 1 * MS, 4)
    add(book, "onnx-http", 8, 1, 4, axes={"client": "prepared"})
    add(book, "onnx-json-http", 8, 1, 20, axes={"client": "prepared"})
    table = tables(written(book, tmp_path))[ENCODING.title]
    assert [row[:5] for row in texts(table)[:2]] == [
        ["onnx-http", "4", "–", "1.00", "–"],
        ["onnx-http", "8", "–", "–", "–"],
    ]
    assert [notes_at(table, row, 2) for row in range(2)] == [["not in this study's plan"], [PREPARED]]


def test_only_json_and_binary_of_one_way_are_paired(tmp_path: Path) -> None:
    book = both()
    add(book, "onnx-http", 32, 1 * MS, 4, axes={"variant": "delay-5ms"})
    add(book, "onnx-grpc", 32, 1 * MS, 4)
    add(book, "pytorch-http", 32, 1 * MS, 4)
    (pair,) = pairs(written(book, tmp_path))
    assert [run.endpoint for runs in pair.sides for run in runs] == ["onnx-json-http", "onnx-http"]
    alone = Book()
    add(alone, "onnx-http", 1, 1 * MS, 4)
    study = written(alone, tmp_path / "alone")
    assert list(serialisation_tables(study)) == []
    assert serialisation_finding(study) == ""


def test_the_finding_is_of_the_largest_batch_that_both_were_sent(tmp_path: Path) -> None:
    book = both()
    add(book, "onnx-http", 64, 4 * MS, 64 * 4 * NUMBERS)
    add(book, "onnx-http", 1, 80 * US, 4)
    add(book, "onnx-json-http", 1, 40 * MS, 20)
    assert serialisation_finding(written(book, tmp_path)) == (
        "Encoding JSON takes 1,200 ms at batch 32 where binary takes 2.01 ms: 597×, in one run; "
        "its payload is 5.00× as large."
    )


def test_the_finding_says_of_how_little_its_ratio_is_and_what_disqualifies_it(tmp_path: Path) -> None:
    book = Book()
    for name, encode_ns, each in (("onnx-http", 2 * MS, 4), ("onnx-json-http", 1_200 * MS, 20)):
        tag = book.add(name, 1, 1, {"w0": [100 * MS] * 9}, axes={"client": "library"})
        book.phases(tag, encode=encode_ns)
        book.request_bytes(tag, each * NUMBERS)
        if each == 20:
            book.caveat(tag, "worker-lost", "w1")
    said = serialisation_finding(written(book, tmp_path))
    assert "600×, in one run of fewer than 10 requests (worker-lost: " in said


def test_a_slow_client_spoils_what_is_not_its_own(tmp_path: Path) -> None:
    book = both()
    (tag,) = [{"cell": e["cell"], "repeat": 1} for e in book.header["plan"] if e["payload"] == "json"]
    book.caveat(tag, "client-bound", "its loop lagged")
    found = tables(written(book, tmp_path))
    assert notes_at(found[ENCODING.title], 0, 2) == []
    assert notes_at(found["Payload: JSON against binary"], 0, 2) == []
    assert notes_at(found["End to end: JSON against binary"], 0, 2)[0].startswith("client-bound: ")


def test_a_mean_of_few_requests_says_so(tmp_path: Path) -> None:
    book = both()
    axes = {"client": "library"}
    for name, each in (("onnx-http", 4), ("onnx-json-http", 20)):
        tag = book.add(name, 1, 1, {"w0": [100 * MS] * 4}, axes=axes)
        book.phases(tag, encode=each * MS)
        book.request_bytes(tag, each)
    found = tables(written(book, tmp_path))
    assert notes_at(found[ENCODING.title], 0, 2) == [FEW]
    assert notes_at(found["Payload: JSON against binary"], 0, 2) == []


def test_a_client_that_waited_for_a_core_says_so(tmp_path: Path) -> None:
    book = both()
    (tag,) = [{"cell": e["cell"], "repeat": 1} for e in book.header["plan"] if e["payload"] == "json"]
    book.records.append(health_line(tag, "w0", loop_ran_ns=500_000_000, cpu_wait_ns=283_000_000))
    found = tables(written(book, tmp_path))
    assert notes_at(found[ENCODING.title], 0, 2) == [AWAITED]
    assert notes_at(found[ENCODING.title], 0, 3) == []


def strangers(inputs: list[str], **json: str) -> Book:
    """A user's own model by binary tensors and by JSON, one run each."""
    book = a_book()
    for name, planned, each in (("plain", {}, 4), ("wordy", {"payload": "json"} | json, 20)):
        told = stranger(book, name, {"inputs": inputs}, **{"payload": "fp32"} | planned)
        add(book, name, 2, 2 * MS, 2 * each * 1_000, axes=told)
    return book


def test_of_another_model_nothing_published_stands_beside(tmp_path: Path) -> None:
    found = tables(written(strangers(["x FP32 [10, 10, 10] picture"]), tmp_path))
    assert list(found) == [
        *("Encoding: JSON against binary", "Payload: JSON against binary", "End to end: JSON against binary")
    ]
    table = found["Payload: JSON against binary"]
    assert table.heads == ("endpoint", "batch", "JSON KB", "binary KB", "JSON/binary", "bytes/number")
    assert texts(table) == [["plain", "2", "39.1", "7.81", "5.00×", "20.0"]]
    assert "Published" not in found["End to end: JSON against binary"].caption


@pytest.mark.parametrize("inputs", [[], ["x FP32 [-1] random"], ["x UINT8 [-1] jpeg"]])
def test_how_many_numbers_an_image_has_is_not_made_up(inputs: list[str], tmp_path: Path) -> None:
    assert texts(tables(written(strangers(inputs), tmp_path))["Payload: JSON against binary"])[0][-1] == "–"


@pytest.mark.parametrize("other", [{"model": "siglip-2"}, {"server": "gpu:9000"}, {"protocol": "grpc"}])
def test_json_and_binary_are_of_one_model_of_a_server(other: dict[str, str], tmp_path: Path) -> None:
    assert list(pairs(written(strangers([], **other), tmp_path))) == []


def test_of_two_ways_to_send_json_none_is_the_one_to_compare(tmp_path: Path) -> None:
    book = strangers([])
    add(book, "wordier", 2, 2 * MS, 40_000, axes=stranger(book, "wordier", payload="json", codec="own"))
    assert list(pairs(written(book, tmp_path))) == []
