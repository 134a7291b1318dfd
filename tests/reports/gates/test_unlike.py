"""Studies that are judged as one must be of one thing, and each of them counts once."""

from dataclasses import replace
from typing import Any

import pytest

from reports.gates.require import GateError
from reports.gates.source import check_once
from tests.reports.gates.book import require
from tests.reports.gates.rows import GRPC, HTTP, Run, a_run, a_source, said_of
from tests.reports.gates.test_compared import BASELINE, RATIO

HERE, THERE = ({"fingerprint": {"cpu": name}} for name in ("Example CPU", "Other"))
KEPT = require("images_per_s >= 45")
MAY = "[baseline]\nmay_differ = ['cpu']\n"
DIFFER = "differ in cpu (Example CPU or Other): "
FIX = "judge each directory alone, or let may_differ of [baseline] allow that."
BEFORE = ["2026-10-01", "2026-10-02", "2026-10-03"]


def runs(ms: float = 10.0) -> list[Run]:
    told = {"latency_p95_ms": ms, "latency_max_ms": 2 * ms, "images_per_s": 1_000 / ms}
    return [a_run(cell, at, **told) for cell in (HTTP, GRPC) for at in (1, 2, 3)]


def test_nothing_is_told_of_studies_of_several_machines_as_if_they_were_of_one() -> None:
    both = a_source(runs(), runs(11.0), headers=[HERE, THERE])
    found = said_of(both, KEPT + RATIO + require("latency_max_ms <= 1") + require("failure_ratio <= 0"))
    assert {verdict.outcome for verdict in found} == {"inconclusive"}
    assert {verdict.more_repeats for verdict in found} == {None}
    assert found[1].sentence == f"{GRPC}: no run of it counts: its studies {DIFFER}{FIX}"
    assert found[2].sentence.endswith(f"no run of {GRPC} counts: its studies {DIFFER}{FIX}")
    assert {verdict.outcome for verdict in said_of(both, KEPT + MAY)} == {"pass"}


@pytest.mark.parametrize(
    ("now", "then", "said"),
    [
        ([HERE, THERE], [HERE, HERE, THERE], f"the baseline's studies {DIFFER}make it of alike ones, or let"),
        ([HERE], [HERE, HERE, THERE], "not the baseline's: cpu (Example CPU here, Example CPU or Other in"),
        ([HERE], [THERE] * 3, "not the baseline's: cpu (Example CPU here, Other in the baseline)"),
        ([HERE, THERE], [HERE] * 3, "not the baseline's: cpu (Example CPU or Other here, Example CPU in"),
    ],
)
def test_a_baseline_of_other_machines_tells_nothing(
    now: list[dict[str, Any]], then: list[dict[str, Any]], said: str
) -> None:
    source = a_source(*[runs()] * len(now), headers=now)
    baseline = a_source(*[runs()] * 3, headers=then, began=BEFORE)
    (found,) = said_of(source, BASELINE, baseline)
    assert (found.outcome, said in found.sentence) == ("inconclusive", True)
    (allowed,) = said_of(source, BASELINE + MAY, baseline)
    assert allowed.outcome == "pass"


def test_a_study_is_told_by_its_name_and_when_it_began() -> None:
    began = ("11:00:00.123Z", "11:00:00.124Z", "11:00:00.123Z")
    sides = a_source([], [], [], began=began, headers=[{}, {}, {"study": "step8"}]).sides
    check_once(sides)
    with pytest.raises(GateError) as error:
        check_once([*sides, replace(sides[1], place="again")])
    assert str(error.value) == "again: is named twice, or holds the same study as study1: name each once."
