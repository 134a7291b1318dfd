"""Compression and shared memory beside requests without: what is faster, what it saves, what is not shown."""

from pathlib import Path

import pytest

from reports.page.answer import AnswerRow
from reports.study.study import Study, load_study
from reports.topics.payloads.request_forms import (
    COMPRESSION,
    FEW,
    SHARED_MEMORY,
    answer_of,
    forms_table,
    varies_forms,
)
from tests.reports.builder import Book
from tests.reports.open_load import notes_at, texts

MS = 1_000_000
TENSOR = 600_000
NOISE = (0, 1, -1, 2, -2)
Sides = dict[str, tuple[int, int]]
"""By the form's value: the mean latency in ms, and the bytes of a request."""


def study(path: Path, sides: Sides, axis: str = "compression", repeats: int = 5) -> Study:
    return load_study(written(sides, axis, repeats).write(path))


def written(sides: Sides, axis: str = "compression", repeats: int = 5, level: int = 4) -> Book:
    """Cells of one endpoint, their repeats some per cent apart, each side in its own order."""
    book = Book()
    for at, (value, (ms, size)) in enumerate(sides.items()):
        for repeat in range(1, repeats + 1):
            took = round(ms * MS * (1 + NOISE[(repeat * (at + 1)) % 5] / 100))
            told = {axis: value, "variant": value or "none", "client": "prepared"}
            tag = book.add("onnx-grpc", 1, level, {"w0": [took] * 40 * level}, repeat=repeat, axes=told)
            book.request_bytes(tag, size)
    return book


def said(of: Study, shared: bool = False) -> str:
    row = answer_of(SHARED_MEMORY if shared else COMPRESSION)(of)
    assert isinstance(row, AnswerRow)
    return row.said


@pytest.mark.parametrize(
    ("sides", "expected"),
    [
        (
            {"": (10, TENSOR), "deflate": (24, 552_000)},
            "deflate makes onnx-grpc 2.40 times slower (95 % CI 2.33–2.47) and saves 8 % of the bytes:"
            " leave it off on this path.",
        ),
        (
            {"": (10, TENSOR), "gzip": (5, 60_000)},
            "gzip makes onnx-grpc 2.00 times faster (95 % CI 1.94–2.06) and saves 90 % of the bytes: use it"
            " on this path.",
        ),
        (
            {"": (10, TENSOR), "gzip": (10, 552_000)},
            "gzip on onnx-grpc: no difference shown (95 % CI 0.97–1.03), and it saves 8 % of the bytes.",
        ),
        (
            {"": (10, TENSOR), "gzip": (20, TENSOR + 6_000), "deflate": (10, TENSOR)},
            "deflate on onnx-grpc: no difference shown (95 % CI 0.97–1.03); gzip makes onnx-grpc 2.00 times"
            " slower (95 % CI 1.94–2.06) and sends 1 % more bytes: leave it off on this path.",
        ),
    ],
)
def test_what_compression_does(tmp_path: Path, sides: Sides, expected: str) -> None:
    assert said(study(tmp_path, sides)) == expected


def test_shared_memory_is_told_likewise(tmp_path: Path) -> None:
    found = study(tmp_path, {"": (10, TENSOR), "system": (8, 200)}, "shared_memory")
    assert said(found, shared=True) == (
        "shared memory makes onnx-grpc 1.25 times faster (95 % CI 1.21–1.29) and saves over 99 % of the"
        " bytes: use it."
    )
    assert answer_of(COMPRESSION)(found) is None


def test_a_busy_client_is_said_and_other_invalid_runs_say_nothing(tmp_path: Path) -> None:
    sides = {"": (10, TENSOR), "gzip": (24, TENSOR)}
    for code, expected in {
        "client-bound": "gzip makes onnx-grpc 2.40 times slower (95 % CI 2.33–2.47): leave it off on this"
        " path."
        " In some runs the client itself was at its limit.",
        "rate-missed": None,
    }.items():
        book = written(sides)
        for tag in {(one["cell"], one["repeat"]) for one in book.header["plan"]}:
            book.caveat({"cell": tag[0], "repeat": tag[1]}, code, "it was")
        row = answer_of(COMPRESSION)(load_study(book.write(tmp_path / code)))
        assert (row and f"{row.said} {row.detail}") == expected


def test_few_repeats_settle_nothing(tmp_path: Path) -> None:
    found = study(tmp_path, {"": (10, TENSOR), "gzip": (24, TENSOR)}, repeats=2)
    assert said(found) == f"Not settled: {FEW}."
    assert notes_at(forms_table(found), 1, 4) == [FEW]


def test_each_client_is_compared_with_itself(tmp_path: Path) -> None:
    book = Book()
    for client, slower in (("prepared", 10), ("library", 40)):
        for value, ms in (("", 10), ("deflate", slower)):
            for repeat in (1, 2, 3):
                axes = {"compression": value, "client": client, "variant": f"{client}/{value or 'none'}"}
                took = round(ms * MS * (1 + repeat / 1_000))
                tag = book.add("onnx-grpc", 1, 4, {"w0": [took] * 160}, repeat=repeat, axes=axes)
                book.request_bytes(tag, TENSOR)
    assert said(load_study(book.write(tmp_path))) == (
        "deflate on onnx-grpc: no difference shown (95 % CI 0.998–1.002); deflate makes onnx-grpc"
        " (library client) 4.00 times slower (95 % CI 3.99–4.01): leave it off on this path."
    )


def test_the_table_has_each_side_with_its_bytes(tmp_path: Path) -> None:
    table = forms_table(study(tmp_path, {"": (10, TENSOR), "deflate": (20, 300_000)}))
    assert table.heads[4:] == ("× without", "p50 ms", "p95 ms", "KB sent", "KB received", "client CPU ms")
    rows = texts(table)
    assert [row[0] for row in rows] == ["onnx-grpc none", "onnx-grpc deflate"]
    assert [row[7:9] for row in rows] == [["600", "2.05"], ["300", "2.05"]]
    assert (rows[0][4], rows[1][4]) == ("", "0.50× (0.49–0.51)")


def test_studies_without_either_are_not_asked(tmp_path: Path) -> None:
    assert not varies_forms(study(tmp_path, {"": (10, TENSOR)}))


def test_the_first_screen_names_four_and_counts_the_rest(tmp_path: Path) -> None:
    book = Book()
    for name in "abcdef":
        for value, ms in (("", 10), ("gzip", 20)):
            for repeat in (1, 2, 3):
                axes = {"compression": value, "variant": value or "none"}
                took = round(ms * MS * (1 + repeat / 1_000))
                tag = book.add(f"{name}-grpc", 1, 4, {"w0": [took] * 160}, repeat=repeat, axes=axes)
                book.request_bytes(tag, TENSOR)
    told = said(load_study(book.write(tmp_path)))
    assert told.count("times slower") == 4
    assert told.endswith("; 2 more are in the table.")
