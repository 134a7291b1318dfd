"""Which caveats the counts of a run bring: those of its workers, of the ledger and of the server."""

from collections import Counter
from typing import Any

import pytest

from reports.caveat import caveat
from reports.caveats.run import (
    SERVERS_OWN,
    kind_of_code,
    littles_law,
    random_input,
    run_caveats,
    varying_load,
)
from reports.fold.server import ServerSide
from reports.fold.windows import Windows
from reports.ledger.ledger import Record
from tests.reports.limit_runs import HEALTHY
from tests.reports.parts import changed

OK = 10_000
"""Successes: enough for each percentile."""
GAP = caveat("probe-gap", "no counters")
OTHERS = "requests and at most 2 of other phases, the server counted 10006"
FEWER = (
    "the server counted only 9,999 of 10,000 requests that succeeded: several servers may stand behind this "
    "address, or a proxy answers some"
)
IDLE = "of their time passed between an answer and the next request"
THOUGHT = "10 users waited for answers or thought as"
BOTH = [{"users": 4, "users_ns": 1}, {"users": 6, "users_ns": 1}]


def said(
    finished: int | None = OK, status: str = "done", note: str = "", workers: str = "w0", **known: Any
) -> dict[str, str]:
    """What is said of a run of worker w0, which says that it finished so many; None where it says nothing."""
    server = ServerSide(**{name: known.pop(name) for name in ("requests", "several", "gap") if name in known})
    tallies = {name: Counter(value) for name, value in known.items() if isinstance(value, dict)}
    counts = Windows(**{"ok": OK} | known | tallies)
    drained = [] if finished is None else [{"worker": "w0", "finished": finished}]
    return {one.code: one.text for one in run_caveats(status, note, counts, workers.split(), drained, server)}


@pytest.mark.parametrize(
    ("known", "code", "text"),
    [
        ({}, "", ""),
        ({"status": "aborted"}, "aborted", "the run ended as aborted"),
        ({"status": "failed", "note": "the server died"}, "failed", "the server died"),
        ({"note": "only a note"}, "", ""),
        ({"ok": 0, "finished": 0}, "no-data", "no request succeeded in the measure phase"),
        ({"ok": 19, "finished": 19}, "few-samples", "n=19: p50, p90, p95, p99 and p99.9 are not shown"),
        ({"ok": 9_999, "finished": 9_999}, "few-samples", "n=9,999: p99.9 is doubtful"),
        ({"finished": None}, "cut-short", "no end of the measure phase from w0"),
        ({"workers": "w2 w0 w1"}, "cut-short", "no end of the measure phase from w1, w2"),
        ({"finished": OK + 1}, "results-lost", "workers finished 10001 requests, the ledger has 10000"),
        ({"finished": OK - 1}, "results-lost", "workers finished 9999 requests, the ledger has 10000"),
        ({"abandoned": 5}, "", ""),
        ({"gap": GAP}, "probe-gap", "no counters"),
        ({"gap": GAP, "workers": ""}, "", ""),
        ({"requests": OK}, "", ""),
        ({"requests": OK + 5, "abandoned": 3, "other_phases": 2}, "", ""),
        ({"requests": OK + 1}, "counts-mismatch", "sent 10000 requests, the server counted 10001"),
        ({"requests": OK + 6, "abandoned": 3, "other_phases": 2}, "counts-mismatch", f"sent 10003 {OTHERS}"),
        ({"several": "two were seen", "requests": 1}, "several-servers", "two were seen"),
        ({"requests": OK - 1}, "several-servers", FEWER),
    ],
)
def test_what_is_doubted(known: dict[str, Any], code: str, text: str) -> None:
    assert said(**known) == ({code: text} if code else {})


@pytest.mark.parametrize(
    ("kinds", "codes", "again", "text"),
    [
        ({"timeout": 1, "reset": 2}, {}, 0, "3 of 10003: reset 2, timeout 1"),
        ({"timeout": 1, "reset": 1}, {}, 0, "2 of 10002: reset 1, timeout 1"),
        ({"rejected": 8}, {"429": 8}, 4, "8 of 10008: rejected 8 (429 with Retry-After)"),
        ({"rejected": 8}, {"429": 8}, 3, "8 of 10008: rejected 8 (429)"),
        # of the kind's codes two are refusals, and of these alone half say when to ask again
        ({"rejected": 8}, {"404": 6, "429": 2}, 1, "8 of 10008: rejected 8 (404 6, 429 2 with Retry-After)"),
        ({"rejected": 8}, {"404": 8}, 8, "8 of 10008: rejected 8 (404)"),
        (
            {"server-error": 3, "rejected": 1},
            {"500": 1, "UNAVAILABLE": 2, "400": 1},
            0,
            "4 of 10004: server-error 3 (UNAVAILABLE 2, 500 1), rejected 1 (400)",
        ),
    ],
)
def test_failures_by_kind_and_code(
    kinds: dict[str, int], codes: dict[str, int], again: int, text: str
) -> None:
    failed = sum(kinds.values())
    found = said(OK + failed, failure_kinds=kinds, failure_codes=codes, retry_after=again)
    assert found == {"failures": text}


def test_the_kind_of_a_code() -> None:
    own = ["ABORTED", "DATA_LOSS", "INTERNAL", "UNAVAILABLE", "UNKNOWN"]
    assert list(SERVERS_OWN) == own
    assert {kind_of_code(code) for code in (*own, "500", "503")} == {"server-error"}
    assert {kind_of_code(code) for code in ("400", "429", "NOT_FOUND", "DEADLINE_EXCEEDED")} == {"rejected"}
    assert {kind_of_code(code) for code in ("EMFILE", "EADDRNOTAVAIL")} == {"exhausted"}
    assert {kind_of_code(code) for code in ("204", "301")} == {"bad-reply"}


@pytest.mark.parametrize(
    ("share", "drained", "text"),
    [
        (0.9801, BOTH, ""),
        (1.0199, [{"users": 10, "users_ns": 1}], ""),
        (0.979, BOTH, f"10 users kept 9.79 requests in flight (X·R): 2.10 % {IDLE}"),
        (1.021, BOTH, "10 users kept 10.2 requests in flight (X·R): times and counts do not agree"),
        (0.9, BOTH[:1], f"4 users kept 3.60 requests in flight (X·R): 10.0 % {IDLE}"),
        (0.5, [], ""),
        (0.5, [{"users": 10}], ""),
        (0.5, [{"users": 4, "users_ns": 1}, {"users": 6}], ""),
        (0.5, [{"users": 9, "users_ns": 1}], ""),
    ],
)
def test_users_that_did_not_wait_all_the_time(share: float, drained: list[Record], text: str) -> None:
    level = 4 if drained == BOTH[:1] else 10
    run = changed(HEALTHY, level=level, measure_ns=1e9, service_mean_ns=share * level * 1e6)
    assert [one.text for one in littles_law(run, drained)] == ([text] if text else [])


@pytest.mark.parametrize(
    ("think", "each_s", "text"),
    [
        # 10 users in 1 s with 100 answers of 20 ms: they answer or think all the time where Z is 80 ms
        ("0.08", 0.02, ""),
        ("", 0.02, f"10 users kept 2.00 requests in flight (X·R): 80.0 % {IDLE}"),
        ("0.07", 0.02, f"{THOUGHT} 9.00 would (X·(R+Z)): 10.0 % {IDLE}, beyond the 0.07 s that they think"),
        ("0.1", 0.02, f"{THOUGHT} 12.0 would (X·(R+Z)): times and counts do not agree"),
        # a standard error of 0.08 s / √100 a thought is 8 % of the cycle of 0.1 s: three of them are chance
        ("exponential:0.1", 0.02, ""),
        ("exponential:0.057", 0.02, ""),
        ("exponential:0.04", 0.02,
         f"{THOUGHT} 6.00 would (X·(R+Z)): 40.0 % {IDLE}, beyond the 0.04 s that they think"),
    ],
)  # fmt: skip
def test_think_times_are_no_idle_time(think: str, each_s: float, text: str) -> None:
    counts = {"requests": 100, "failures": 0, "measure_ns": 1e9, "service_mean_ns": each_s * 1e9}
    run = changed(HEALTHY, level=10, think=think, **counts)
    assert [one.text for one in littles_law(run, BOTH)] == ([text] if text else [])


def test_inputs_that_are_random_are_named() -> None:
    (found,) = random_input(["pixels fp32 3x224 random", "random", "mask int64 ones", "ids random"])
    assert (found.code, found.text) == ("random-input", "what it is sent as pixels and ids is random")
    assert list(random_input(["mask random ones"])) == []


def test_a_load_with_a_course_says_which() -> None:
    (found,) = varying_load("open", [["ramp", 10, 0, 50], ["hold", 2.5, 50, 50]])
    assert (found.code, found.text) == (
        "varying-load",
        "the rate changed during the run: ramp 10 s, hold 2.5 s",
    )
    spikes = [["base", 5, 2, 2], ["spike", 1, 20, 20], ["base", 5, 2, 2]]
    (found,) = varying_load("closed", spikes)
    assert found.text == "the number of users changed during the run: base 10 s, spike 1 s"
    assert list(varying_load("open", [])) == []
