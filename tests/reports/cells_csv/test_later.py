"""The later columns of cells.csv: model, codec, server, space; and older plans and files without them."""

import csv
import io
from pathlib import Path

import pytest

from reports.cells_csv.columns import COLUMNS, render_csv
from reports.cells_csv.rows import rows_of
from reports.cells_csv.sides import load_side
from reports.ledger.ledger import LedgerError
from reports.study.study import load_study
from tests.reports.builder import Book
from tests.reports.strangers import a_book, run, stranger

LATER = ("model", "codec", "server", "space")
FIRST = COLUMNS.index(LATER[0])


def rows(book: Book, folder: Path) -> list[dict[str, str]]:
    """Of cells.csv, by columns."""
    return list(csv.DictReader(io.StringIO(render_csv(load_study(book.write(folder))))))


def told(row: dict[str, str]) -> tuple[str, ...]:
    return tuple(row[name] for name in LATER)


def test_they_come_after_all_that_older_files_have() -> None:
    assert COLUMNS[FIRST : FIRST + len(LATER)] == LATER
    assert COLUMNS.index("caveats") < COLUMNS.index("stand_in") < COLUMNS.index("model")


def test_a_plan_tells_them(tmp_path: Path) -> None:
    book = a_book()
    run(book, "mine", stranger(book, "mine"))
    (row,) = rows(book, tmp_path)
    assert told(row) == ("siglip", "v2-binary", "gpu:8000", "siglip")
    assert row["backend"] == "triton"


def test_what_requests_do_not_name_is_as_the_server_says(tmp_path: Path) -> None:
    book = a_book()
    told_of = stranger(book, "mine", {"model": "ViT-B-32"}, model="")
    run(book, "mine", told_of)
    assert told(rows(book, tmp_path)[0]) == ("ViT-B-32", "v2-binary", "gpu:8000", "siglip")


def test_of_an_older_plan_the_server_is_the_backend(tmp_path: Path) -> None:
    book = Book()
    book.endpoint("onnx-http", "127.0.0.1:8010")
    book.add("onnx-http", 1, 1, {"w0": [9_000_000] * 40})
    book.add("trt-grpc", 1, 1, {"w0": [9_000_000] * 40})
    book.plan("trt-grpc", 1, 8)  # which was not begun
    book.footer("interrupted")
    assert [told(row) for row in rows(book, tmp_path)] == [
        ("openclip_vit_b32", "", "onnx", ""),
        ("", "", "trt", ""),
    ]
    assert load_side(str(tmp_path)).status == "interrupted"


@pytest.mark.parametrize("name", LATER)
def test_a_plan_tells_them_as_texts(name: str, tmp_path: Path) -> None:
    book = a_book()
    run(book, "mine", stranger(book, "mine"))
    book.header["plan"][0][name] = 7
    with pytest.raises(LedgerError, match=f"{name} of a planned run is 7, and must be a text"):
        load_study(book.write(tmp_path))


def test_a_row_has_them_and_an_older_one_its_backend(tmp_path: Path) -> None:
    book = a_book()
    run(book, "mine", stranger(book, "mine"))
    text = render_csv(load_study(book.write(tmp_path)))
    older = "\n".join(",".join(line.split(",")[:FIRST]) for line in text.splitlines())
    found = [rows_of(io.StringIO(lines), "cells.csv")[0] for lines in (text, older)]
    assert [(row.model, row.codec, row.shares, row.space) for row in found] == [
        ("siglip", "v2-binary", "gpu:8000", "siglip"),
        ("", "", "triton", ""),
    ]
    assert found[1].numbers["images_per_s"] == 100.0


WAITS = ("stream_wait_ms", "flow_wait_ms")


def test_waits_of_http2_come_late_and_are_empty_of_all_who_did_not_tell(tmp_path: Path) -> None:
    assert COLUMNS[COLUMNS.index(WAITS[0]) :][:2] == WAITS
    assert COLUMNS[-4:] == ("slo", "goodput_share", "goodput_per_s", "cache_hit_share")
    book = Book()
    ours, older = (book.add(f"onnx-{name}", 1, 1, {"w0": [9_000_000] * 40}) for name in ("grpc", "http"))
    book.phases(ours, stream_wait=0, flow_wait=2_000_000, send=1_000_000)
    book.phases(older, send=1_000_000)
    found = [tuple(row[name] for name in WAITS) for row in rows(book, tmp_path)]
    assert found[0][0] == "0.0"
    assert float(found[0][1]) == pytest.approx(2.0, rel=1e-3)
    assert found[1] == ("", "")
