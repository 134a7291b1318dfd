"""Refusals as the limit: a bounded rate, a full queue, and what neither words nor counters tell.

A token bucket of 50 requests a second that is offered 100 for 10 seconds admits half, and refuses the rest.
"""

from dataclasses import replace
from typing import Any

import pytest

from reports.caveat import caveat
from reports.limit import Limit
from reports.limits.rules import limit_of
from reports.summary.summary import Summary
from tests.reports.limit_runs import MS, a_run, at_server
from tests.reports.limits.test_rules import code_of

RATE, OFFERED, SECONDS = 50, 100, 10
ADMITTED, REFUSED = RATE * SECONDS, (OFFERED - RATE) * SECONDS
FAST: dict[str, Any] = {
    "requests": OFFERED * SECONDS,
    "failures": REFUSED,
    "measure_ns": SECONDS * 1_000 * MS,
}
FAST |= {"requests_per_s": float(RATE), "images_per_s": 4.0 * RATE, "failed_mean_ns": 1 * MS}
ROOM: dict[str, Any] = {"server_busy": 0.12}


def refused(codes: dict[str, int], kind: str = "rejected", **changes: Any) -> Summary:
    """A run of a server with room, of which half the requests were refused."""
    return a_run(**FAST | ROOM | {"failure_codes": codes, "failure_kinds": {kind: REFUSED}} | changes)


def named(run: Summary, code: str) -> Limit:
    limit = limit_of(run)
    assert limit is not None
    assert limit.code == code
    return limit


def test_a_token_bucket_that_says_when_to_ask_again() -> None:
    limit = named(refused({"429": REFUSED}, retry_after=REFUSED, retry_after_s=REFUSED), "rate-limited")
    assert limit.evidence == (
        "500 of 1,000 requests were refused (429 with Retry-After of 1.00 s); that code means a rate, and "
        "nothing shows a full queue; 50.0 requests a second were admitted, 200 images a second"
    )
    assert limit.advice == (
        "The server, or a proxy before it, admits 50.0 requests a second: raise its limit, or offer less."
    )


@pytest.mark.parametrize("codes", [{"429": REFUSED}, {"RESOURCE_EXHAUSTED": REFUSED}])
def test_a_token_bucket_that_does_not(codes: dict[str, int]) -> None:
    limit = named(refused(codes), "rate-limited")
    assert f"requests were refused ({next(iter(codes))});" in limit.evidence


def test_a_quota_that_admits_nothing() -> None:
    run = refused({"429": 1_000}, failures=1_000, requests_per_s=0.0, images_per_s=0.0)
    limit = named(run, "rate-limited")
    assert limit.evidence.endswith("none was admitted")
    assert "admits nothing" in limit.advice


@pytest.mark.parametrize("code", ["503", "UNAVAILABLE"])
def test_503_with_words_of_a_rate(code: str) -> None:
    run = refused({code: REFUSED}, "server-error", refused_for={"rate": 480, "queue": 20}, server_busy=0.9)
    assert "480 of the answers name a rate or a quota" in named(run, "rate-limited").evidence


def test_503_with_retry_after_before_a_server_with_room_is_a_rate() -> None:
    run = refused({"503": REFUSED}, "server-error", retry_after=REFUSED, retry_after_s=0)
    limit = named(run, "rate-limited")
    assert "(503 with Retry-After)" in limit.evidence
    assert "the server's instances were executing 12.0 % of the time" in limit.evidence


def counting(counted: int | None, **changes: Any) -> Summary:
    """503 without more, from a server that counted so many requests."""
    run = refused({"503": REFUSED}, "server-error", **changes)
    return replace(run, server=replace(run.server, requests=counted))


def test_a_proxy_that_refuses_what_never_reaches_the_server() -> None:
    """nginx's `limit_req` answers 503 unless it is told otherwise, and never says Retry-After."""
    limit = named(counting(ADMITTED + 3), "rate-limited")
    assert (
        "the server counted only 503 requests: the others were refused before they reached it"
        in limit.evidence
    )
    assert "or a proxy before it" in limit.advice
    assert code_of(counting(ADMITTED + REFUSED)) == "inconclusive"  # it has refused them itself
    assert code_of(counting(None)) == "inconclusive"
    assert code_of(counting(ADMITTED, failed_mean_ns=5_000 * MS)) == "inconclusive"  # they waited before it
    assert code_of(counting(ADMITTED, server_busy=0.9)) == "server-full"


@pytest.mark.parametrize(
    "changes",
    [
        {"retry_after": 0},  # a plain 503 means anything
        {"retry_after": REFUSED, "server_busy": None},  # whether it has room is not known
        {"retry_after": REFUSED, "server_parts": {"queue": 15 * MS, "compute": 4 * MS}},  # waits are long
        {"retry_after": REFUSED, "server_parts": {}},
    ],
)
def test_503_alone_does_not_tell_a_rate_from_a_full_queue(changes: dict[str, Any]) -> None:
    limit = named(refused({"503": REFUSED}, "server-error", **changes), "inconclusive")
    assert limit.evidence.startswith("500 of 1,000 requests were refused (503")
    assert limit.evidence.endswith("by a bound on the rate or a full queue is not known")


@pytest.mark.parametrize(
    ("code", "unexplained", "named_"),
    [
        ("503", 185, "inconclusive"),
        ("UNAVAILABLE", 100, "inconclusive"),
        ("503", 99, "rate-limited"),
        ("429", 185, "rate-limited"),  # a rate by the code itself
    ],
)
def test_room_behind_a_front_end_that_is_full(code: str, unexplained: float, named_: str) -> None:
    """500 of 1,500 are refused by something that keeps the others for most of 200 ms."""
    run = at_server(
        1, 8, 200, unexplained_ns=unexplained * MS, network_ns=1 * MS, server_busy=0.3, requests=1_500,
        failures=500, failure_codes={code: 500}, failure_kinds={"server-error": 500}, retry_after=500,
        retry_after_s=500, failed_mean_ns=1 * MS,
    )  # fmt: skip
    limit = named(run, named_)
    assert limit.evidence.startswith(f"500 of 1,500 requests were refused ({code} with Retry-After")
    if named_ == "inconclusive":
        assert limit.evidence.endswith("by a bound on the rate or a full queue is not known")
        assert limit.advice.startswith("Look at the log of the server and of proxies before it")
    else:
        assert "raise its limit, or offer less" in limit.advice


@pytest.mark.parametrize("code", ["503", "UNAVAILABLE", "429", "RESOURCE_EXHAUSTED"])
def test_answers_that_name_a_full_queue(code: str) -> None:
    """Triton's `max_queue_size` over both protocols; Text Embeddings Inference says it by 429."""
    limit = named(refused({code: REFUSED}, "server-error", refused_for={"queue": 490}), "server-full")
    assert limit.evidence == (
        f"500 of 1,000 requests were refused ({code}); 490 of the answers say that a queue is full; "
        "50.0 requests a second were admitted, 200 images a second"
    )
    assert limit.advice.startswith("Give the server more capacity")
    assert "longer queue" in limit.advice


def test_the_server_s_own_count_of_what_it_shed() -> None:
    limit = named(refused({"429": REFUSED}, retry_after=REFUSED, shed=REFUSED), "server-full")
    assert "the server counted 500 that it shed" in limit.evidence
    assert (
        code_of(refused({"429": REFUSED}, shed=3)) == "rate-limited"
    )  # a proxy before it refused the others


def test_a_busy_server_that_refuses_is_full() -> None:
    """One instance at 20 ms serves 50 a second; a full queue of 5 lets a request wait for 100 ms."""
    queue: dict[str, Any] = {
        "serving": {"instances": 1},
        "server_busy": 1.0,
        "failure_codes": {"503": REFUSED},
    }
    run = at_server(100, 20, 121, **queue, **FAST, failure_kinds={"server-error": REFUSED})
    assert "executing 100 % of the time" in named(run, "server-full").evidence


@pytest.mark.parametrize(
    ("refusals", "requests", "code"),
    [
        (49, 1_000, "offered-load"),  # a bound that was touched
        (50, 1_000, "rate-limited"),
        (9, 30, "inconclusive"),
        (10, 30, "rate-limited"),
    ],
)
def test_how_many_refusals_are_a_limit(refusals: int, requests: int, code: str) -> None:
    counts: dict[str, Any] = {"requests": requests, "failures": refusals, "failure_codes": {"429": refusals}}
    assert code_of(a_run(**counts, failed_mean_ns=1 * MS)) == code


@pytest.mark.parametrize(
    "changes",
    [
        {"failure_codes": {"429": 200, "500": 300}},  # most failures are others
        {"failure_codes": {"400": REFUSED}},
        {"failure_codes": {"RESOURCE_EXHAUSTED": REFUSED}, "refused_for": {"size": REFUSED}},  # 4 MB of gRPC
        {"failure_codes": {}},  # of an older ledger
        {"failure_codes": {"429": REFUSED}, "status": "aborted"},
        {"failure_codes": {"429": REFUSED}, "caveats": (caveat("worker-lost", "w1 was lost"),)},
        {"failure_codes": {"503": 1_000}, "failures": 1_000},  # nothing was served: it may be loading
    ],
)
def test_failures_that_are_no_bounded_rate(changes: dict[str, Any]) -> None:
    limit = named(
        refused(**{"codes": {}} | changes) if "codes" in changes else a_run(**FAST | ROOM | changes),
        "inconclusive",
    )
    assert "refused" not in limit.evidence


def test_a_load_profile_has_no_single_limit() -> None:
    run = refused({"429": REFUSED}, load="open", profile="steps", level=100.0)
    assert named(run, "inconclusive").evidence.startswith("500 of 1,000 requests failed")
