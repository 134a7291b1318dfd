"""The network's part as a range: three parts in tables and the chart, and both ends in cells.csv."""

import csv
import io
import re
from dataclasses import replace
from pathlib import Path

import pytest

import reports.render
from reports.cells_csv.columns import COLUMNS, render_csv
from reports.study.study import Study, load_study
from reports.summary.summary import PARTS, UNCLEAR
from reports.topics.servers.breakdown import HEADS, RANGE, breakdown_chart, where_the_time_goes
from tests.reports.builder import Book
from tests.reports.lines import triton
from tests.reports.open_load import notes_at, texts

MS = 1_000_000
RENDERED = Path(*reports.render.__path__)


def ranged(folder: Path, least_ms: float | None, most_ms: float | None) -> Study:
    """A run of 20 ms, 10.1 at the server, 9.9 left; of these the network has the least to the most."""
    book = Book()
    book.add("onnx-grpc", 1, 1, {"w0": [20 * MS] * 40}, counters=triton(40, 1, 10 * MS, 50_000))
    study = load_study(book.write(folder))
    (run,) = study.runs
    left_ns = 9.9 * MS - (least_ms or 0.0) * MS
    network = [None if value is None else value * MS for value in (least_ms, most_ms)]
    run = replace(run, network_ns=network[0], network_most_ns=network[1], unexplained_ns=left_ns)
    return replace(study, runs=(run,))


def test_what_may_be_the_networks_is_a_column_of_its_own_and_counts_as_unexplained(tmp_path: Path) -> None:
    table = where_the_time_goes(ranged(tmp_path, 2.0, 7.0))
    row = dict(zip(table.heads, texts(table)[0], strict=True))
    assert (row["net"], row["net?"], row["unexpl"], row["%"]) == ("2.0", "5.0", "2.9", "39")
    assert table.heads[-3:] == ("net?", "unexpl", "%")
    parts = [float(row[head]) for head in table.heads[2:-1]]
    assert sum(parts) == pytest.approx(float(row["mean"]), abs=0.2)
    assert "net?: network or unexplained" in table.caption
    assert "%: the share of all that is unexplained" in table.caption
    assert table.caption.endswith(RANGE)


@pytest.mark.parametrize(("least_ms", "most_ms"), [(None, None), (2.0, None)])
def test_no_range_has_no_such_column(tmp_path: Path, least_ms: float | None, most_ms: float | None) -> None:
    table = where_the_time_goes(ranged(tmp_path, least_ms, most_ms))
    assert "net?" not in table.heads
    assert RANGE not in table.caption
    assert bool(notes_at(table, 0, len(table.heads) - 1)) == (least_ms is None)


def test_a_bar_has_the_three_and_they_add_up(tmp_path: Path) -> None:
    chart = breakdown_chart(ranged(tmp_path, 2.0, 7.0))
    assert chart is not None
    assert [part["label"] for part in chart.data["parts"][-2:]] == ["network or unexplained", "unexplained"]
    parts = chart.data["panels"][0]["bars"][0]["parts"]
    assert (parts["network"], parts[UNCLEAR]) == (2.0, 5.0)
    assert parts["unexplained"] == pytest.approx(2.9, abs=0.05)
    assert sum(parts.values()) == pytest.approx(20.0, rel=5e-3)
    assert chart.notes == (RANGE,)


def test_a_range_of_nothing_is_not_drawn(tmp_path: Path) -> None:
    chart = breakdown_chart(ranged(tmp_path, 2.0, 2.0))
    assert chart is not None
    assert UNCLEAR not in [part["name"] for part in chart.data["parts"]]
    assert chart.notes == ()


@pytest.mark.parametrize(("most_ms", "written"), [(7.0, "7.0"), (None, "")])
def test_both_ends_are_in_cells_csv(tmp_path: Path, most_ms: float | None, written: str) -> None:
    (row,) = csv.DictReader(io.StringIO(render_csv(ranged(tmp_path, 2.0, most_ms))))
    assert (row["network_ms"], row["network_most_ms"]) == ("2.0", written)
    assert float(row["unexplained_ms"]) == pytest.approx(7.9)
    whole = sum(float(row[name]) for name in ("network_ms", "unexplained_ms", "server_ms"))
    assert whole == pytest.approx(float(row["latency_mean_ms"]), rel=5e-3)
    assert COLUMNS.index("network_most_ms") > COLUMNS.index("space")


def test_every_part_has_a_head_a_colour_by_day_and_by_night_and_a_pattern() -> None:
    *measured, last = PARTS
    assert list(HEADS) == [*measured, UNCLEAR, last]
    sheet = (RENDERED / "templates/report.css").read_text(encoding="utf-8")
    coloured = re.findall(r"--part-(\w+): (#[0-9a-f]{6});", sheet)
    assert sorted(name for name, _ in coloured) == sorted([*HEADS, *HEADS])
    assert len({colour for _, colour in coloured}) == len(coloured)
    script = (RENDERED / "assets/breakdown.js").read_text(encoding="utf-8")
    patterns = script.partition("PATTERNS = {")[2].partition("}")[0]
    assert sorted(re.findall(r"(\w+):", patterns)) == sorted(HEADS)
