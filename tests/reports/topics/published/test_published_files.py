"""The published tables as data files: their columns, their sources, and figures known to stand there."""

import csv
from collections import Counter

import pytest

from reports.cells_csv.columns import COLUMNS
from reports.cells_csv.rows import FOLDER, published_files, rows_of

PRODUCTS = {"step7-a100": "latency_p50_ms", "step6a-a100": "latency_mean_ms"}
COMPARED = ("images_per_s", "latency_mean_ms", "latency_p50_ms", "latency_p95_ms", "latency_p99_ms")


def table(name: str) -> list[dict[str, str]]:
    with published_files()[name].open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def entry(name: str, cell: str, repeat: str = "1") -> dict[str, str]:
    (found,) = [row for row in table(name) if (row["cell"], row["repeat"]) == (cell, repeat)]
    return found


@pytest.mark.parametrize("name", published_files())
def test_each_file_has_the_columns_of_cells_csv_and_a_source(name: str) -> None:
    text = published_files()[name].read_text(encoding="utf-8")
    rows = table(name)
    assert tuple(text.splitlines()[0].split(",")) == (*COLUMNS[: COLUMNS.index("stand_in")], "source"), (
        "none stands in for another"
    )
    assert {row["study"] for row in rows} == {name}
    assert all(
        row["source"] and row["cell"].startswith(f"{row['endpoint']}/b{row['batch']}/c") for row in rows
    )
    assert len({(row["cell"], row["repeat"]) for row in rows}) == len(rows)
    assert len(rows_of(text.splitlines(), name)) == len(rows)


@pytest.mark.parametrize("name", published_files())
def test_no_two_rows_of_a_cell_state_the_same_figure(name: str) -> None:
    stated = Counter((row["cell"], column) for row in table(name) for column in COMPARED if row[column])
    assert {found for found, count in stated.items() if count > 1} == set()


@pytest.mark.parametrize(("name", "column"), PRODUCTS.items())
def test_serial_images_per_second_agree_with_their_latency(name: str, column: str) -> None:
    rows = [row for row in table(name) if row["level"] == "1" and row["images_per_s"] and row[column]]
    assert len(rows) == {"step7-a100": 25, "step6a-a100": 12}[name]
    for row in rows:
        follows = 1_000 * int(row["batch"]) / float(row[column])
        assert float(row["images_per_s"]) == pytest.approx(follows, abs=0.06)


@pytest.mark.parametrize(
    ("name", "cell", "repeat", "figures"),
    [
        ("step5a", "onnx-json-http/b1/c1", "1", {"encode_ms": "52.5", "request_bytes": str(2_980 * 1_024)}),
        ("step5a", "onnx-http/b32/c1", "1", {"encode_ms": "1.74", "request_bytes": str(32 * 602_112)}),
        ("step5a", "onnx-json-http/b1/c1", "2", {"latency_p50_ms": "564", "latency_mean_ms": "724"}),
        ("step5a-cpu", "onnx-http/b1/c1", "1", {"latency_p50_ms": "87", "latency_mean_ms": ""}),
        ("step6a-a100", "trt-http/b1/c1", "1", {"latency_p99_ms": "350.2", "server_compute_ms": "29.1"}),
        ("step6a-a100", "pytorch-http/b32/c1", "1", {"images_per_s": "64.3", "images_per_usd": "272329"}),
        ("step6a-rtx4080", "onnx-http/b32/c1", "1", {"images_per_s": "24.3", "images_per_usd": "950870"}),
        ("step6b", "onnx-http/b1/c128", "1", {"images_per_s": "37.1", "latency_p50_ms": "1638"}),
        ("step7-a100", "trt-grpc/b1/c1", "1", {"server_compute_ms": "3.63", "requests": "30"}),
        ("step7-a100", "onnx-http/b1/c1/concurrent-test", "1", {"images_per_s": "5.1", "requests": "60"}),
        ("step7-rtx4090", "onnx-grpc/b1/c1", "1", {"server_compute_ms": "4.41", "images_per_s": ""}),
    ],
)
def test_figures_stand_in_the_columns(name: str, cell: str, repeat: str, figures: dict[str, str]) -> None:
    found = entry(name, cell, repeat)
    assert {column: found[column] for column in figures} == figures


def test_rows_with_an_engine_built_inside_are_disqualified() -> None:
    built = {
        (name, row["cell"]): float(row["server_compute_ms"])
        for name in published_files()
        for row in table(name)
        if "cold-shape" in row["caveats"]
    }
    assert built == {("step7-a100", "trt-http/b1/c1"): 1657.75, ("step7-rtx4090", "trt-http/b1/c1"): 1170}


def test_the_readme_names_every_file() -> None:
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert all(f"`{path.name}`" in text for path in published_files().values())
