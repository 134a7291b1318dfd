"""Requests of several batches: what reports call them, and the images that figures of them rest on."""

import re
from pathlib import Path
from typing import Any

import pytest

from reports.caveats.attribution import attribution_caveats
from reports.limits.batching import under_way
from reports.render.markdown import render_markdown
from reports.stats.conditions import condition
from reports.study.study import Study, load_study
from reports.summary.batch import Batch, batch_of, images_per_request
from reports.topics.contention.arms import cases
from reports.topics.load.closed_load import latency_kind
from reports.topics.load.open_load import open_finding, open_load
from reports.topics.load.queue_delay import queue_delays
from reports.topics.load.rate_search import highest_rates
from reports.topics.load.saturation import curves_chart
from reports.topics.load.scaling import saturation_table
from reports.topics.load.wire import wire_ceilings
from reports.topics.payloads.matrix import matrix_tables
from reports.topics.payloads.payloads import protocols_answer, protocols_map
from reports.topics.payloads.serialisation import serialisation_tables
from reports.topics.report import build_page
from reports.topics.servers.memory import memory_table
from tests.reports.builder import Book
from tests.reports.limit_runs import MS, a_run, at_server
from tests.reports.lines import Record, encoded, triton
from tests.reports.open_load import texts

MIX = {"batch_mix": "1:0.5,16:0.5"}
TOLD = "mix 1–16"


def mixed(book: Book, endpoint: str, level: float, each_ms: float = 10, n: int = 200, **more: Any) -> Record:
    """A run of requests half of which have 1 image, half 16: 8.5 in the mean, of 1,000 bytes each."""
    axes = MIX | more.pop("axes", {})
    values = {"w0": [round(each_ms * MS)] * n}
    if "arrivals" in more:
        tag = book.add_open(endpoint, level, values, batch=16, axes=axes, **more)
    else:
        tag = book.add(endpoint, 16, level, values, axes=axes, **more)
    for window in book.of(tag):
        if window["kind"] == "window":
            window["images"] = window["ok"] * 17 // 2
            window["request_bytes"] = window["images"] * 1_000
            window["response_bytes"] = window["images"] * 100
    return tag


@pytest.fixture
def study(tmp_path: Path) -> Study:
    """Two protocols at four levels in three repeats, with the server's memory."""
    book = Book(options={"command": "locust -f step7.py --batch-mix 1:0.5,16:0.5", "link_mbit": 100})
    for endpoint, slower in (("onnx-http", 1), ("onnx-grpc", 1.5)):
        book.endpoint(endpoint, "127.0.0.1:8010")
        for level in (1, 2, 4, 8):
            for repeat in (1, 2, 3):
                tag = mixed(book, endpoint, level, slower * max(10, 5 * level), repeat=repeat)
                for when in ("before", "after"):
                    book.memory(tag, when, endpoint, 500_000_000)
    book.footer()
    return load_study(book.write(tmp_path))


@pytest.mark.parametrize(
    ("changes", "batch", "told"),
    [
        ({"batch": 16}, (16, 16), "16"),
        ({"batch": 16, "batch_mix": "1:0.7,4:0.2,16:0.1"}, (16, 1), TOLD),
        ({"batch": 16, "batch_mix": "16:0.5, 4:0.5"}, (16, 4), "mix 4–16"),
        ({"batch": 16, "batch_mix": "16:1"}, (16, 16), "16"),
        ({"batch": 1, "replay": "noon"}, (1, 1), "1"),
    ],
)
def test_a_batch_is_called_by_its_least_and_most(
    changes: dict[str, Any], batch: tuple[int, int], told: str
) -> None:
    found = batch_of(a_run(**changes))
    assert (found, str(found)) == (Batch(*batch), told)
    assert str(condition(a_run(**changes))) == f"batch {told}, 4 users"


def test_the_images_of_a_request_are_the_mean_of_those_that_came_back() -> None:
    plain, mix = ({"batch": 16, "images": 8_500}, {"batch": 16, "images": 8_500, **MIX})
    assert images_per_request(a_run(**plain)) == 16
    assert images_per_request(a_run(**mix)) == 8.5
    assert images_per_request(a_run(**mix | {"images": None})) == 16
    # Of 4 in flight, at 4 instances.
    assert (under_way(a_run(**plain)), under_way(a_run(**mix))) == (16, 8.5)


def test_a_lone_request_of_a_mix_waits_for_others_unless_the_least_fills_a_batch() -> None:
    known = {"level": 1, "in_flight": 1.0, "measure_ns": None, "batch": 32, "batch_mix": "8:0.5,32:0.5"}
    serving = {"instances": 1, "batching": True, "batching_delay_ns": 10 * MS}
    found = [
        [doubt.code for doubt in attribution_caveats(at_server(10.1, 4, 16, serving=serving | more, **known))]
        for more in ({"max_batch": 32}, {"max_batch": 8})
    ]
    assert ["batching-delay" in codes for codes in found] == [True, False]


def test_no_page_calls_a_mix_by_its_largest_batch(study: Study) -> None:
    page = render_markdown(build_page(study, "here"))
    assert f"batch {TOLD}" in page
    assert not re.search(r"\bbatch 16\b|\bb16\b|published", page)
    assert not study.of_published_study


def test_tables_by_batch_have_the_mix(study: Study) -> None:
    heads = {table.title: [head for head in table.heads if "batch" in head] for table in matrix_tables(study)}
    assert heads["Serial throughput"] == heads["Serial latency, p50"] == [f"batch {TOLD}"]
    assert f"Concurrent throughput, batch {TOLD}" in heads
    assert [head for head in protocols_map(study).heads if "batch" in head] == [f"batch {TOLD}"]
    assert f"after batch {TOLD}" in memory_table(study).heads
    saturated = saturation_table(study)
    assert saturated is not None
    assert {row[1] for row in texts(saturated)} == {TOLD}
    chart = curves_chart(study)
    assert chart is not None
    assert {(one["name"], one["batch"]) for one in chart.data["series"]} == {
        (f"{name}, batch {TOLD}", TOLD) for name in ("onnx-http", "onnx-grpc")
    }


def test_protocols_are_compared_with_one_user_and_with_most(study: Study) -> None:
    answer = protocols_answer(study)
    assert answer is not None
    assert re.search(rf"0\.667×[^;]* at batch {TOLD}, 0\.667×[^;]* at 8 users", answer.detail)


def test_bytes_of_an_image_are_by_the_images_that_were_sent(study: Study) -> None:
    rows = [row[:4] for row in texts(wire_ceilings(study))]
    assert rows == [[name, TOLD, "1.00", "0.100"] for name in ("onnx-http", "onnx-grpc")]


def test_numbers_of_json_are_by_the_images_that_were_sent(tmp_path: Path) -> None:
    book = Book()
    for payload in ("json-", ""):
        name = f"onnx-{payload}http"
        book.endpoint(name, "127.0.0.1:8010")
        book.header["endpoints"][name]["inputs"] = ["input FP32 [1, 10, 10] picture"]
        mixed(book, name, 1)
    found = [
        table
        for table in serialisation_tables(load_study(book.write(tmp_path)))
        if "bytes/number" in table.heads
    ]
    assert [(row[1], row[-1]) for table in found for row in texts(table)] == [(TOLD, "10.0")]


def test_executions_are_for_each_request(tmp_path: Path) -> None:
    book = Book()
    for delay_us in (0, 5_000):
        axes = {"queue_delay_us": delay_us, "variant": f"delay-{delay_us // 1000}ms"}
        counters = triton(200, 1, MS) | {"images": 1_700, "executions": 100}
        mixed(book, "onnx-http", 8, axes=axes, counters=counters)
    table = queue_delays(load_study(book.write(tmp_path)))
    assert [(row[1], *row[-2:]) for row in texts(table)] == [(TOLD, "17.0", "0.500")] * 2


def test_rates_have_the_mix(tmp_path: Path) -> None:
    book = Book(options={"find_rate": "p95<=100"})
    for rate in (8, 16):
        mixed(book, "onnx-http", rate, arrivals="constant", n=400)
    study = load_study(book.write(tmp_path))
    found = highest_rates(study)
    assert found is not None
    assert [row[1] for table in (open_load(study), found) for row in texts(table)] == [TOLD] * 3
    assert "batch" not in open_finding(study)


def test_the_open_loop_command_keeps_the_mix(tmp_path: Path) -> None:
    book = Book(options={"command": "locust -f step7.py --headless --batch-mix 1:0.5,16:0.5 --batches 16"})
    tag = mixed(book, "onnx-http", 4, n=1_000)
    for window in book.measured(tag):
        slow = window["ok"] // 10
        window["histograms"]["latency"] = encoded([10 * MS] * (window["ok"] - slow) + [100 * MS] * slow)
    answer = latency_kind(load_study(book.write(tmp_path)))
    assert answer is not None
    assert "--batch-mix 1:0.5,16:0.5" in answer.command
    assert "--batches" not in answer.command


def test_a_case_of_contention_has_the_mix(tmp_path: Path) -> None:
    book = Book()
    mixed(book, "onnx-http", 4, axes={"channels": "per-user", "variant": "per-user"})
    for channels in ("shared", "per-user"):
        mixed(book, "onnx-grpc", 4, axes={"channels": channels, "variant": channels})
    found = [str(case) for case, _ in cases(load_study(book.write(tmp_path)))]
    assert found == [f"onnx fp32, batch {TOLD}, 4 users"]
