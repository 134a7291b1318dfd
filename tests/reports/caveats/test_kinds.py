"""What holds of each kind of caveat: which invalidate a run, and what else follows from them."""

from itertools import pairwise
from pathlib import Path

import pytest

from reports.caveat import KINDS, Caveat, Trait, caveat, coded, gravest, without_consequences
from reports.study.study import load_study
from tests.reports.answers import row
from tests.reports.builder import Book
from tests.reports.example import MS, lognormal
from tests.reports.lines import triton
from tests.reports.study.test_fold import codes

GRAVEST_FIRST = {
    "ledger-damaged": "the ledger is damaged",
    "aborted": "aborted",
    "unfinished": "unfinished",
    "failed": "failed",
    "worker-lost": "a worker was lost",
    "worker-joined": "a worker joined",
    "users-missing": "users were missing",
    "server-lost": "the server restarted",
    "counters-reset": "the counters began again",
    "results-lost": "results were lost",
    "cut-short": "cut short",
    "cold-shape": "the server was cold",
    "answers-from-cache": "a cache answered",
    "no-data": "no request succeeded",
    "client-bound": "the client was the limit",
    "client-exhausted": "the client ran out of ports or file descriptors",
    "rate-missed": "the rate was not kept",
    "counts-mismatch": "the server counted other requests",
    "settings-differ": "the server's settings differed",
    "topology-differs": "the workers or hosts differed",
    "dropped-arrivals": "arrivals were dropped",
    "regime-change": "the server's speed changed",
    "drift": "latency drifted",
    "warming-up": "the server was warming up",
    "disturbed": "other processes took the cores",
    "failures": "requests failed",
}
"""All that invalidate a run, and in short why."""
VOID = list(GRAVEST_FIRST)[:14]


@pytest.mark.parametrize(
    ("trait", "codes"),
    [
        (Trait.TAINTS, [*GRAVEST_FIRST]),
        (Trait.IS_BOUNDED, ["failures"]),
        (Trait.OF_CLIENT, ["client-bound", "client-exhausted"]),
        (Trait.VOIDS, VOID),
        (Trait.SPLITS, ["worker-lost", "server-lost", "counters-reset", "results-lost"]),
        (Trait.SPOILS_SEARCH, ["aborted", "unfinished", "worker-lost"]),
        (Trait.BY_STOPPING, ["aborted", "unfinished", "cut-short", "no-data", "failures"]),
    ],
)
def test_of_which_kinds_it_holds(trait: Trait, codes: list[str]) -> None:
    assert coded(trait) == set(codes)
    assert {code for code in [*KINDS, "unheard-of"] if caveat(code, "").has(trait)} == set(codes)
    assert trait is not Trait.TAINTS or {code for code in KINDS if caveat(code, "").tainted} == set(codes)


def test_of_several_caveats_the_gravest_is_told() -> None:
    assert {code: gravest({code}) for code in KINDS} == dict.fromkeys(KINDS, "") | GRAVEST_FIRST
    for graver, other in pairwise(GRAVEST_FIRST):
        assert gravest({other, "few-samples", graver}) == GRAVEST_FIRST[graver]
    assert gravest(()) == gravest({"few-samples", "unheard-of"}) == ""


def test_a_caveat_has_the_advice_of_its_code() -> None:
    assert caveat("gpu-shared", "two") == Caveat("gpu-shared", "two", KINDS["gpu-shared"].advice)
    assert caveat("unheard-of", "?").advice == "Look at the logs before trusting the number."


def test_a_consequence_is_no_finding_beside_its_cause_alone() -> None:
    for cause, kind in KINDS.items():
        assert kind.explains <= KINDS.keys() - {cause}
        assert not [other for other in kind.explains if cause in KINDS[other].explains]
        for other in KINDS.keys() - {cause}:
            both = (caveat(other, "b"), caveat(cause, "a"))
            told = [one.code for one in without_consequences(both)]
            assert (other in told, cause in told) == (
                other not in kind.explains,
                cause not in KINDS[other].explains,
            )
    assert without_consequences((caveat("unheard-of", ""), caveat("counts-mismatch", "")))[1:]


@pytest.mark.parametrize(
    ("known", "others"),
    [
        (("worker-lost",), ("counts-mismatch", "cut-short")),
        (("results-lost",), ("counts-mismatch",)),
        ((), ("counts-mismatch", "cut-short")),
    ],
)
def test_the_next_step_is_against_the_cause(
    tmp_path: Path, known: tuple[str, ...], others: tuple[str, ...]
) -> None:
    """Of a run whose worker was killed: the server counted what that one sent, and did not tell."""
    book = Book()
    values = {"w0": lognormal(1, 9.0, 300), "w1": lognormal(2, 9.0, 300)}
    tag = book.add("onnx-http", 1, 2, values, counters=triton(900, 1, MS))
    if "cut-short" in others:
        book.records = [one for one in book.records if (one["kind"], one.get("worker")) != ("drained", "w1")]
    for code in known:
        book.caveat(tag, code, "seen as it happened")
    book.footer()
    study = load_study(book.write(tmp_path))
    (run,) = study.runs
    found = set(codes(run)) & {*known, *others}
    cause = known or ("cut-short",)
    assert found == set(cause)
    assert row(study, "Next step").startswith(KINDS[cause[0]].advice)
