"""The bound on failures that every study has without declaring it."""

from collections.abc import Sequence
from typing import Any

import pytest

from reports.gates.judge import judge
from reports.gates.thresholds import parse_gates
from reports.gates.verdict import Verdict
from tests.reports.gates.book import require
from tests.reports.gates.rows import GRPC, HTTP, Run, a_run, a_source

LARGE, FLOOR = "onnx-http/b8/c1", "onnx-http-floor/b1/c1"
KEPT = require("images_per_s >= 1")
WARNING = "severity = 'warn'\n"


def failing(cell: str = LARGE) -> list[Run]:
    """One failure of 2,000 in the first run of a cell, and 11 of 2,000 in the second; none in others."""
    counts = (1, 11)
    cells = dict.fromkeys((HTTP, GRPC, cell))
    return [
        a_run(one, at, requests=2_000, failures=failed * (one == cell), images_per_s=9)
        for one in cells
        for at, failed in enumerate(counts, 1)
    ]


def own_of(text: str, *studies: list[Run], options: Sequence[Any] = ()) -> dict[str, Verdict]:
    """By cell, what no threshold of the file says."""
    headers = [{"options": told} for told in options]
    source = a_source(*studies, headers=headers, endpoints={"trt-http": {}})
    found = judge(parse_gates(text, "thresholds.toml"), source)
    return {verdict.cell: verdict for verdict in found if not verdict.threshold}


def test_every_cell_has_a_bound_on_its_failures() -> None:
    found = own_of(KEPT, failing())
    assert {cell: one.outcome for cell, one in found.items()} == {HTTP: "pass", GRPC: "pass", LARGE: "fail"}
    assert {one.title for one in found.values()} == {"--max-failure-ratio"}
    assert found[LARGE].sentence == f"{LARGE}: 12 of 4,000 requests failed, at most 0 % is required."


@pytest.mark.parametrize(
    ("options", "bound", "outcome"),
    [
        ([{"max_failure_ratio": 0.0029}], 0.0029, "fail"),
        ([{"max_failure_ratio": 0.003}], 0.003, "pass"),
        ([{"max_failure_ratio": None}], 0, "fail"),
        ([None], 0, "fail"),
        ([{"max_failure_ratio": 0.5}, {"max_failure_ratio": 0.002}], 0.002, "fail"),
        ([{"max_failure_ratio": 0.5}, {}], 0, "fail"),
        ([{"max_failure_ratio": 0.5}, {"max_failure_ratio": 0.003}], 0.003, "pass"),
    ],
)
def test_the_least_that_a_study_allows_is_of_the_requests_that_were_made(
    options: list[Any], bound: float, outcome: str
) -> None:
    found = own_of(KEPT, failing(), *[failing()] * (len(options) - 1), options=options)[LARGE]
    assert (found.outcome, found.value, found.bound) == (outcome, pytest.approx(0.003), bound)


@pytest.mark.parametrize(
    ("text", "cells"),
    [
        (require("failure_ratio <= 0.05", batch="8"), [HTTP, GRPC]),
        (require("failure_ratio <= 0.05", batch="8") + WARNING, [HTTP, GRPC, LARGE]),
        (require("failures <= 5", batch="8"), [HTTP, GRPC, LARGE]),
        (require("failure_ratio <= 0.05"), []),
    ],
)
def test_a_threshold_on_their_share_takes_its_place_and_a_warning_does_not(
    text: str, cells: list[str]
) -> None:
    assert list(own_of(text, failing())) == cells


@pytest.mark.parametrize(
    ("text", "outcomes"),
    [
        (KEPT, []),
        (require("images_per_s >= 1", endpoint="'*-floor'") + WARNING, []),
        (require("images_per_s >= 1", endpoint="'*-floor'"), ["fail"]),
        (require("onnx-http / onnx-http-floor <= 9", of="'images_per_s'"), ["fail"]),
        (require("onnx-http-floor / onnx-http <= 9", of="'images_per_s'"), ["fail"]),
        (require("trt-http / onnx-http-floor <= 9", of="'images_per_s'"), []),
    ],
)
def test_floors_have_the_bound_where_a_threshold_names_them(text: str, outcomes: list[str]) -> None:
    trt = [a_run("trt-http/b8/c1", images_per_s=1)]
    found = own_of(text, [*failing(FLOOR), *trt])
    assert [one.outcome for cell, one in found.items() if cell == FLOOR] == outcomes


def test_a_search_for_a_rate_has_none_since_it_overloads_the_server_on_purpose() -> None:
    searching: dict[str, Any] = {"find_rate": "p99<=100"}
    assert own_of(KEPT, failing(), options=[searching]) == {}
    assert list(own_of(KEPT, failing(), failing(), options=[searching, {}])) == [HTTP, GRPC, LARGE]
