"""Verdicts on whole studies: what passes nothing, what stops, and what is weighed together."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from reports.gates.evidence import Evidence
from reports.gates.judge import judge
from reports.gates.require import GateError, parse_require
from reports.gates.thresholds import Threshold, parse_gates
from reports.gates.verdict import Claim, Verdict, exit_code, verdict_of
from tests.reports.gates.book import outcomes, require
from tests.reports.gates.rows import GRPC, HTTP, Run, a_run, a_source, broken_at, repeated, said_of

KEPT = require("images_per_s >= 50")
BROKEN = require("images_per_s >= 99", endpoint="'onnx-grpc'")
WARNING = "severity = 'warn'\n"


def runs(http: float = 100.0, grpc: float = 60.0) -> list[Run]:
    """Three repeats of both, a bit off."""
    sides = ((HTTP, http), (GRPC, grpc))
    return [
        run for cell, per_s in sides for run in repeated(cell, "images_per_s", per_s, per_s + 1, per_s - 1)
    ]


def judged(text: str, *studies: list[Run], **told: object) -> list[Verdict]:
    return judge(parse_gates(text, "thresholds.toml"), a_source(*studies, **told))  # type: ignore[arg-type]


def test_every_threshold_meets_every_cell_that_it_is_of_in_the_files_order() -> None:
    verdicts = judged(BROKEN + KEPT, runs())
    assert [(one.threshold, one.cell, one.outcome) for one in verdicts] == [
        *((1, GRPC, "fail"), (2, HTTP, "pass"), (2, GRPC, "pass")),
        *((0, HTTP, "pass"), (0, GRPC, "pass")),
    ]
    assert [one.line for one in verdicts] == [1, 4, 4, 1, 1]
    assert exit_code(verdicts) == 1


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (KEPT, 0),
        (KEPT + require("images_per_s >= 50", batch="64"), 3),
        (KEPT + BROKEN, 1),
        (require("images_per_s >= 50", batch="64") + BROKEN, 1),
        (KEPT + BROKEN + WARNING, 0),
        (KEPT + require("images_per_s >= 50", batch="64") + WARNING, 0),
    ],
)
def test_a_fail_goes_before_what_cannot_be_told_and_warnings_decide_nothing(text: str, code: int) -> None:
    assert exit_code(judged(text, runs())) == code


def test_where_nothing_decides_nothing_passed() -> None:
    verdicts = judged(KEPT + WARNING, runs())
    assert exit_code([]) == exit_code([one for one in verdicts if one.severity == "warn"]) == 3


@pytest.mark.parametrize(
    ("ended", "said"),
    [
        (("interrupted",), "study0 is interrupted"),
        (("failed",), "study0 failed"),
        (("unfinished",), "study0 is unfinished"),
        (("complete", "failed"), "study1 failed"),
        (("failed", "interrupted"), "study0 failed and study1 is interrupted"),
    ],
)
def test_a_study_that_was_cut_off_passes_nothing(ended: tuple[str, ...], said: str) -> None:
    text = KEPT + BROKEN + require("images_per_s >= 60", endpoint="'onnx-grpc'")
    kept, _, broken, unsure, *own = judged(text, *[runs()] * len(ended), ended=ended)
    assert [one.outcome for one in (kept, broken, unsure, *own)] == [
        "inconclusive",
        "fail",
        *["inconclusive"] * 3,
    ]
    assert kept.sentence.endswith(f"at least 50.0/s is required, which is no pass, since {said}.")
    assert "which is no pass" not in broken.sentence + unsure.sentence


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (require("images_per_s >= 1", endpoint="'onnx-htpp'"), "did you mean onnx-http?"),
        (require("images_per_s / baseline >= 1"), "a threshold is to a baseline, and none is named: give"),
    ],
)
def test_what_the_study_cannot_answer_is_refused(text: str, said: str) -> None:
    with pytest.raises(GateError) as error:
        judged(text, runs())
    assert said in str(error.value)


def test_studies_without_requests_never_pass() -> None:
    columns = ("latency_p99_ms", "failures", "failure_ratio", "latency_max_ms", "abandoned")
    text = "".join(require(f"{column} <= 1") for column in columns)
    text += require("requests >= 0") + require("images_per_s >= 0")
    text += require("onnx-grpc / onnx-http >= 0.001", of="'images_per_s'")
    verdicts = judged(text, [a_run(cell, requests=0, images_per_s=1) for cell in (HTTP, GRPC)])
    assert {one.outcome for one in verdicts} == {"inconclusive"}
    assert all(" counts: 1 run left out (no results)" in one.sentence for one in verdicts)
    assert exit_code(verdicts) == 3


def of_chances(serious: list[float], warnings: list[float]) -> Mapping[str, str]:
    """The outcomes by cell, where repeats of each show that its bound is broken with such a chance to err."""
    made = [(f"a{at}-http/b1/c1", p) for at, p in enumerate(serious)] + [
        (f"w{at}-http/b1/c1", p) for at, p in enumerate(warnings)
    ]
    text = require("images_per_s <= 100", cell="'a*'")
    text += require("images_per_s <= 100", cell="'w*'") + WARNING if warnings else ""
    return outcomes(said_of(a_source([run for cell, p in made for run in broken_at(p, cell)]), text))


@pytest.mark.parametrize(
    ("serious", "warnings", "failed"),
    [
        ([0.0249], [], ["a0"]),
        ([0.0251], [], []),
        ([0.5, 0.0124], [], ["a1"]),
        ([0.5, 0.0126], [], []),
        ([0.0082, 0.0124, 0.0249], [], ["a0", "a1", "a2"]),
        ([0.0084, 0.001, 0.5], [], ["a0", "a1"]),
        ([0.0084, 0.0084, 0.5], [], []),
        ([0.0249], [0.5] * 3, ["a0"]),
        ([0.5] * 3, [0.0124, 0.5], ["w0"]),
        ([0.5] * 3, [0.0126, 0.5], []),
        ([0.0001], [0.0126, 0.5], ["a0"]),
    ],
)
def test_false_alarms_are_held_down_over_all_that_chance_has_a_part_in(
    serious: list[float], warnings: list[float], failed: list[str]
) -> None:
    found = of_chances(serious, warnings)
    assert [cell.partition("-")[0] for cell, outcome in found.items() if outcome == "fail"] == failed


def test_what_is_settled_makes_nothing_else_less_sure() -> None:
    text = require("images_per_s <= 100") + "".join(require(f"latency_max_ms <= {ms}") for ms in range(1, 9))
    runs = [
        replace(run, row=replace(run.row, numbers={**run.row.numbers, "latency_max_ms": 5}))
        for run in broken_at(0.0249)
    ]
    assert judged(text, runs)[0].outcome == "fail"


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


CLAIM = Claim(
    threshold=Threshold(1, parse_require("latency_p95_ms <= 1")), cell="x", evidence=an_evidence(0.02)
)


def test_what_is_broken_alone_is_not_so_among_many_and_takes_more_repeats() -> None:
    assert verdict_of(CLAIM, 0.02, 0.025, 1).outcome == "fail"
    among = verdict_of(CLAIM, 0.2, 0.025, 1)
    assert (among.outcome, among.more_repeats) == ("inconclusive", 4)
    assert among.sentence.endswith("; 4 more repeats would decide, if like these.")
    # what is weighed with a hundred others must come down to a hundredth of the level, and does not
    assert verdict_of(CLAIM, 1.0, 0.025, 1).more_repeats is None
    tolerated = replace(CLAIM, evidence=an_evidence(0.02, p_kept=0.01, beyond=False))
    assert verdict_of(tolerated, 0.0001, 0.025, 1).outcome == "pass"
    never = replace(CLAIM, evidence=replace(an_evidence(0.02), beyond_then=None))
    said = verdict_of(never, 0.2, 0.025, 1).sentence
    assert said.endswith("; no number of repeats like these would decide.")
    said = verdict_of(replace(never, fix="measure longer"), 0.2, 0.025, 1).sentence
    assert said.endswith(" is required; measure longer.")


@pytest.mark.parametrize(
    ("adjusted", "p_kept", "beyond", "outcome"),
    [
        *(
            (0.025, 1.0, True, "fail"),
            (0.026, 1.0, True, "inconclusive"),
            (0.025, 1.0, False, "inconclusive"),
        ),
        *((1.0, 0.025, False, "pass"), (1.0, 0.026, False, "inconclusive"), (0.01, 0.01, True, "fail")),
    ],
)
def test_an_outcome_takes_a_chance_within_the_level(
    adjusted: float, p_kept: float, beyond: bool, outcome: str
) -> None:
    found = verdict_of(replace(CLAIM, evidence=an_evidence(0.02, p_kept, beyond)), adjusted, 0.025, 1)
    assert found.outcome == outcome


def test_several_studies_are_judged_as_one() -> None:
    found = judged(KEPT, runs(), runs())
    assert {(one.cell, one.runs) for one in found} == {(HTTP, 6), (GRPC, 6)}
