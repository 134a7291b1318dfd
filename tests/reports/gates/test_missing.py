"""What the study does not have: of the baseline, of a ratio, or of what a threshold asks for."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from reports.gates.source import GateSource
from reports.gates.verdict import exit_code
from tests.reports.gates.book import outcomes, require
from tests.reports.gates.rows import GRPC, HTTP, a_source, repeated, said_of

RATIO = require("onnx-grpc / onnx-http <= 2", of="'images_per_s'")
BASELINE = "images_per_s / baseline >= 0.5"
KEPT = "images_per_s >= 1"


def of(*cells: str, axes: Mapping[str, Mapping[str, str]] | None = None, **header: object) -> GateSource:
    """Five alike repeats of each cell; `axes` are by what is last in a cell's name."""
    runs = [run for cell in cells for run in repeated(cell, "images_per_s", *[10.0] * 5)]
    found = a_source(runs, endpoints={name: {} for name in ("onnx-http", "trt-http")}, **header)
    planned = {
        name: {**row, "workers": 0, **(axes or {}).get(name.rpartition("/")[2], {})}
        for name, row in found.cells.items()
    }
    return replace(found, cells=planned, endpoints=("onnx-http", "trt-http"))


def then(*cells: str, **header: object) -> GateSource:
    return of(*cells, began=["2026-10-01"], **header)


def test_a_cell_that_only_the_baseline_has_passes_nothing() -> None:
    (gone,) = [one for one in said_of(of(HTTP), require(BASELINE), then(HTTP, GRPC)) if one.cell == GRPC]
    assert (gone.outcome, gone.more_repeats, exit_code([gone])) == ("inconclusive", None, 3)
    assert gone.sentence == (
        f"{GRPC}: the baseline has it, and the study has not: run it too, or choose the cells in the "
        "threshold."
    )
    assert outcomes(said_of(of(HTTP), require(KEPT), then(HTTP, GRPC))) == {HTTP: "pass"}


@pytest.mark.parametrize(
    ("fields", "gone"),
    [
        ({"endpoint": "'onnx-grpc'"}, True),
        ({"protocol": "'http'"}, False),
        ({"batch": "1", "level": "1", "workers": "0"}, True),
        ({"link": "''"}, True),
    ],
)
def test_only_cells_that_the_threshold_chooses_are_missed(fields: dict[str, str], gone: bool) -> None:
    floor = "onnx-http-floor/b1/c1"
    now = of(HTTP, "onnx-grpc/b8/c1")
    found = outcomes(said_of(now, require(BASELINE, **fields), then(HTTP, GRPC, floor)))
    assert (GRPC in found, floor in found) == (gone, False)


def test_what_a_baseline_does_not_tell_is_as_in_cells_of_the_same_variant() -> None:
    now = of(f"{HTTP}/lan", f"{HTTP}/wan", axes={name: {"link": name} for name in ("lan", "wan")})
    before = then(*(f"{cell}/{link}" for cell in (HTTP, GRPC) for link in ("lan", "wan")))
    found = said_of(now, require(BASELINE, link="'wan'"), before)
    assert set(outcomes(found)) == {f"{HTTP}/wan", f"{GRPC}/wan"}


@pytest.mark.parametrize("alone", ["grpc", "http"])
def test_a_ratio_of_a_cell_that_has_no_other_passes_nothing(alone: str) -> None:
    here, other = (f"onnx-{way}/b4/c1" for way in (alone, {"grpc": "http", "http": "grpc"}[alone]))
    passed, lonely = said_of(of(HTTP, GRPC, here), RATIO)
    assert (passed.outcome, lonely.outcome, exit_code([passed, lonely])) == ("pass", "inconclusive", 3)
    assert lonely.sentence == (
        f"onnx-grpc/b4/c1 / onnx-http/b4/c1: the study has {here}, and not {other}: run it too, or choose "
        "the cells in the threshold."
    )


def test_the_rates_of_a_search_are_not_missed() -> None:
    def searching(rate: int) -> list[str]:
        return [f"onnx-http/b1/r{rate}", f"onnx-grpc/b1/r{rate + 1}", "onnx-grpc/b1/r8"]

    found = {"options": {"find_rate": "p99<=100"}}
    thresholds = RATIO + require(BASELINE, level="[8, 50]")
    told = said_of(of(*searching(50), **found), thresholds, then(*searching(60), **found))
    assert [one.cell for one in told] == ["no cell", "onnx-http/b1/r50", "onnx-grpc/b1/r8"]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"batch": "64"}, "batch 64 (it has 1)."),
        ({"cell": "'onnx-http/b1/c2'"}, f"cell onnx-http/b1/c2 (it has {GRPC}, {HTTP})."),
        ({"batch": "[1, 64]", "level": "9"}, "batch 64 (it has 1) or level 9 (it has 1)."),
        ({"batch": "[64, 32]"}, "batch 32 or 64 (it has 1)."),
        ({"workers": "1"}, "workers 1 (it has 0 for all)."),
        ({"endpoint": "'trt-http'"}, "endpoint trt-http (it has onnx-grpc, onnx-http)."),
    ],
)
def test_a_cell_that_is_missing_is_inconclusive(fields: dict[str, str], said: str) -> None:
    found = said_of(of(HTTP, GRPC), require(KEPT, **fields))
    assert (found[-1].outcome, exit_code(found)) == ("inconclusive", 3)
    assert found[-1].sentence == f"no cell: the study has none of {said}"


@pytest.mark.parametrize(
    ("cells", "text", "said"),
    [
        (
            [f"onnx-http/b{batch}/c1" for batch in (16, 8, 4, 2, 1, 32)],
            require(KEPT, batch="64"),
            "batch 64 (it has 1, 2, 4, 8, 2 more).",
        ),
        ([HTTP, GRPC, "onnx-http/b8/c1"], require(KEPT, batch="8", endpoint="'onnx-grpc'"),
         "endpoint onnx-grpc, batch 8."),
        ([HTTP], RATIO.replace("onnx-grpc", "trt-http"), "trt-http and onnx-http (it has onnx-http)."),
    ],
)  # fmt: skip
def test_what_there_is_instead_is_said_in_short(cells: list[str], text: str, said: str) -> None:
    (found,) = said_of(of(*cells), text)
    assert (found.outcome, found.sentence) == ("inconclusive", f"no cell: the study has none of {said}")


def test_a_number_of_several_that_is_missing_does_not_hide_behind_the_others() -> None:
    found = said_of(of(HTTP, GRPC), require(KEPT, batch="[1, 64]"))
    assert outcomes(found) == {HTTP: "pass", GRPC: "pass", "no cell": "inconclusive"}
