"""Money and energy for an image: by the declared price and the sampled power, empty where unknown."""

import csv
import io
from pathlib import Path

import pytest

from reports.cells_csv.columns import render_csv
from reports.fold.samples import Cost, Readings, costs
from reports.study.study import Study, load_study
from reports.topics.load.cost import cost_answer, cost_table
from tests.reports.builder import Book
from tests.reports.lines import FIRST_SECOND, sample_line
from tests.reports.open_load import notes_at, texts

MS = 1_000_000


def priced(folder: Path, power_w: tuple[float, ...] = (), **options: object) -> Study:
    """100 images a second alone and 200 by eight users, the first at the power that was sampled."""
    book = Book(options=options)
    tag = book.add("onnx-http", 1, 1, {"w0": [10 * MS] * 200})
    for second, watts in enumerate(power_w):
        book.records.append(sample_line(tag, FIRST_SECOND + second, gpus=[{"power_w": watts}]))
    book.add("onnx-http", 1, 8, {"w0": [40 * MS] * 400})
    book.add("onnx-grpc", 1, 1, {"w0": []}, failures={"timeout": 3})
    book.add("onnx-http-floor", 1, 1, {"w0": [MS] * 200})
    return load_study(book.write(folder))


def csv_rows(study: Study) -> list[tuple[str, str]]:
    rows = csv.DictReader(io.StringIO(render_csv(study)))
    return [(row["images_per_usd"], row["joules_per_image"]) for row in rows]


def test_the_published_price_of_a_thousand_images() -> None:
    a_4080, a_100 = costs(24.3, None, {"usd_per_hour": 0.092}), costs(64.3, 320.0, {"usd_per_hour": 0.85})
    assert a_4080.images_per_usd is not None
    assert 1_000 / a_4080.images_per_usd == pytest.approx(0.001, abs=1e-4)
    assert a_100.images_per_usd == pytest.approx(272_329.4, rel=1e-4)
    assert a_100.joules_per_image == pytest.approx(4.9767, rel=1e-4)


@pytest.mark.parametrize("options", [{}, {"usd_per_hour": 0}, {"usd_per_hour": None}])
@pytest.mark.parametrize("images_per_s", [None, 0.0, 5.0])
def test_what_is_unknown_has_no_price(images_per_s: float | None, options: dict[str, object]) -> None:
    assert costs(images_per_s, None, options) == Cost()
    assert costs(None, 50.0, {"usd_per_hour": 1}).joules_per_image is None


def test_the_most_gpus_of_a_second_are_counted() -> None:
    assert Readings([{}, {"gpus": [{}, {}]}, {"gpus": [{}]}]).gpus == 2
    assert Readings([{}, {"gpus": []}]).gpus is None


def test_cells_csv_has_both_where_they_are_known(tmp_path: Path) -> None:
    study = priced(tmp_path / "both", (50.0, 70.0), usd_per_hour=0.36)
    assert csv_rows(study) == [
        ("1000000.0", "0.6"),
        ("2000000.0", ""),
        ("", ""),
        ("10000000.0", ""),
    ]
    assert csv_rows(priced(tmp_path / "none")) == [("", "")] * 4


def test_the_table_has_each_ways_cheapest_cell(tmp_path: Path) -> None:
    table = cost_table(priced(tmp_path, (50.0,), usd_per_hour=0.36))
    assert texts(table) == [["onnx-http", "onnx-http/b1/c8", "200", "0.500", "–"]]
    assert "declared with --usd-per-hour, not measured" in table.caption
    assert table.caption.endswith(
        "No GPU's power was sampled. "
        "Not ranked, since more than 1 % of the requests failed: onnx-grpc/b1/c1 (100 %)."
    )


def test_power_alone_is_told_without_a_price(tmp_path: Path) -> None:
    book = Book()
    tag = book.add("onnx-http", 1, 1, {"w0": [10 * MS] * 200}, status="aborted")
    book.records.append(sample_line(tag, gpus=[{"power_w": 50.0}, {"power_w": 30.0}]))
    table = cost_table(load_study(book.write(tmp_path)))
    assert texts(table) == [["onnx-http", "onnx-http/b1/c1", "100", "–", "0.800"]]
    assert "No price was declared (--usd-per-hour)." in table.caption
    assert "idle power included" in table.caption
    assert notes_at(table, 0, 4) == ["invalidated: aborted"]


def test_the_row_is_the_price_of_a_million_images_at_the_cheapest_cell(tmp_path: Path) -> None:
    """A faster cell of which every other run fails is none to pay for."""
    book = Book(options={"usd_per_hour": 0.36})
    book.add("onnx-http", 1, 1, {"w0": [10 * MS] * 200})
    book.add("onnx-http", 1, 8, {"w0": [40 * MS] * 400})
    book.add("trt-http", 1, 8, {"w0": [MS] * 400})
    book.add("trt-http", 1, 8, {"w0": []}, failures={"timeout": 9}, repeat=2)
    answer = cost_answer(load_study(book.write(tmp_path)))
    assert answer is not None
    assert answer.text == (
        "Cost: $0.500 per million images at the cheapest, onnx-http/b1/c8. "
        "By the price that --usd-per-hour declared."
    )


def test_without_a_price_or_a_sound_run_there_is_no_row(tmp_path: Path) -> None:
    assert cost_answer(priced(tmp_path / "free", (50.0,))) is None
    book = Book(options={"usd_per_hour": 0.36})
    book.add("onnx-http", 1, 1, {"w0": [10 * MS] * 200}, status="aborted")
    assert cost_answer(load_study(book.write(tmp_path / "aborted"))) is None


def test_without_price_and_power_there_is_no_table(tmp_path: Path) -> None:
    assert cost_table(priced(tmp_path / "cells")).rows == ()
    assert cost_table(load_study(Book(options={"usd_per_hour": 1.0}).write(tmp_path / "empty"))).rows == ()
