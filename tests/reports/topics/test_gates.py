"""What people read of verdicts: tables, the sentence of a report, and the data of the drawing."""

from dataclasses import replace

import pytest

from reports.gates.verdict import Verdict, bound_said, measured_said
from reports.page.page import Chart
from reports.topics.gates import MOST_ROWS, WIDEST, gate_table, gate_tables, gates_answer, gates_chart
from tests.reports.gates.outcomes import ALL, FAILED, MADE, MISSING, UNSURE, WARNED

PASSED = replace(MADE, severity="warn")


def test_what_did_not_pass_comes_first_and_warnings_after_the_rest() -> None:
    others, passed = gate_tables(ALL)
    assert [[cell.text for cell in row] for row in others.rows] == [
        ["✗ fail", "latency_p95_ms <= 120", "onnx-grpc/b1/c1", "131 ms (128–134)", "5"],
        ["✗ warning", "latency_p95_ms <= 120", "onnx-grpc/b1/c1", "131 ms (128–134)", "5"],
        ["? inconclusive", "latency_p95_ms <= 120", "no cell", "–", "0"],
        [
            *("? inconclusive", "gRPC keeps up (onnx-grpc / onnx-http >= 0.95)"),
            *("onnx-grpc/b1/c1 / onnx-http/b1/c1", "0.930× (0.880–0.980)", "5"),
        ],
    ]
    assert [row[0].text for row in passed.rows] == ["✓ pass"]
    assert passed.notes == ()


def test_notes_say_why_and_what_would_decide_once_for_all_alike() -> None:
    table = gate_table(
        "", [MISSING, replace(MISSING, cell="other", sentence="other: none."), MISSING, UNSURE]
    )
    assert table.notes == (
        "the study has none that it is of: batch 64.",
        "none.",
        "ratio of images_per_s 0.93× (95 % CI 0.88× to 0.98×), at least 0.95× is required (0.905× "
        "tolerated); 4 more repeats would decide, if like these.",
        "1 run left out (client-bound).",
        "Down to 0.905× is tolerated.",
    )
    assert [row[0].marks for row in table.rows] == [(1,), (2,), (1,), (3, 4)]
    assert table.rows[3][1].marks == (5,)
    # a percentile among requests without a reply has no number
    above = replace(FAILED, value=None, low=None, high=None, sentence=f"{FAILED.cell}: above any limit.")
    assert gate_table("", [above, FAILED]).notes == ("above any limit.",)


@pytest.mark.parametrize(
    ("verdict", "measured", "bound"),
    [
        (MADE, "100 ms (95.0–106)", "≤ 120 ms"),
        (UNSURE, "0.930× (0.880–0.980)", "≥ 0.950× (0.905)"),
        (MISSING, "–", "≤ 120 ms"),
        (replace(MADE, low=None), "100 ms", "≤ 120 ms"),
        (
            replace(
                MADE, column="failure_ratio", bound=0.01, tolerated=0.01, value=0.02, low=0.012, high=0.03
            ),
            "2.00 % (1.20–3.00)",
            "≤ 1.00 %",
        ),
    ],
)
def test_numbers_have_their_units(verdict: Verdict, measured: str, bound: str) -> None:
    assert (measured_said(verdict), bound_said(verdict)) == (measured, bound)


@pytest.mark.parametrize(
    ("verdicts", "said"),
    [
        ([MADE, WARNED], "The gate passed; 1 warning."),
        ([MADE, FAILED], f"1 of 2 gates failed. {FAILED.sentence}"),
        ([MADE, MADE], "All 2 gates passed."),
        ([WARNED, PASSED], "No gate decides; 1 warning."),
        ([MADE, PASSED, replace(UNSURE, severity="warn"), WARNED], "The gate passed; 2 warnings."),
        ([MADE, UNSURE], f"1 of 2 gates is inconclusive. {UNSURE.sentence}"),
        (
            [UNSURE, MADE, FAILED, WARNED],
            f"1 of 3 gates failed, 1 is inconclusive; 1 warning. {FAILED.sentence} The table of gates has "
            "the others.",
        ),
        (
            [MISSING, MISSING],
            f"2 of 2 gates are inconclusive. latency_p95_ms <= 120: {MISSING.sentence} The table of "
            "gates has the others.",
        ),
    ],
)
def test_the_sentence_of_a_report(verdicts: list[Verdict], said: str) -> None:
    assert gates_answer(verdicts).text == f"Gates: {said}"


def drawn(verdicts: list[Verdict]) -> Chart:
    chart = gates_chart(verdicts)
    assert chart is not None
    return chart


def test_a_row_is_times_the_bound_under_its_threshold() -> None:
    chart = drawn(list(ALL))
    first, second, third = chart.data["groups"]
    assert [group["title"] for group in (first, second, third)] == [MADE.title, UNSURE.title, WARNED.title]
    assert [(row["name"], row["outcome"]) for row in first["rows"]] == [
        (FAILED.cell, "fail"),
        (MADE.cell, "pass"),
    ]
    (ratio,) = second["rows"]
    assert ratio["value"] == pytest.approx(0.93 / 0.95, rel=1e-3)
    assert ratio["tolerated"] == pytest.approx(1 / 1.05, rel=1e-3)
    assert (ratio["at_most"], ratio["measured"], ratio["said"]) == (
        *(False, "0.930× (0.880–0.980)", "? inconclusive"),
    )
    low, high = chart.data["span"]
    assert low == pytest.approx(95 / 120 / 1.05, rel=1e-3)
    assert high == pytest.approx(134 / 120 * 1.05, rel=1e-3)
    assert chart.notes == ("Not drawn, as nothing was estimated, or as that or the bound is 0: 1 gate.",)


@pytest.mark.parametrize("changes", [{"low": None}, {"value": None}, {"bound": 0.0}, {"value": 0.0}])
def test_without_an_interval_on_the_axis_nothing_is_drawn(changes: dict[str, float | None]) -> None:
    assert gates_chart([replace(MADE, **changes)]) is None  # type: ignore[arg-type]
    assert gates_chart([]) is None


def test_what_is_far_out_is_drawn_at_the_edge() -> None:
    far = replace(FAILED, value=1e9, low=-3.0, high=2e9)
    (row,) = drawn([far]).data["groups"][0]["rows"]
    assert (row["low"], row["value"], row["high"]) == (1 / WIDEST, WIDEST, WIDEST)


def test_of_many_those_are_drawn_that_somebody_must_look_at() -> None:
    chart = drawn([replace(MADE, cell=f"p{at}") for at in range(50)] + [FAILED])
    rows = [row for group in chart.data["groups"] for row in group["rows"]]
    assert len(rows) == MOST_ROWS
    assert rows[0]["name"] == FAILED.cell
    assert chart.notes == ("11 more gates not drawn here; the tables below have them.",)
