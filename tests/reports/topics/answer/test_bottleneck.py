"""The rows that say what limits the runs and what to do next, and the table of limits."""

from dataclasses import replace
from pathlib import Path

import pytest

from reports.caveat import KINDS
from reports.limit import Limit
from reports.study.study import load_study
from reports.topics.answer.bottleneck import bottleneck, bottlenecks, limited, next_step, words
from tests.reports.answers import row
from tests.reports.builder import Book
from tests.reports.limit_runs import LIMITS
from tests.reports.open_load import texts
from tests.reports.topics.answer.measured import add_way, invalidated, serial, with_limits

ADVICE = "more instances, or a faster model."


def compute(busy: float, took: str = "80 of 96 ms") -> Limit:
    evidence = f"compute took {took} a request; the model's one instance was executing {busy:g} % of the time"
    return Limit("server-compute", evidence, ADVICE)


LINK = Limit("link", "97 % of the link's rate was sent", "a faster link.")
UNKNOWN = Limit("inconclusive", "the server's parts could not be read", "let them be read.")


def test_one_limit_has_its_evidence_as_ranges_over_its_runs(tmp_path: Path) -> None:
    study = serial(tmp_path, onnx_http=[10, 11], onnx_grpc=[20, 21])
    study = with_limits(study, compute(83), compute(100), compute(91), compute(84))
    answer = bottleneck(study)
    assert answer is not None
    assert answer.said == "Server compute in 4 of 4 runs."
    assert answer.detail == "The model's one instance was executing 83 to 100 % of the time."


def test_several_limits_are_counted_the_most_frequent_first_and_what_is_unknown_last(tmp_path: Path) -> None:
    study = serial(tmp_path, onnx_http=[10, 11, 12], onnx_grpc=[20, 21, 22])
    study = with_limits(study, UNKNOWN, LINK, compute(83), compute(90), UNKNOWN, UNKNOWN)
    answer = bottleneck(study)
    assert answer is not None
    assert answer.said == "Server compute in 2, link in 1, unknown in 3 of 6 runs."
    assert answer.detail == "The model's one instance was executing 83 to 90 % of the time."


def test_of_many_limits_three_are_named(tmp_path: Path) -> None:
    codes = ("link", "link", "client-cpu", "client-cpu", "connections", "connections", "server-queue")
    study = serial(tmp_path, onnx_http=range(10, 17))
    study = with_limits(study, *(Limit(code, "seen", "do this.") for code in codes))
    answer = bottleneck(study)
    assert answer is not None
    assert answer.said == "Client cpu in 2, connections in 2, link in 2, others in 1 of 7 runs."


def test_where_no_limit_is_known_it_says_why(tmp_path: Path) -> None:
    study = with_limits(serial(tmp_path, onnx_http=[10, 11]), UNKNOWN, UNKNOWN)
    answer = bottleneck(study)
    assert answer is not None
    assert (answer.said, answer.detail) == (
        "Unknown in all runs.",
        "The server's parts could not be read.",
    )


def unknown(evidence: str, advice: str = "fix the cause.") -> Limit:
    return Limit("inconclusive", evidence, advice)


def test_each_reason_why_no_limit_is_known_has_its_runs_even_where_one_advice_is_for_all(
    tmp_path: Path,
) -> None:
    ended = unknown("the run ended as failed")
    few = [unknown(f"only {count} requests succeeded") for count in (3, 7)]
    study = with_limits(serial(tmp_path, onnx_http=[10, 11, 12, 13]), ended, *few, UNKNOWN)
    answer = bottleneck(study)
    assert answer is not None
    assert (answer.said, answer.detail) == (
        "Unknown in all runs.",
        "Only 3 to 7 requests succeeded (2 runs); the run ended as failed (1 run); "
        "the server's parts could not be read (1 run).",
    )


def test_of_many_reasons_three_are_named(tmp_path: Path) -> None:
    reasons = [unknown(f"reason {name}") for name in ("a", "b", "b", "c", "d", "e")]
    answer = bottleneck(with_limits(serial(tmp_path, onnx_http=range(10, 16)), *reasons))
    assert answer is not None
    assert answer.detail == "Reason b (2 runs); reason a (1 run); reason c (1 run); others (2 runs)."


def test_evidence_of_some_of_the_runs_says_of_how_many(tmp_path: Path) -> None:
    silent = Limit("server-compute", "compute took 80 of 96 ms a request", ADVICE)
    study = with_limits(serial(tmp_path, onnx_http=[10, 11, 12]), compute(83), silent, compute(90))
    answer = bottleneck(study)
    assert answer is not None
    assert answer.detail == "The model's one instance was executing 83 to 90 % of the time (in 2 of 3)."


def test_without_any_verdict_there_is_no_row(tmp_path: Path) -> None:
    study = with_limits(serial(tmp_path, onnx_http=[10, 11]), None, None)
    assert (bottleneck(study), next_step(study)) == (None, None)


def test_floors_are_not_counted(tmp_path: Path) -> None:
    study = with_limits(serial(tmp_path, onnx_http=[10], onnx_http_floor=[1]), compute(83), LINK)
    answer = bottleneck(study)
    assert answer is not None
    assert answer.said == "Server compute in 1 of 1 run."
    assert next_step(serial(tmp_path / "alone", onnx_http_floor=[1])) is None


def test_the_next_step_is_for_the_fastest_endpoint(tmp_path: Path) -> None:
    study = with_limits(serial(tmp_path, onnx_http=[20], onnx_grpc=[10]), compute(83), LINK)
    assert row(study, "Next step") == "A faster link. onnx-grpc: limited by link."


def test_an_unknown_limit_has_its_reason(tmp_path: Path) -> None:
    study = with_limits(serial(tmp_path, onnx_http=[20], onnx_grpc=[10]), compute(83), UNKNOWN)
    assert row(study, "Next step") == "Let them be read. onnx-grpc: the server's parts could not be read."


def test_where_most_runs_are_invalidated_that_is_fixed_first(tmp_path: Path) -> None:
    ways = {"onnx-http": [10, 11], "onnx-grpc": [20, 21]}
    half = invalidated(tmp_path / "half", ways, ("onnx-http", 1), ("onnx-grpc", 1))
    loop = "Find what the users call that does not yield to gevent (a sleep, a lock, a file); or add workers."
    assert row(half, "Next step") == f"{loop} client-bound invalidates 2 of 4 runs."
    unknown = with_limits(half, *[compute(83)] * 4)
    assert row(unknown, "Next step") == (
        f"{KINDS['client-bound'].advice} client-bound invalidates 2 of 4 runs."
    )
    throttled = Limit("throttled", "its cgroup stopped it for 40 % of the time", "Raise cpu.max.")
    known = with_limits(half, throttled, throttled, compute(83), throttled)
    assert row(known, "Next step") == "Raise cpu.max. client-bound invalidates 2 of 4 runs."
    few = with_limits(invalidated(tmp_path / "few", ways, ("onnx-http", 1)), *[compute(83)] * 4)
    assert row(few, "Next step") == (
        "More instances, or a faster model. onnx-http: limited by server compute."
    )


CAUSES = {
    "client-bound": ["client-cpu", "client-loop", "throttled", "cpu-stolen"],
    "client-exhausted": ["client-ports"],
    "failures": ["client-ports", "rate-limited", "server-full"],
}


@pytest.mark.parametrize("code", CAUSES)
def test_a_caveat_is_cured_by_what_brought_it_about(tmp_path: Path, code: str) -> None:
    book = Book()
    add_way(book, "onnx-http", [10])
    book.caveat({"cell": "onnx-http/b1/c1", "repeat": 1}, code, "so it was")
    study = load_study(book.write(tmp_path))
    steps = [row(with_limits(study, Limit(limit, "seen", "Cure.")), "Next step") for limit in sorted(LIMITS)]
    cured = [limit for limit, said in zip(sorted(LIMITS), steps, strict=True) if said.startswith("Cure.")]
    assert cured == sorted(CAUSES[code])
    assert steps[0] == f"{KINDS[code].advice} {code} invalidates 1 of 1 run."


def test_the_table_has_a_row_for_each_limit_and_names_its_first_cells(tmp_path: Path) -> None:
    ways = {f"w{at}_http": [10 + at] for at in range(6)}
    study = with_limits(serial(tmp_path, **ways), LINK, *(compute(80 + at) for at in range(5)))
    assert texts(bottlenecks(study)) == [
        [
            *("server-compute", "5"),
            "w1-http/b1/c1, w2-http/b1/c1, w3-http/b1/c1, w4-http/b1/c1 and 1 more",
            "compute took 80 of 96 ms a request; "
            "the model's one instance was executing 80 to 84 % of the time",
            ADVICE,
        ],
        ["link", "1", "w0-http/b1/c1", "97 % of the link's rate was sent", "a faster link."],
    ]


def test_the_table_has_no_floors(tmp_path: Path) -> None:
    study = with_limits(serial(tmp_path, onnx_http=[10], onnx_http_floor=[1]), compute(83), LINK)
    assert [shown[:2] for shown in texts(bottlenecks(study))] == [["server-compute", "1"]]


def test_runs_with_one_limit_and_other_advice_are_rows_of_their_own(tmp_path: Path) -> None:
    other = replace(compute(90), advice="raise the batch.")
    study = with_limits(serial(tmp_path, onnx_http=[10, 11, 12]), compute(83), other, compute(84))
    assert [(one.limit.advice, len(one.runs)) for one in limited(study.runs)] == [
        (ADVICE, 2),
        ("raise the batch.", 1),
    ]


def test_a_limit_in_words() -> None:
    codes = ("server-compute", "link", "inconclusive", "batches-not-full", "nagle", "cpu-stolen")
    assert [words(code) for code in codes] == [
        *("server compute", "link", "unknown", "batches not full", "Nagle's algorithm", "stolen CPU"),
    ]
