"""What the charts draw, as data: means that add up, curves with knees, seconds on one axis."""

import json
from pathlib import Path

import pytest

from reports.page.page import Chart, rounded
from reports.render.html import as_json, page_scripts, policy
from reports.study.study import Study, load_study
from reports.topics.load.saturation import HOLLOW, curves_chart
from reports.topics.runs.timeline import MOST_POINTS, SPREAD, timeline_chart
from reports.topics.servers.breakdown import DOUBTED, NEGATIVE, PARTIAL, breakdown_chart
from tests.reports.builder import Book
from tests.reports.example import MS
from tests.reports.lines import FIRST_SECOND, phase_line, triton
from tests.reports.pages import ATTACK, apart, crowded


def study_of(book: Book, tmp_path: Path) -> Study:
    return load_study(book.write(tmp_path))


def drawn(chart: Chart | None) -> Chart:
    assert chart is not None
    return chart


def test_a_bar_has_the_parts_of_the_mean_in_ms_and_they_add_up(tmp_path: Path) -> None:
    book = Book()
    for repeat, ms in ((1, 20), (2, 30)):
        book.add("onnx-http", 4, 1, {"w0": [ms * MS] * 40}, repeat=repeat, counters=triton(40, 4, 10 * MS))
    chart = drawn(breakdown_chart(study_of(book, tmp_path)))
    (panel,) = chart.data["panels"]
    (bar,) = panel["bars"]
    assert (panel["title"], bar["name"], bar["doubted"]) == ("batch 4, 1 user", "onnx-http", False)
    assert bar["parts"]["server_compute"] == 10.0
    assert sum(bar["parts"].values()) == pytest.approx(25.0, rel=2e-3)
    assert chart.notes == ()


def test_a_repeat_that_knows_fewer_parts_is_left_out_of_the_means(tmp_path: Path) -> None:
    book = Book()
    book.add("onnx-http", 1, 1, {"w0": [20 * MS] * 40}, counters=triton(40, 1, 10 * MS))
    book.add("onnx-http", 1, 1, {"w0": [40 * MS] * 40}, repeat=2)
    chart = drawn(breakdown_chart(study_of(book, tmp_path)))
    bar = chart.data["panels"][0]["bars"][0]
    assert (bar["parts"]["server_compute"], bar["partial"]) == (10.0, 1)
    assert chart.notes == (PARTIAL,)


def test_parts_below_0_and_disqualified_bars_are_said(tmp_path: Path) -> None:
    book = Book()
    tag = book.add("onnx-http", 1, 1, {"w0": [5 * MS] * 40}, counters=triton(40, 1, 10 * MS))
    book.caveat(tag, "client-bound", "w0 was full")
    chart = drawn(breakdown_chart(study_of(book, tmp_path)))
    assert chart.data["panels"][0]["bars"][0]["parts"]["unexplained"] == pytest.approx(-5.1, abs=0.02)
    assert chart.notes == (DOUBTED, NEGATIVE)


def test_serial_panels_come_before_loads_and_lost_cells_are_named(tmp_path: Path) -> None:
    book = Book()
    book.add("onnx-http", 1, 8, {"w0": [MS] * 40})
    book.add("onnx-http", 4, 1, {"w0": [MS] * 40})
    book.add("onnx-http", 1, 1, {}, failures={"timeout": 3})
    book.add_open("onnx-http", 50, {"w0": [MS] * 50})
    chart = drawn(breakdown_chart(study_of(book, tmp_path)))
    titles = [panel["title"] for panel in chart.data["panels"]]
    assert titles == ["batch 4, 1 user", "batch 1, 8 users", "batch 1, 50 requests/s"]
    assert chart.notes[-1] == "Not drawn, as no request succeeded: onnx-http/b1/c1."


def test_curves_have_figures_intervals_the_knee_and_the_law(tmp_path: Path) -> None:
    chart = drawn(curves_chart(study_of(crowded(), tmp_path)))
    http, grpc = chart.data["series"]
    assert (http["name"], http["knee"]) == ("onnx-http, batch 1", 16)
    assert (grpc["name"], grpc["knee"]) == ("onnx-grpc, batch 1", 4)
    assert [point["users"] for point in grpc["points"]] == [1, 2, 4, 8, 16, 32]
    assert all(point["rate_low"] <= point["rate"] <= point["rate_high"] for point in grpc["points"])
    assert max(grpc["fit"], key=lambda at: at[1])[0] == pytest.approx((0.9 / 0.004) ** 0.5, rel=0.1)
    assert [at[0] for at in (grpc["fit"][0], grpc["fit"][-1])] == [1, 32]
    assert chart.notes == (
        "Knee of onnx-http, batch 1: 16 users; 95 % of the highest images/s from 32 on.",
        "Knee of onnx-grpc, batch 1: 4 users; 95 % of the highest images/s from 16 on; 32 users make 14.8 % "
        "less than 16 (at least 13.0 %).",
    )


def test_a_disqualified_point_is_hollow(tmp_path: Path) -> None:
    book = Book()
    for level in (1, 4):
        tag = book.add("onnx-http", 1, level, {"w0": [MS] * 40})
    book.caveat(tag, "client-bound", "w0 was full")
    chart = drawn(curves_chart(study_of(book, tmp_path)))
    assert [point["doubted"] for point in chart.data["series"][0]["points"]] == [False, True]
    assert chart.notes[0] == HOLLOW


def test_the_time_axis_has_every_run_with_what_is_aside(tmp_path: Path) -> None:
    book = Book()
    for name in ("onnx-http", "onnx-grpc"):
        tag = book.add(name, 1, 1, {"w0": [MS] * 40})
        for second, phase in ((0, "warm-up"), (1, "measure")):
            utc = f"2026-11-21T11:00:{second + 6 * (name == 'onnx-grpc'):02}.000Z"
            book.records.append(phase_line(tag, phase, utc))
    chart = drawn(timeline_chart(study_of(apart(book), tmp_path)))
    first, second = chart.data["runs"]
    assert (first["name"], first["from"], first["to"]) == ("onnx-http/b1/c1", 0, 2)
    assert first["aside"] == [("warm-up", 0, 1)]
    assert (second["from"], second["to"], second["aside"]) == (6, 8, [("warm-up", 6, 7)])
    assert chart.data["t_s"] == [0, 1, None, 6, 7, None]
    throughput = next(panel for panel in chart.data["panels"] if panel["title"] == "Throughput")
    assert throughput["lines"][0]["values"] == [27, 20, None, 27, 20, None]
    assert "Not known here: " in chart.caption
    assert "GPU power" in chart.caption


@pytest.mark.parametrize("told", [{}, {"spread_milli_images": 20_000}])
def test_images_are_said_to_be_spread_where_the_ledger_tells(tmp_path: Path, told: dict[str, int]) -> None:
    book = Book()
    tag = book.add("onnx-http", 1, 1, {"w0": [MS] * 40})
    for record in book.measured(tag):
        record.update(told)
    assert (SPREAD in drawn(timeline_chart(study_of(book, tmp_path))).caption) == bool(told)


def test_a_long_study_has_no_more_points_than_can_be_drawn(tmp_path: Path) -> None:
    book = Book()
    tag = book.add("onnx-http", 1, 1, {"w0": [MS] * 40})
    book.records.append({**book.measured(tag)[0], "second": FIRST_SECOND + 2 * MOST_POINTS})
    chart = drawn(timeline_chart(study_of(book, tmp_path)))
    assert len(chart.data["t_s"]) <= MOST_POINTS + 1
    assert chart.data["runs"][0]["to"] > 2 * MOST_POINTS


def test_an_empty_study_draws_nothing(tmp_path: Path) -> None:
    study = study_of(Book(), tmp_path)
    assert [make(study) for make in (breakdown_chart, curves_chart, timeline_chart)] == [None] * 3


def test_json_in_a_page_cannot_end_its_element_and_says_the_same() -> None:
    text = str(as_json({"name": ATTACK + "\u2028"}))
    assert not {"<", ">", "&", "\u2028"} & set(text)
    assert json.loads(text) == {"name": ATTACK + "\u2028"}


def test_only_the_pages_own_scripts_may_run() -> None:
    said = policy(["alert(1)"])
    assert said.startswith(
        "default-src 'none'; script-src 'sha256-bhHHL3z2vDgxUt0W3dWQOrprscmda2Y5pLsLg4GF+pI=';"
    )
    assert "unsafe-inline" not in said.partition("style-src")[0]
    assert len(page_scripts(drawn=False)[0]) < 20_000 < len(page_scripts(drawn=True)[0])


def test_four_digits_are_enough_to_draw() -> None:
    assert [*map(rounded, (None, 0.0, 1234.56, 0.0123456))] == [None, 0.0, 1235.0, 0.01235]
