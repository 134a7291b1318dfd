"""What a drill must have seen, and every way in which it may have gone otherwise."""

from dataclasses import replace
from typing import Any

import pytest

from tests.drills.judging import SOME, Expected, differences
from tests.drills.seen import FILES, Seen

EXPECTED = Expected(
    1, {"reset": "half", "refused": SOME}, ("failures",), ("results-lost",), in_flight=8, says=("was .*lost",)
)
SEEN = Seen(
    exit_code=1, text="worker w1 was\nquite lost", status="complete", ok=92, answered=100, least_ok=90,
    failures={"reset": 3, "refused": 1}, spoilt={"half": 3}, caveats=frozenset({"failures", "few-samples"}),
    limit="inconclusive", shown=0, files=frozenset({*FILES, "ledger.jsonl", "logs"}),
)  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "difference"),
    [
        ({"exit_code": None}, "the study did not end by its deadline"),
        ({"exit_code": 0}, "exit code 0, not 1"),
        ({"text": "worker w1 was lost\nTraceback (most recent call last)"}, "a traceback on the terminal"),
        ({"text": "worker w1"}, "the terminal lacks “was …lost”"),
        ({"failures": SEEN.failures | {"other": 2}}, "2 failures of kind other, which must not occur"),
        ({"failures": {"reset": 3}}, "no failure of kind refused"),
        ({"spoilt": {"half": 2}}, "3 failures of kind reset, and the server met 2 requests so"),
        ({"failures": {"refused": 1}, "spoilt": {}}, "no request met the fault half"),
        ({"caveats": frozenset()}, "no caveat failures"),
        ({"caveats": frozenset({"failures", "results-lost"})}, "a caveat results-lost"),
        ({"limit": "offered-load"}, "limit offered-load, not inconclusive"),
        ({"ok": 101}, "101 successes in the ledger, and the server gave 100 answers"),
        ({"least_ok": 93}, "92 successes in the ledger, which had 93 before the fault"),
        ({"status": "failed"}, "the study's status is failed, not complete"),
        ({"shown": 2, "shown_text": "broken"}, "reports show ended with 2: broken"),
        ({"shown_text": "Traceback"}, "a traceback of reports show"),
        ({"files": frozenset(FILES[1:])}, "missing: study.json"),
        ({"files": frozenset({*FILES, ".cells.csv.7"})}, "half-written: .cells.csv.7"),
        ({"seconds": 3_604}, "timeline.csv reaches over 3604 seconds"),
        ({"processes": ("locust",)}, "left running: locust"),
        ({"temporary": ("inferswarm-logs",)}, "left in the temporary folder: inferswarm-logs"),
    ],
)
def test_each_thing_that_may_be_otherwise(changes: dict[str, Any], difference: str) -> None:
    assert differences(EXPECTED, SEEN) == []
    assert differences(EXPECTED, replace(SEEN, **changes)) == [difference]


def test_a_generator_that_was_held_up_makes_a_study_inconclusive() -> None:
    caveats = frozenset({"failures", "client-bound"})
    held_up = replace(SEEN, exit_code=3, caveats=caveats, because=frozenset({"client-bound"}))
    assert differences(EXPECTED, held_up) == []
    assert differences(EXPECTED, replace(held_up, exit_code=0)) == ["exit code 0, not 1"]
    assert differences(EXPECTED, replace(held_up, ok=91)) == [
        "91 successes in the ledger, and the server gave 100 answers"
    ]


@pytest.mark.parametrize("because", [{"client-bound", "worker-lost"}, {"worker-lost"}, set()])
def test_a_generator_that_was_held_up_excuses_no_other_doubt(because: set[str]) -> None:
    caveats = frozenset({"failures", "client-bound", *because})
    doubted = replace(SEEN, exit_code=3, caveats=caveats, because=frozenset(because))
    assert differences(EXPECTED, doubted) == ["exit code 3, not 1"]


def test_answers_to_requests_that_had_timed_out_are_missing() -> None:
    expected = replace(EXPECTED, failures={**EXPECTED.failures, "timeout": SOME})
    late = replace(SEEN, ok=90, failures={**SEEN.failures, "timeout": 2})
    assert differences(expected, late) == []
    assert len(differences(expected, replace(late, answered=101))) == 1
