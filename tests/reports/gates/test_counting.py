"""Which runs count, and what is said of the others."""

import pytest

from reports.caveat import KINDS, Trait
from reports.gates.source import Counted, Counting
from reports.gates.thresholds import parse_gates
from tests.reports.gates.book import require
from tests.reports.gates.rows import HTTP, Run, a_run, a_source, repeated, said_of

OPEN = "onnx-http/b1/r50"
LONGER = "measure longer: --iterations or --seconds"


def counted(runs: list[Run], column: str, *thresholds: str, pooled: bool = False) -> Counted:
    found = a_source(runs)
    (cell,) = found.runs
    gates = parse_gates("".join(thresholds) or require("failures <= 1"), "thresholds.toml")
    return Counting(gates.thresholds, {}).counted(found.runs[cell], found.cells[cell], column, pooled)


def left_out(column: str, *codes: str, pooled: bool = False, **numbers: float) -> str:
    """What is said of a run beside a sound one, which must count."""
    told = {column: 1.0}
    found = counted([a_run(**told), a_run(HTTP, 2, *codes, **told | numbers)], column, pooled=pooled)
    assert found.runs[0].repeat == 1
    assert len(found.runs) == (1 if found.said else 2)
    return found.said.removeprefix("1 run left out (").removesuffix(")")


def test_runs_that_nothing_is_wrong_with_count() -> None:
    assert left_out("latency_p99_ms") == left_out("images_per_s", "few-samples") == ""
    assert counted(repeated(HTTP, "images_per_s", 1, 2, failures=3), "images_per_s").results == 19_994


@pytest.mark.parametrize("code", [code for code, kind in KINDS.items() if Trait.TAINTS in kind.traits])
@pytest.mark.parametrize(
    "column", ["latency_p99_ms", "images_per_s", "failure_ratio", "failures", "requests"]
)
def test_a_run_that_a_caveat_disqualifies_counts_for_nothing_but_what_judges_it(
    code: str, column: str
) -> None:
    own = {"failures"} | ({"no-data"} if column in ("failure_ratio", "failures") else set())
    assert left_out(column, code) == ("" if code in own else code)
    # whichever other excused or harmless one stands before it
    assert left_out(column, "few-samples", "failures", code) == ("" if code in own else code)


@pytest.mark.parametrize(
    ("column", "code", "said"),
    [
        ("latency_p99_ms", "dropped-arrivals", ""),
        ("latency_p99_ms", "no-data", ""),
        ("latency_p99_ms", "client-bound", "client-bound"),
        ("failure_ratio", "dropped-arrivals", "dropped-arrivals"),
        ("failure_ratio", "no-data", ""),
    ],
)
def test_where_requests_are_pooled_those_without_a_reply_are_judged_too(
    column: str, code: str, said: str
) -> None:
    assert left_out(column, code, pooled=True) == said


@pytest.mark.parametrize("column", ["failure_ratio", "failures", "abandoned"])
def test_a_run_without_a_success_counts_for_its_failures_alone(column: str) -> None:
    assert left_out(column, "no-data", requests=5, failures=5) == ""
    assert left_out(column, requests=0) == "no results"
    assert left_out("images_per_s", requests=5, failures=5) == "no results"
    assert left_out("images_per_s", requests=6, failures=5) == ""
    assert left_out("latency_p99_ms", pooled=True, requests=5, failures=5) == ""
    assert left_out("latency_p99_ms", pooled=True, requests=0) == "no results"


@pytest.mark.parametrize(
    ("column", "least"), [("latency_p50_ms", 20), ("latency_p95_ms", 200), ("service_p99_ms", 1_000)]
)
def test_a_percentile_of_too_few_results_does_not_count_unless_runs_are_pooled(
    column: str, least: int
) -> None:
    assert left_out(column, requests=least + 3, failures=3) == ""
    assert left_out(column, requests=least + 2, failures=3) == f"fewer than {least:,} results, {LONGER}"
    assert left_out(column, pooled=True, requests=1) == ""


@pytest.mark.parametrize("column", ["images_per_s", "requests_per_s", "offered_per_s"])
def test_a_rate_of_open_load_is_what_was_asked(column: str) -> None:
    runs = [
        run
        for cell in (OPEN, OPEN.replace("http", "grpc"))
        for run in repeated(cell, column, 9, 9, 9, latency_p50_ms=9)
    ]
    ratio = "onnx-grpc / onnx-http >= 0.95"
    pair, alone, _ = said_of(a_source(runs), require(ratio, of=f"'{column}'") + require(f"{column} >= 1"))
    why = f"counts: 3 runs left out ({column} of open-loop load is what was asked: bound a latency)."
    assert (pair.outcome, alone.outcome, alone.more_repeats) == ("inconclusive", "inconclusive", None)
    assert pair.sentence.endswith(f"no run of onnx-grpc/b1/r50 {why}")
    assert alone.sentence == f"onnx-http/b1/r50: no run of it {why}"
    latency = said_of(a_source(runs), require("onnx-grpc / onnx-http <= 1", of="'latency_p50_ms'"))
    assert [one.outcome for one in latency] == ["pass"]


def test_a_run_whose_value_is_unknown_does_not_count() -> None:
    found = counted([a_run(gpu_power_w=1), a_run(HTTP, 2), a_run(HTTP, 3)], "gpu_power_w")
    assert ([run.repeat for run in found.runs], found.said) == (
        [1],
        "2 runs left out (gpu_power_w is not known)",
    )
    shares = counted(
        [a_run(unexplained_ms=1, latency_mean_ms=4), a_run(HTTP, 2, unexplained_ms=1)], "unexplained_share"
    )
    assert [run.known("unexplained_share") for run in shares.runs] == [0.25]


@pytest.mark.parametrize(
    ("fields", "kept"),
    [
        *(({}, 1), ({"endpoint": "'onnx-http'"}, 1), ({"endpoint": "'onnx-grpc'"}, 2)),
        *(({"severity": "'warn'"}, 2), ({"least_effect": "0.1"}, 2)),
    ],
)
def test_bounds_on_evidence_leave_out_runs_of_the_cells_that_they_are_of(
    fields: dict[str, str], kept: int
) -> None:
    runs = [a_run(images_per_s=1, requests=1_000), a_run(HTTP, 2, images_per_s=1, requests=950)]
    found = counted(runs, "images_per_s", require("requests >= 1000", **fields))
    assert len(found.runs) == kept
    assert found.said == ("" if kept == 2 else "1 run left out (requests >= 1000 is not kept)")


def test_evidence_that_is_unknown_is_no_evidence_and_bounds_do_not_judge_themselves() -> None:
    runs = repeated(HTTP, "images_per_s", 1, 2, requests=500)
    unknown = counted(runs, "images_per_s", require("worker_cpu_pct <= 80"))
    assert unknown.said == "2 runs left out (worker_cpu_pct is not known)"
    assert len(counted(runs, "requests", require("requests >= 1000")).runs) == 2
    fact = counted(repeated(HTTP, "images_per_s", 1, 2, failures=5), "images_per_s", require("failures <= 1"))
    assert len(fact.runs) == 2


def test_a_reason_is_counted_once_for_each_run() -> None:
    codes = (["client-bound", "worker-lost"], ["worker-lost"], ["client-bound"], [])
    runs = [a_run(HTTP, at, *those, images_per_s=1) for at, those in enumerate(codes, 1)]
    found = counted(runs, "images_per_s")
    assert found.said == "2 runs left out (client-bound); 1 run left out (worker-lost)"
    assert [run.repeat for run in found.runs] == [4]
