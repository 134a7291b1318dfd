"""Verdicts on whole studies: what passes nothing, what stops, and what is weighed together."""

from dataclasses import replace
from pathlib import Path

import pytest

from reports.gates.evidence import Evidence
from reports.gates.judge import _chances, judge
from reports.gates.require import GateError, parse_require
from reports.gates.thresholds import Threshold, parse_gates
from reports.gates.verdict import Claim, exit_code, verdict_of
from tests.reports.gates.book import a_book, a_study, add, judged, outcomes, require, source

HTTP, GRPC = "onnx-http/b1/c1", "onnx-grpc/b1/c1"
KEPT = require("latency_p50_ms <= 120")


def test_every_threshold_meets_every_cell_that_it_is_of_in_the_files_order(tmp_path: Path) -> None:
    text = require("latency_p95_ms <= 11", endpoint="'onnx-grpc'") + KEPT
    verdicts = judged(tmp_path, text, a_study(20.0))
    assert [(one.threshold, one.cell, one.outcome) for one in verdicts] == [
        *((1, GRPC, "fail"), (2, HTTP, "pass"), (2, GRPC, "pass")),
        *((0, HTTP, "pass"), (0, GRPC, "pass")),
    ]
    assert [one.line for one in verdicts] == [1, 4, 4, 1, 1]
    assert exit_code(verdicts) == 1


def test_exit_codes(tmp_path: Path) -> None:
    good = judged(tmp_path / "a", KEPT, a_study())
    unsure = judged(tmp_path / "b", KEPT + require("latency_p50_ms <= 120", batch="64"), a_study())
    warned = judged(tmp_path / "c", KEPT + require("latency_p95_ms <= 5", severity="'warn'"), a_study())
    assert [exit_code(some) for some in (good, unsure, warned, [])] == [0, 3, 0, 3]
    assert outcomes(warned) == {HTTP: "fail", GRPC: "fail"}


@pytest.mark.parametrize(("status", "said"), [("interrupted", "is interrupted"), ("failed", "failed")])
def test_a_study_that_was_cut_off_passes_nothing(tmp_path: Path, status: str, said: str) -> None:
    book = a_study()
    book.records.pop()
    book.footer(status, "Ctrl-C")
    verdicts = judged(tmp_path, KEPT + require("latency_p95_ms <= 5"), book)
    assert {one.outcome for one in verdicts if one.bound != 5} == {"inconclusive"}
    assert {one.outcome for one in verdicts if one.bound == 5} == {"fail"}
    assert verdicts[0].sentence.endswith(
        f"at most 120 ms is required, which is no pass, since study1 {said}."
    )


def test_a_study_without_an_end_passes_nothing(tmp_path: Path) -> None:
    book = a_study()
    book.records.pop()
    assert {one.outcome for one in judged(tmp_path, KEPT, book)} == {"inconclusive"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (require("latency_p95_ms <= 1", endpoint="'onnx-htpp'"), "did you mean onnx-http?"),
        (require("latency_p95_ms / baseline <= 1"), "a threshold is to a baseline, and none is named: give"),
    ],
)
def test_what_the_study_cannot_answer_is_refused(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(GateError) as error:
        judged(tmp_path, text, a_study())
    assert said in str(error.value)


def test_studies_without_requests_never_pass(tmp_path: Path) -> None:
    book = a_book()
    add(book, "onnx-http", [10.0] * 6, each=0)
    book.plan("onnx-grpc", 1, 1)
    book.footer()
    text = "".join(
        (
            *(require(f"{column} <= 1000000") for column in ("latency_p99_ms", "failure_ratio"[:7] + "s")),
            require("failure_ratio <= 1") + require("requests >= 0") + require("images_per_s >= 0"),
            require("onnx-grpc / onnx-http >= 0.001", of="'images_per_s'"),
        )
    )
    verdicts = judged(tmp_path, text, book)
    assert {one.outcome for one in verdicts} == {"inconclusive"}
    assert exit_code(verdicts) == 3


def claims(chances: list[float], severity: str = "fail") -> list[Claim]:
    threshold = Threshold(1, parse_require("latency_p95_ms <= 1"), severity=severity)
    return [
        Claim(threshold=threshold, cell=str(at), evidence=an_evidence(chance))
        for at, chance in enumerate(chances)
    ]


def an_evidence(p_broken: float, p_kept: float = 1.0, beyond: bool = True) -> Evidence:
    """Of which four more repeats have a tenth of the chances."""
    return Evidence(
        value=2.0,
        low=1.5,
        high=2.5,
        chances=lambda more: (p_broken / 10, p_kept / 10) if more >= 4 else (p_broken, p_kept),
        beyond=beyond,
        beyond_then=beyond,
    )


def test_false_alarms_are_held_down_over_all_that_chance_has_a_part_in() -> None:
    serious = claims([0.01, 0.02, 0.5])
    assert _chances(serious) == pytest.approx([0.03, 0.04, 0.5])
    settled = Claim(threshold=serious[0].threshold, cell="x", settled="pass")
    others = [settled, *claims([0.001, 0.9, 0.9], "warn")]
    assert _chances([*serious, *others])[:3] == pytest.approx([0.03, 0.04, 0.5])
    assert _chances([*serious, *others])[3:] == pytest.approx([1.0, 0.003, 1.0, 1.0])


def test_what_is_broken_alone_is_not_so_among_many_and_takes_more_repeats() -> None:
    (claim,) = claims([0.02])
    assert verdict_of(claim, 0.02, 0.025, 1).outcome == "fail"
    among = verdict_of(claim, 0.2, 0.025, 1)
    assert (among.outcome, among.more_repeats) == ("inconclusive", 4)
    assert among.sentence.endswith("; 4 more repeats would decide, if like these.")
    # what is weighed with a hundred others must come down to a hundredth of the level, and does not
    assert verdict_of(claim, 1.0, 0.025, 1).more_repeats is None
    tolerated = replace(claim, evidence=an_evidence(0.02, p_kept=0.01, beyond=False))
    assert verdict_of(tolerated, 0.0001, 0.025, 1).outcome == "pass"
    never = replace(claim, evidence=replace(an_evidence(0.02), beyond_then=None))
    said = verdict_of(never, 0.2, 0.025, 1).sentence
    assert said.endswith("; no number of repeats like these would decide.")
    said = verdict_of(replace(never, fix="measure longer"), 0.2, 0.025, 1).sentence
    assert said.endswith(" is required; measure longer.")


def test_several_studies_are_judged_as_one(tmp_path: Path) -> None:
    found = judge(parse_gates(KEPT, "x"), source(tmp_path, a_study(), a_study()))
    assert {(one.cell, one.runs) for one in found} == {(HTTP, 10), (GRPC, 10)}
