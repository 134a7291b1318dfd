"""The drawings in a real browser: their numbers, their units, and what is saved and copied of them."""

import csv
import json
import re
import struct
from collections import defaultdict
from collections.abc import Mapping, Sequence
from io import StringIO
from itertools import pairwise
from pathlib import Path
from statistics import geometric_mean
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page

from reports.__main__ import main
from reports.format import digits, milliseconds
from reports.page.page import Chart, Section
from reports.page.page import Page as Report
from reports.render.html import render_html
from reports.stats.percentiles import CellFigure, pooled
from reports.stats.repeats import grouped
from reports.study.study import load_study
from tests.reports.pages import ATTACK, GATES, IN_A_BROWSER, OPEN_ALL, PAGES, apart

pytestmark = IN_A_BROWSER
OPTION = "(it) => echarts.getInstanceByDom(it).getOption()"
UNITS = {
    "dots": ["images/s"],
    "tradeoff": ["images/s"],
    "breakdown": ["ms"],
    "curves": ["users", "Throughput, images/s", "p95 latency, ms"],
    "percentiles": ["Latency, ms", "percentile, log scale of what lies beyond", "50 %"],
    "distribution": ["latency, ms", "0 %"],
    "timeline": ["Latency, ms", "Throughput, images/s", "time since the study's start, min:s"],
    "gates": ["times the bound"],
}
"""The texts of a drawing, or their beginnings, that say what its numbers are of."""


def dot(name: str, value: float, low: float | None = None, high: float | None = None) -> dict[str, Any]:
    told = {"name": name, "value": value, "low": low, "high": high, "note": ""}
    return told | {"best": name == "onnx-grpc", "doubted": name == "=1+1"}


def point(users: int, rate: float, p95: float, knee: bool = False) -> dict[str, Any]:
    return {
        **{"label": f"{users} users", "knee": knee, "doubted": False},
        **{"rate": rate, "rate_low": 0.9 * rate, "rate_high": 1.1 * rate},
        **{"latency": p95, "latency_low": None, "latency_high": None},
    }


def level(users: int, rate: float, p95: float) -> dict[str, Any]:
    spread = {"rate_low": rate, "rate_high": rate, "p95_low": p95, "p95_high": p95}
    return {"users": users, "doubted": False, "rate": rate, "p95": p95, **spread}


DOTS = {
    "unit": "images/s",
    "rows": [dot("onnx-grpc", 9.999, 9.1, 10.75), dot("=1+1", 7.25), dot("openvino-http", 21.04, 20, 22)],
}
TRADEOFF = {
    **{"x": "images/s", "y": "p95 ms"},
    "series": [
        {"name": "onnx-http", "points": [point(1, 10, 20), point(8, 40, 25, knee=True), point(64, 42, 900)]},
        {"name": ATTACK, "points": [point(1, 8, 30), point(8, 8.1, 30.2), point(64, 8.2, 30.1)]},
    ],
}


def slope(at: int, name: str) -> dict[str, Any]:
    points = [level(1, 10, 30 + at), level(8, 20 + at / 10, 0.31)]
    knee = 1 if name == "onnx-http" else None
    return {"name": f"{name}, batch 1", "batch": 1, "knee": knee, "fit": None, "points": points}


def bar(name: str) -> dict[str, Any]:
    told = {"name": f"onnx-{name}, 64 channels in a pool", "doubted": name == "http"}
    return told | {"partial": 0, "parts": {"wait": 7.5}}


SLOPES = {
    "panels": [{"key": "rate", "title": "Throughput, images/s"}, {"key": "p95", "title": "p95 latency, ms"}],
    "series": [slope(0, "onnx-http"), slope(1, "onnx-grpc")],
}
WIDE = {
    "dots": {"unit": "images/s", "rows": [dot("onnx-grpc", 50, -400, 500), dot("onnx-http", 40, 30, 50)]},
    "breakdown": {
        "parts": [{"name": "wait", "label": "wait"}],
        "panels": [{"title": "batch 1, 1 user", "bars": [bar("http"), bar("grpc")]}],
    },
}
"""Intervals wider than the axis, and long names of bars."""
MADE: dict[str, dict[str, Any]] = {"dots": DOTS, "tradeoff": TRADEOFF, "curves": SLOPES}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folders of some studies, shown, and `made`, a page of charts whose data were made up here."""
    root = tmp_path_factory.mktemp("charts")
    for name in ("quick", "crowded", "gated"):
        study = apart(PAGES[name]()).write(root / name)
        if name in GATES:
            (study / "thresholds.toml").write_text(GATES[name], encoding="utf-8")
            assert main(["gate", str(study), "--quiet"]) != 2
        assert main(["show", str(study), "--quiet"]) == 0
    for name, data in (("made", MADE), ("wide", WIDE)):
        (root / name).mkdir()
        (root / name / "report.html").write_text(render_html(made(data)), encoding="utf-8")
    return root


def made(data: Mapping[str, dict[str, Any]]) -> Report:
    charts = [Chart(f"Made {kind}", "", kind, one, folded=kind == "dots") for kind, one in data.items()]
    sections = (Section("Charts", charts=tuple(charts)),)
    return Report(title="Made", facts="", notices=(), findings=(), sections=sections, commands=())


def opened(context: BrowserContext, path: Path, width: int = 1280) -> Page:
    page = context.new_page()
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(path.as_uri())
    page.evaluate(OPEN_ALL)
    return page


def figure_of(page: Page, kind: str) -> Locator:
    return page.locator(f"figure[data-kind={kind}]").first


def data_of(figure: Locator) -> Any:
    return json.loads(figure.locator("script").text_content() or "")


def option_of(figure: Locator) -> Any:
    return figure.locator(".canvas").evaluate(OPTION)


def texts_of(figure: Locator) -> list[str]:
    return figure.locator("svg text").all_text_contents()


def cells_of(folder: Path) -> list[dict[str, str]]:
    with (folder / "cells.csv").open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def runs_of(cells: Sequence[dict[str, str]], title: str, name: str) -> list[dict[str, str]]:
    """The rows of one endpoint under a batch and a load."""
    kept = [row for row in cells if row["endpoint"] == name and row["load"] == "closed"]
    users = ("1 user" if float(row["level"]) == 1 else f"{float(row['level']):g} users" for row in kept)
    return [row for row, said in zip(kept, users, strict=True) if f"batch {row['batch']}, {said}" == title]


def test_the_percentile_curve_is_that_of_cells_csv(context: BrowserContext, folder: Path) -> None:
    page, cells = opened(context, folder / "quick" / "report.html"), cells_of(folder / "quick")
    figure = figure_of(page, "percentiles")
    data = data_of(figure)
    groups = data["groups"]
    assert [group["title"] for group in groups] == ["batch 1, 1 user", "batch 4, 1 user"]
    for at, group in enumerate(groups):
        figure.locator("select").select_option(str(at))
        drawn = [series["data"] for series in option_of(figure)["series"]]
        assert len(drawn) == 5
        for line, values in zip(group["lines"], drawn, strict=True):
            (row,) = runs_of(cells, group["title"], line["name"])
            found = dict(zip(data["percents"], line["ms"], strict=False))
            assert found[50] == pytest.approx(float(row["latency_p50_ms"]), abs=1e-6)
            assert found[90] == pytest.approx(float(row["latency_p90_ms"]), abs=1e-6)
            assert 95 not in found
            assert [value["value"][1] for value in values] == line["ms"]


def test_the_histogram_counts_every_request_of_its_cells(context: BrowserContext, folder: Path) -> None:
    page, cells = opened(context, folder / "crowded" / "report.html"), cells_of(folder / "crowded")
    figure = figure_of(page, "distribution")
    groups = data_of(figure)["groups"]
    assert len(groups) == 6
    for at, group in enumerate(groups):
        figure.locator("select").select_option(str(at))
        drawn = [series["data"] for series in option_of(figure)["series"]]
        for line, values in zip(group["lines"], drawn, strict=True):
            rows = runs_of(cells, group["title"], line["name"])
            requests = sum(int(row["requests"]) - int(row["failures"]) for row in rows)
            assert (len(rows), sum(line["counts"]), line["requests"]) == (3, requests, requests)
            shares = [share for _, share in values[1:-1]]
            assert sum(shares) == pytest.approx(100)
            assert shares == pytest.approx([100 * count / requests for count in line["counts"]])


def drawn_points(figure: Locator) -> list[tuple[float, float]]:
    """Of all series of a drawing, the points that have a name."""
    points = [
        point for one in option_of(figure)["series"] for point in one["data"] if isinstance(point, dict)
    ]
    return [tuple(point["value"][:2]) for point in points]


def p95s_of(folder: Path) -> dict[tuple[str, float], CellFigure]:
    """By endpoint and level, of all requests of the repeats."""
    study = load_study(folder)
    cells = grouped(study.started, lambda run: (run.endpoint, run.level))
    found = ((of, pooled(study, runs, "p95")) for of, runs in cells.items())
    return {of: p95 for of, p95 in found if p95}


def test_the_first_screen_draws_what_cells_csv_has(context: BrowserContext, folder: Path) -> None:
    page, cells = opened(context, folder / "crowded" / "report.html"), cells_of(folder / "crowded")
    by_cell = defaultdict[tuple[str, str], list[dict[str, str]]](list)
    for row in cells:
        by_cell[row["endpoint"], row["level"]].append(row)
    rates = {
        cell: geometric_mean([float(row["images_per_s"]) for row in rows]) for cell, rows in by_cell.items()
    }
    fastest = [
        max((rate for (name, _), rate in rates.items() if name == endpoint), default=0)
        for endpoint in ("onnx-http", "onnx-grpc")
    ]
    assert [rate for rate, _ in drawn_points(figure_of(page, "dots"))] == pytest.approx(fastest, rel=1e-3)
    expected = [
        (rates[name, f"{level:g}"], p95.value) for (name, level), p95 in p95s_of(folder / "crowded").items()
    ]
    points = drawn_points(figure_of(page, "tradeoff"))
    assert sorted(points) == [pytest.approx(pair, rel=1e-3) for pair in sorted(expected)]


def test_curves_and_bars_draw_what_cells_csv_has(context: BrowserContext, folder: Path) -> None:
    page, cells = opened(context, folder / "crowded" / "report.html"), cells_of(folder / "crowded")
    series, p95s = data_of(figure_of(page, "curves"))["series"], p95s_of(folder / "crowded")
    assert [len(one["points"]) for one in series] == [6, 6]
    for one in series:
        for at in one["points"]:
            name = one["name"].partition(",")[0]
            rows = [row for row in cells if (row["endpoint"], float(row["level"])) == (name, at["users"])]
            rates = [float(row["images_per_s"]) for row in rows]
            assert at["rate"] == pytest.approx(geometric_mean(rates), rel=1e-3)
            assert at["p95"] == pytest.approx(p95s[name, at["users"]].value, rel=1e-3)
    figure = figure_of(page, "breakdown")
    data, option = data_of(figure), option_of(figure)
    for index, panel in enumerate(data["panels"]):
        stacked = [one for one in option["series"] if one["xAxisIndex"] == index and one["name"]]
        for at, bar in enumerate(panel["bars"]):
            total = sum(one["data"][at] or 0 for one in stacked)
            rows = runs_of(cells, panel["title"], bar["name"])
            means = [float(row["latency_mean_ms"]) for row in rows]
            assert total == pytest.approx(sum(means) / len(means), rel=1e-3)


def test_a_batch_and_load_chosen_in_one_is_chosen_in_both(context: BrowserContext, folder: Path) -> None:
    page = opened(context, folder / "crowded" / "report.html")
    figure_of(page, "distribution").locator("select").select_option(label="batch 1, 32 users")
    chosen = page.locator("select.group").evaluate_all("all => all.map((it) => it.selectedOptions[0].text)")
    assert chosen == ["batch 1, 32 users"] * 2
    line = data_of(figure_of(page, "percentiles"))["groups"][-1]["lines"][0]
    drawn = option_of(figure_of(page, "percentiles"))["series"][0]["data"]
    assert [value["value"][1] for value in drawn] == line["ms"]


@pytest.mark.parametrize("width", [390, 1280])
def test_no_chart_is_without_units(context: BrowserContext, folder: Path, width: int) -> None:
    seen = set()
    for name in ("quick", "crowded", "gated", "made"):
        page = opened(context, folder / name / "report.html", width)
        for figure in page.locator("figure[data-kind]").all():
            kind = figure.get_attribute("data-kind") or ""
            texts = texts_of(figure)
            panels = data_of(figure)["panels"] if kind == "timeline" else []
            latency = [data_of(figure)["y"]] if kind == "tradeoff" else []
            assert all(panel["unit"] for panel in panels)
            for unit in (*UNITS[kind], *latency, *(f"{panel['title']}, {panel['unit']}" for panel in panels)):
                assert any(text.startswith(unit) for text in texts), (name, kind, unit)
            seen.add(kind)
    assert seen == set(UNITS)


def test_dots_are_drawn_in_order_with_intervals_and_values(context: BrowserContext, folder: Path) -> None:
    figure = figure_of(opened(context, folder / "made" / "report.html"), "dots")
    option = option_of(figure)
    dots = [series["data"][0]["value"] for series in option["series"] if series["type"] == "scatter"]
    assert dots == [[9.999, 0], [7.25, 1], [21.04, 2]]
    lines = [series["data"] for series in option["series"] if series["type"] == "line"]
    assert lines == [[[9.1, 0], [10.75, 0]], [[20, 2], [22, 2]]]
    texts = texts_of(figure)
    names = ("onnx-grpc", "=1+1 (invalidated)", "openvino-http")
    assert tuple(text for text in texts if text in names) == names
    assert {"10.0 (9.10–10.8)", "7.25", "21.0 (20.0–22.0)"} <= set(texts)
    assert (option["xAxis"][0]["min"], option["xAxis"][0]["max"]) == (0, 25)
    bold = figure.locator("svg text", has_text="onnx-grpc").get_attribute("style") or ""
    assert "bold" in bold or "700" in bold


@pytest.mark.parametrize(("width", "edge"), [(390, 100), (1280, 80)])
def test_a_far_end_is_an_arrow(context: BrowserContext, folder: Path, width: int, edge: float) -> None:
    figure = figure_of(opened(context, folder / "wide" / "report.html", width), "dots")
    option = option_of(figure)
    scale = option["xAxis"][0]
    assert (scale["min"], scale["max"]) == (0, edge)
    first, second = (series["data"] for series in option["series"] if series["type"] == "line")
    arrow = {"symbol": "triangle", "symbolSize": 13}
    assert first == [
        {"value": [0, 0], **arrow, "symbolRotate": 90},
        {"value": [edge, 0], **arrow, "symbolRotate": -90},
    ]
    assert second == [[30, 1], [50, 1]]
    assert {"50.0 (-400–500)", "40.0 (30.0–50.0)"} <= set(texts_of(figure))


def test_invalidated_bars_say_so_below_their_names(context: BrowserContext, folder: Path) -> None:
    figure = figure_of(opened(context, folder / "wide" / "report.html", 390), "breakdown")
    texts = texts_of(figure)
    assert texts.count("(invalidated)") == 1
    assert not any("*" in text for text in texts)
    boxes = [
        box
        for it in figure.locator("svg text", has_text=re.compile("onnx|invalidated|channels")).all()
        if (box := it.bounding_box())
    ]
    assert all(below - above >= 11 for above, below in pairwise(sorted(box["y"] for box in boxes)))


def test_the_knee_is_ringed_and_labels_do_not_overlap(context: BrowserContext, folder: Path) -> None:
    figure = figure_of(opened(context, folder / "made" / "report.html"), "tradeoff")
    option = option_of(figure)
    assert (option["yAxis"][0]["type"], option["yAxis"][0]["min"]) == ("log", 10)
    assert [one["value"] for one in option["series"][0]["data"]] == [[10, 20], [40, 25], [42, 900]]
    rings = [series["data"] for series in option["series"] if series["symbolSize"] == 18]
    assert rings == [[[40, 25]]]
    labels = figure.locator("svg text", has_text="user")
    assert labels.filter(has_text="8 users, knee").count() == 1
    boxes = [box for it in labels.all() if (box := it.bounding_box())]
    assert 4 <= len(boxes) < 6
    for at, one in enumerate(boxes):
        for other in boxes[at + 1 :]:
            # a box has room for the stroke around its letters, and above and below them
            beside = abs(one["x"] + one["width"] / 2 - other["x"] - other["width"] / 2)
            assert beside >= (one["width"] + other["width"]) / 2 - 3 or abs(one["y"] - other["y"]) >= 11


def test_two_levels_are_slopes_with_their_values_at_both_ends(context: BrowserContext, folder: Path) -> None:
    figure = figure_of(opened(context, folder / "made" / "report.html"), "curves")
    texts = texts_of(figure)
    assert {"20.0  onnx-http", "20.1  onnx-grpc", "0.3  onnx-http", "0.3  onnx-grpc"} <= set(texts)
    assert texts.count("10.0") == 2
    option = option_of(figure)
    assert [axis["data"] for axis in option["xAxis"]] == [["1", "8"]] * 2
    assert [axis["min"] for axis in option["yAxis"]] == [0, 0]
    labels = figure.locator("svg text", has_text="onnx").all()
    tops = sorted(box["y"] for it in labels if (box := it.bounding_box()) and box["x"] < 640)
    assert tops[1] - tops[0] >= 12


def test_bars_are_on_one_scale_and_labelled_in_both_views(context: BrowserContext, folder: Path) -> None:
    figure = figure_of(opened(context, folder / "quick" / "report.html"), "breakdown")
    bars = [bar for panel in data_of(figure)["panels"] for bar in panel["bars"]]
    for view, unit in (("milliseconds", "ms"), ("share of each, %", "share of the mean, %")):
        figure.get_by_role("button", name=view).click()
        axes = option_of(figure)["xAxis"]
        assert len({axis["max"] for axis in axes}) == 1
        assert [axis["name"] for axis in axes] == [unit] * 2
        totals = [text for text in texts_of(figure) if text.endswith(" ms")]
        assert len(totals) == len(bars) == 10
        exact = [sum(bar["parts"].values()) for bar in bars]
        assert sorted(float(text[:-3]) for text in totals) == pytest.approx(sorted(exact), abs=0.051)


def test_ticks_of_the_timeline_are_round_and_runs_are_named(context: BrowserContext, folder: Path) -> None:
    figure = figure_of(opened(context, folder / "quick" / "report.html"), "timeline")
    texts = texts_of(figure)
    ticks = [text for text in texts if text[:1].isdigit() and ":" in text]
    seconds = [60 * int(minutes) + int(rest) for minutes, _, rest in (text.partition(":") for text in ticks)]
    assert len(seconds) >= 3
    assert {second % 5 for second in seconds} == {0}
    # of ten runs none has room for its name; one alone has
    assert not any("http" in text for text in texts)
    figure.locator("select").select_option(label="onnx-http/b4/c1")
    alone = texts_of(figure)
    assert ("onnx-http" in alone, "b4/c1" in alone, "pytorch-http" in alone) == (True, True, False)


def test_a_chart_is_saved_as_a_picture(context: BrowserContext, folder: Path, tmp_path: Path) -> None:
    for name in ("quick", "gated", "made"):
        page = opened(context, folder / name / "report.html")
        for figure in page.locator("figure[data-kind]").all():
            drawn = figure.locator(".canvas svg").bounding_box()
            with page.expect_download() as download:
                figure.get_by_role("button", name="as a PNG picture").click()
            assert download.value.suggested_filename.endswith(".png")
            download.value.save_as(tmp_path / "saved.png")
            picture = (tmp_path / "saved.png").read_bytes()
            assert picture[:8] == b"\x89PNG\r\n\x1a\n"
            assert len(picture) > 10_000
            assert drawn is not None
            width, height = struct.unpack(">II", picture[16:24])
            assert width == pytest.approx(2 * (drawn["width"] + 24), abs=2)
            assert height == pytest.approx(2 * (drawn["height"] + 58), abs=2)


COPIES = {
    "clipboard": "navigator.clipboard.writeText = async (text) => { window.copied = text; };",
    "page": "Object.defineProperty(navigator, 'clipboard', { value: undefined });"
    "addEventListener('copy', () => { window.copied = document.activeElement.value; });",
    "file": "Object.defineProperty(navigator, 'clipboard', { value: undefined });"
    "document.execCommand = () => false;",
}
"""Ways in which a page may be let to copy."""


def copied(page: Page, figure: Locator, way: str, tmp_path: Path) -> list[list[str]]:
    """The rows that the button gives."""
    button = figure.get_by_role("button", name="as CSV")
    if way == "file":
        with page.expect_download() as download:
            button.click()
        download.value.save_as(tmp_path / "saved.csv")
        text = (tmp_path / "saved.csv").read_text(encoding="utf-8")
    else:
        button.click()
        text = page.wait_for_function("window.copied").json_value()
        page.evaluate("delete window.copied")
    assert text.endswith("\n")
    return list(csv.reader(StringIO(text)))


@pytest.mark.parametrize("way", COPIES)
def test_copies_are_what_is_drawn(context: BrowserContext, folder: Path, way: str, tmp_path: Path) -> None:
    page = opened(context, folder / "made" / "report.html")
    page.evaluate(COPIES[way])
    heads, *rows = copied(page, figure_of(page, "dots"), way, tmp_path)
    assert heads == ["name", "images/s", "images/s low", "images/s high", "note"]
    assert rows == [
        ["onnx-grpc", "9.999", "9.1", "10.75", ""],
        ["'=1+1", "7.25", "", "", ""],
        ["openvino-http", "21.04", "20", "22", ""],
    ]
    heads, *rows = copied(page, figure_of(page, "tradeoff"), way, tmp_path)
    assert heads[2::3] == ["images/s", "p95 ms", "knee"]
    assert [row[0] for row in rows] == ["onnx-http"] * 3 + [ATTACK] * 3
    assert rows[1][1:] == ["8 users", "40", "36", "44", "25", "", "", "yes"]
    assert page.evaluate("window.hacked") is None


def test_copies_of_a_study_have_its_numbers(context: BrowserContext, folder: Path, tmp_path: Path) -> None:
    page = opened(context, folder / "crowded" / "report.html")
    page.evaluate(COPIES["clipboard"])
    found = {
        kind: copied(page, figure_of(page, kind), "clipboard", tmp_path)
        for kind in ("breakdown", "curves", "percentiles", "distribution", "timeline")
    }
    assert all(len(row) == len(rows[0]) for rows in found.values() for row in rows)
    data = data_of(figure_of(page, "percentiles"))
    group = data["groups"][2]
    expected = [
        [group["title"], line["name"], str(line["requests"]), f"{percent:g}", f"{ms:g}"]
        for line in group["lines"]
        for percent, ms in zip(data["percents"], line["ms"], strict=False)
    ]
    told = [row for row in found["percentiles"] if row[0] == group["title"]]
    assert [row[:3] for row in told] == [row[:3] for row in expected]
    assert [[float(text) for text in row[3:]] for row in told] == [
        pytest.approx([float(text) for text in row[3:]], rel=1e-5) for row in expected
    ]
    counts: dict[tuple[str, str], int] = defaultdict(int)
    for title, name, *_, count in found["distribution"][1:]:
        counts[title, name] += int(count)
    cells = cells_of(folder / "crowded")
    assert len(counts) == 12
    for (title, name), requests in counts.items():
        assert requests == sum(int(row["requests"]) for row in runs_of(cells, title, name))
    with (folder / "crowded" / "timeline.csv").open(encoding="utf-8", newline="") as lines:
        seconds = list(csv.DictReader(lines))
    at = found["timeline"][0].index("Throughput: images/s")
    rates = [row[at] for row in found["timeline"][1:]]
    assert [float(rate or 0) for rate in rates] == [float(row["images_per_s"] or 0) for row in seconds]


def test_a_page_in_a_sandbox_copies_and_saves(browser: Browser, folder: Path, tmp_path: Path) -> None:
    """As a report is served beside the load: of no origin, with scripts and downloads and nothing else."""
    outer = tmp_path / "outer.html"
    place = (folder / "made" / "report.html").as_uri()
    outer.write_text(f'<iframe sandbox="allow-scripts allow-downloads" width=1000 height=800 src="{place}">')
    context = browser.new_context(accept_downloads=True)
    page = context.new_page()
    page.goto(outer.as_uri())
    figure = page.frame_locator("iframe").locator("figure[data-kind=curves]")
    figure.get_by_role("button", name="as CSV").click()
    figure.get_by_text("Copied").or_(figure.get_by_text("Saved as CSV")).wait_for()
    with page.expect_download() as download:
        figure.get_by_role("button", name="as a PNG picture").click()
    download.value.save_as(tmp_path / "saved.png")
    assert (tmp_path / "saved.png").read_bytes()[:4] == b"\x89PNG"
    context.close()


def test_no_field_of_a_csv_is_run_whatever_separates_its_cells(context: BrowserContext, folder: Path) -> None:
    page = opened(context, folder / "made" / "report.html")
    fields = {
        "plain": "plain",
        "-1.5e-3": "-1.5e-3",
        "a,b": '"a,b"',
        "a; b": '"a; b"',
        "a\tb": '"a\tb"',
        "=1+1": "'=1+1",
        "x;=HYPERLINK(1)": '"x;\'=HYPERLINK(1)"',
        'x";"=1+1': '"x"";\'""=1+1"',
        "x\t@y": '"x\t\'@y"',
        "x\n-y;-5": '"x\n\'-y;-5"',
        "\t=1": "\"'\t'=1\"",
    }
    assert page.evaluate("(all) => all.map(field)", list(fields)) == list(fields.values())
    rows = page.evaluate("(all) => csvText(all.map((one) => ['a', one]))", list(fields))
    for separator in ",;\t":
        cells = [cell for row in csv.reader(StringIO(rows), delimiter=separator) for cell in row]
        assert not [cell for cell in cells if cell.lstrip('"')[:1] in tuple("=+@") or cell.startswith("-y")]
    assert [row[1].replace("'", "") for row in csv.reader(StringIO(rows))] == list(fields)


def test_numbers_are_written_as_in_the_tables(context: BrowserContext, folder: Path) -> None:
    page = opened(context, folder / "made" / "report.html")
    values = [0, 0.04, 0.05, 0.31, 9.96, 9.999, 71.24, 99.96, 104.4, 5266.9, -3.21, 0.04136]
    assert page.evaluate("(all) => all.map(milliseconds)", values) == [*map(milliseconds, values)]
    assert page.evaluate("(all) => all.map(digits)", values) == [*map(digits, values)]
