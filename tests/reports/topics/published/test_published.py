"""Published figures: read, matched with ours, and shown beside them with their sources."""

from dataclasses import replace
from pathlib import Path

import pytest

from reports.backend_facts import facts_of
from reports.cells_csv.rows import read_published
from reports.page.table import Table
from reports.published_figures.figures import RATE, beside, published_figures, their_endpoint
from reports.study.study import Study, load_study
from reports.topics.published.rates import BY_LATENCY, latencies_beside, rates_beside, serial_ratios
from reports.topics.report import build_page
from tests.reports.builder import Book
from tests.reports.contention_book import LINK, a_study, an_arm, axes_of, studied
from tests.reports.example import example
from tests.reports.limit_runs import HEALTHY
from tests.reports.lines import triton
from tests.reports.open_load import notes_at, texts

MS = 1_000_000
A100 = read_published("step7-a100")
SERIAL = "published: Step 7 results on an A100, 2026-02-20: 30 iterations, one run"


@pytest.mark.parametrize("name", ["", "step9", "../published/step7-a100", "/etc/passwd"])
def test_an_unknown_study_has_no_figures(name: str) -> None:
    assert read_published(name) == ()


@pytest.mark.parametrize(
    ("endpoint", "theirs"),
    [
        ("emulated-http", "onnx-http"),
        ("emulated-grpc", "onnx-grpc"),
        ("onnx-grpc", "onnx-grpc"),
        ("trt-http", "trt-http"),
        ("openvino-grpc", "trt-grpc"),
        ("pytorch-http", "pytorch-http"),
    ],
)
def test_an_endpoint_stands_beside_the_one_most_like_it(endpoint: str, theirs: str) -> None:
    backend, protocol = endpoint.split("-")
    payload = "jpeg" if backend == "pytorch" else "fp32"
    run = replace(HEALTHY, endpoint=endpoint, backend=backend, protocol=protocol, payload=payload)
    run = replace(run, facts=facts_of({}, backend))
    assert their_endpoint(run, A100) == theirs


def test_only_the_same_batch_and_load_stand_beside() -> None:
    found = beside(replace(HEALTHY, level=16), A100)
    assert found is not None
    assert (found.endpoint, RATE(found)) == ("onnx-http", 43.6)
    assert beside(replace(HEALTHY, level=4), A100) is None
    assert beside(replace(HEALTHY, level=16, load="open"), A100) is None
    assert beside(replace(HEALTHY, payload="json"), A100) is None


def serial(folder: Path, published: str = "step7-a100", repeats: int = 3) -> Study:
    """One user at two batches over a link like the A100's; batch 2 was never published."""
    book = a_study(links=[LINK | {"published": published}])
    for repeat in range(1, repeats + 1):
        for protocol, code, p50_ms in (("http", "R0", 200), ("grpc", "R4", 250)):
            for batch in (1, 2):
                values = [round(p50_ms * MS * (0.9 + 0.1 * repeat))] * 40
                about = axes_of(code, "wan-a100", many=False)
                book.add(
                    *(f"emulated-{protocol}", batch, 1, {"w0": values}),
                    **{"repeat": repeat, "axes": about, "counters": triton(40, batch, 5 * MS)},
                )
        an_arm(book, "R0", 42.0, repeat)
    return studied(book, folder)


def tables(study: Study) -> list[Table]:
    figures = published_figures(study)
    return [table(study, figures) for table in (rates_beside, latencies_beside, serial_ratios)]


def test_ours_stand_beside_theirs_with_ratio_and_source(tmp_path: Path) -> None:
    rates, latencies, _ = tables(serial(tmp_path))
    assert texts(rates) == [
        ["emulated-http", "onnx-http", "b1/c1", "4.6 (3.6–5.7)", "4.8", "0.95×"],
        ["emulated-http wan-a100/per-user/1w", "onnx-http", "b1/c16", "42.0 (41.9–42.1)", "43.6", "0.96×"],
        ["emulated-grpc", "onnx-grpc", "b1/c1", "3.6 (2.9–4.6)", "4.6", "0.79×"],
    ]
    assert texts(latencies)[0] == [
        *("emulated-http", "onnx-http", "b1/c1"),
        *("220 (180–280)", "208.7", "1.05×"),
    ]
    assert notes_at(rates, 0, 4) == [SERIAL]
    assert notes_at(rates, 0, 0) == []


def test_what_is_emulated_is_said_once_above_the_page_and_at_no_table(tmp_path: Path) -> None:
    page = build_page(serial(tmp_path), "x")
    assert page.banner == (
        "Emulated (a100): no model computes behind this endpoint.",
        "Emulated link: wan-a100 (round trip 14 ms, 210 Mbit/s, 0.07 % lost).",
    )
    tables = [table for section in page.sections for table in section.tables]
    assert len(tables) > 5
    said = [text for table in tables for text in (table.caption, *table.notes)]
    assert [text for text in said if any(sentence in text for sentence in page.banner)] == []


def test_the_serial_ratio_stands_beside_theirs(tmp_path: Path) -> None:
    table = tables(serial(tmp_path))[2]
    assert texts(table) == [
        [
            *("emulated beside their onnx", "1", "4.6 (3.6–5.7)", "3.6 (2.9–4.6)", "0.800× (0.798–0.802)"),
            *("4.8", "4.6", "0.96×"),
        ]
    ]


def test_where_they_gave_no_images_per_second_the_ratio_is_of_their_latency(tmp_path: Path) -> None:
    table = tables(serial(tmp_path, "step7-rtx4090"))[2]
    assert texts(table)[0][5:] == ["–", "–", "0.85×"]
    assert BY_LATENCY in notes_at(table, 0, 7)


def test_a_link_that_models_none_shows_no_tables(tmp_path: Path) -> None:
    assert [table.rows for table in tables(serial(tmp_path / "none", ""))] == [(), (), ()]
    assert [table.rows for table in tables(serial(tmp_path / "other", "step9"))] == [(), (), ()]
    old = load_study(example().write(tmp_path / "old"))
    titles = [table.title for section in build_page(old, "x").sections for table in section.tables]
    assert not [title for title in titles if "beside the published" in title.lower()]


def test_a_link_that_no_run_went_over_is_not_shown(tmp_path: Path) -> None:
    book = Book(links=[LINK])
    book.add("onnx-http", 1, 16, {"w0": [10 * MS] * 160})
    assert published_figures(load_study(book.write(tmp_path))) == {}
