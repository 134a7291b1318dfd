"""What a link of known rate could carry, and how near a study came."""

from pathlib import Path

import pytest

from reports.study.study import load_study
from reports.topics.load.wire import OVERHEAD, ceiling_per_s, wire_ceilings, wires
from tests.reports.builder import Book
from tests.reports.open_load import notes_at, texts

MS = 1_000_000


def with_link(**options: object) -> Book:
    """One way at two levels: 10 and 20 images a second of 602,112 bytes."""
    book = Book(options=options)
    book.add("onnx-http", 1, 1, {"w0": [100 * MS] * 20})
    book.add("onnx-http", 1, 8, {"w0": [400 * MS] * 40})
    return book


def test_the_ceiling_counts_the_headers_of_full_segments() -> None:
    assert round(OVERHEAD, 4) == 1.0456, "1,514 of 1,448 bytes"
    assert ceiling_per_s(210e6 / 8, 602_112) == pytest.approx(43.6 / OVERHEAD, rel=1e-3)


def test_the_fastest_cell_is_set_beside_the_ceiling(tmp_path: Path) -> None:
    table = wire_ceilings(load_study(with_link(link_mbit=210).write(tmp_path)))
    assert texts(table) == [
        ["onnx-http", "1", "602", "2.05", "onnx-http/b1/c8", "20.0", "210", "41.7", "48.0"]
    ]
    assert "4.56 % headers" in table.caption


def test_more_than_the_link_can_carry_is_doubted(tmp_path: Path) -> None:
    table = wire_ceilings(load_study(with_link(link_mbit=50).write(tmp_path)))
    assert texts(table)[0][-1] == "201"
    assert notes_at(table, 0, 8)[0].startswith("above 100 %: the link is faster than declared")


def test_the_busier_way_and_the_share_of_each_image_count(tmp_path: Path) -> None:
    book = Book(options={"link_mbit": 210})
    book.request_bytes(book.add("onnx-http", 4, 1, {"w0": [100 * MS] * 20}), 1_000)
    study = load_study(book.write(tmp_path))
    (wire,) = wires(study)
    assert (wire.sent_bytes, wire.received_bytes) == (250, pytest.approx(2_048, rel=0.02))
    assert wire.ceiling == pytest.approx(ceiling_per_s(210e6 / 8, wire.received_bytes))
    assert texts(wire_ceilings(study))[0][2:4] == ["0.250", "2.05"]


def test_without_a_rate_there_is_no_ceiling(tmp_path: Path) -> None:
    table = wire_ceilings(load_study(with_link().write(tmp_path)))
    assert texts(table) == [["onnx-http", "1", "602", "2.05", "onnx-http/b1/c8", "20.0"]]
    assert table.caption.endswith("No link's rate is known; --link-mbit gives it.")


def test_floors_and_failures_have_no_row(tmp_path: Path) -> None:
    book = Book(options={"link_mbit": 100})
    book.add("onnx-http-floor", 1, 1, {"w0": [MS] * 20})
    book.add("onnx-http", 1, 1, {"w0": []}, failures={"timeout": 3})
    study = load_study(book.write(tmp_path))
    assert (wires(study), wire_ceilings(study).rows) == ((), ())
