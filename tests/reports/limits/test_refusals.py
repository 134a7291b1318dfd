"""Refusals as the limit: a bounded rate, a full queue, and what neither words nor counters tell.

A token bucket of 50 requests a second that is offered 100 for 10 seconds admits half, and refuses the rest.
"""

from typing import Any

import pytest

from reports.caveat import caveat
from reports.limit import Limit
from reports.limits.rules import limit_of
from reports.summary.summary import Summary
from tests.reports.limit_runs import MS, a_run

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


def test_a_quota_that_admits_nothing() -> None:
    run = refused({"429": 1_000}, failures=1_000, requests_per_s=0.0, images_per_s=0.0)
    limit = named(run, "rate-limited")
    assert limit.evidence.endswith("none was admitted")
    assert "admits nothing" in limit.advice


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


HALF = REFUSED // 2
AGAIN: dict[str, Any] = {"failure_codes": {"503": REFUSED}, "retry_after": REFUSED}
SEEN: dict[str, Any] = {"failure_codes": {"503": REFUSED}, "server.requests": ADMITTED}


def few(refusals: int, requests: int, code: str = "429", **known: Any) -> dict[str, Any]:
    return {"requests": requests, "failures": refusals, "failure_codes": {code: refusals}} | known


@pytest.mark.parametrize(
    ("changes", "code", "said"),
    [
        # a bound that was touched, and one that holds the rate
        (few(49, 1_000), "offered-load", "did not fill"),
        (few(50, 1_000), "rate-limited", "50 of 1,000 requests were refused (429);"),
        (few(9, 30), "inconclusive", "failed"),
        (few(10, 30), "rate-limited", "10 of 30"),
        # of those by the size nothing is said
        (few(60, 1_000, refused_for={"size": 11}), "offered-load", "did not fill"),
        (few(60, 1_000, refused_for={"size": 10}), "rate-limited", "50 of 1,000"),
        # nobody tells why: of the whole load, or of a tenth that does not matter
        (few(100, 1_000, "503"), "offered-load", "did not fill"),
        (few(101, 1_000, "503"), "inconclusive", "101 of 1,000 requests were refused (503): by a bound on"),
        # of a run that is not one, or of which nothing was served, as by a server that is loading
        ({"status": "aborted"}, "inconclusive", "the run ended as aborted"),
        (
            {"caveats": (caveat("worker-lost", "w1 was lost"),)},
            "inconclusive",
            "500 of 1,000 requests failed",
        ),
        (few(1_000, 1_000, "503", retry_after=1_000), "inconclusive", "no request succeeded"),
        (few(999, 1_000, "503"), "inconclusive", "999 of 1,000 requests were refused (503): by a bound"),
        (few(999, 1_000, "503", retry_after=999), "rate-limited", "; 50.0 requests a second were admitted"),
        (few(999, 1_000, requests_per_s=None), "rate-limited", "; 1 were admitted"),
        (
            {"caveats": (caveat("failures", "500"), caveat("client-bound", "1"))},
            "rate-limited",
            "500 of 1,000",
        ),
        ({"failure_codes": {"400": REFUSED}}, "inconclusive", "500 of 1,000 requests failed"),
        ({"failure_codes": {}}, "inconclusive", "500 of 1,000 requests failed"),  # of an older ledger
        # most failures, and most of the refusals' codes
        ({"failure_codes": {"429": HALF, "500": HALF}}, "rate-limited", "250 of 1,000 requests were refused"),
        ({"failure_codes": {"429": HALF - 1, "500": HALF + 1}}, "inconclusive", "500 of 1,000 requests fail"),
        ({"failure_codes": {"429": HALF, "503": HALF}}, "rate-limited", "refused (429 and 503); that code m"),
        ({"failure_codes": {"429": HALF - 1, "503": HALF + 1}}, "inconclusive", "refused (429 and 503): by"),
        # most of the answers' words
        (AGAIN | {"retry_after": 0, "refused_for": {"rate": HALF}}, "rate-limited", "250 of the answers nam"),
        (AGAIN | {"retry_after": 0, "refused_for": {"rate": HALF - 1}}, "inconclusive", "is not known"),
        (AGAIN | {"refused_for": {"queue": HALF}}, "server-full", "250 of the answers say that a queue is f"),
        (AGAIN | {"refused_for": {"queue": HALF - 1}}, "rate-limited", "executing 12.0 % of the time and re"),
        ({"refused_for": {"queue": HALF, "rate": HALF}}, "server-full", "say that a queue is full"),
        # a proxy before it refused the others
        ({"shed": HALF}, "server-full", "the server counted 250 that it shed"),
        ({"shed": HALF - 1}, "rate-limited", "that code means a rate"),
        # a busy server is full, unless words of a rate refute it
        (AGAIN | {"server_busy": 0.8}, "server-full", "the server's instances were executing 80.0 % of the"),
        (AGAIN | {"server_busy": 0.79}, "rate-limited", "executing 79.0 % of the time and requests waited 0"),
        ({"server_busy": 0.8, "refused_for": {"rate": HALF - 1}}, "server-full", "executing 80.0 %"),
        ({"server_busy": 0.8, "refused_for": {"rate": HALF}}, "rate-limited", "name a rate or a quota"),
        # most of them say when to ask again, after how long on average
        (AGAIN | {"retry_after": HALF, "retry_after_s": 3 * HALF}, "rate-limited", "(503 with Retry-After o"),
        (AGAIN | {"retry_after_s": 0}, "rate-limited", "(503 with Retry-After);"),
        (AGAIN | {"retry_after": HALF - 1}, "inconclusive", "(503): by a bound"),
        (AGAIN | {"server_busy": None}, "inconclusive", "(503 with Retry-After): by a bound"),
        (AGAIN | {"server_parts": {}}, "inconclusive", "is not known"),
        ({"failure_codes": {"RESOURCE_EXHAUSTED": REFUSED}}, "rate-limited", "(RESOURCE_EXHAUSTED); that"),
        # requests do not wait for half of the time behind what refuses others
        (AGAIN | {"server_queue_ns": 9.9 * MS}, "rate-limited", "requests waited 9.9 of 20.0 ms for them"),
        (AGAIN | {"server_queue_ns": 10 * MS}, "inconclusive", "is not known"),
        (AGAIN | {"unexplained_ns": 9.9 * MS}, "rate-limited", "requests waited 0.2 of 20.0 ms"),
        (AGAIN | {"unexplained_ns": 10 * MS}, "inconclusive", "is not known"),
        ({"unexplained_ns": 18 * MS}, "rate-limited", "that code means a rate"),
        # the server did not see them, and they came back sooner than what it answers
        (SEEN | {"server.requests": ADMITTED + HALF // 5}, "rate-limited", "the server counted only 550 req"),
        (SEEN | {"server.requests": ADMITTED + HALF // 5 + 1}, "inconclusive", "is not known"),
        (SEEN | {"server.requests": ADMITTED - HALF // 5 - 1}, "inconclusive", "is not known"),
        (SEEN | {"server.requests": None}, "inconclusive", "is not known"),
        (SEEN | {"failed_mean_ns": 20 * MS}, "rate-limited", "were refused before they reached it"),
        (SEEN | {"failed_mean_ns": 20.1 * MS}, "inconclusive", "is not known"),
        (SEEN | {"failed_mean_ns": None}, "inconclusive", "is not known"),
        (SEEN | {"server_busy": 0.9}, "server-full", "executing 90.0 %"),
    ],
)
def test_what_tells_a_bounded_rate_a_full_queue_and_neither(
    changes: dict[str, Any], code: str, said: str
) -> None:
    limit = limit_of(refused(**{"codes": {"429": REFUSED}} | changes, kind="rejected"))
    assert limit is not None
    assert (limit.code, said in limit.evidence) == (code, True), limit.evidence


def test_a_load_profile_has_no_single_limit() -> None:
    run = refused({"429": REFUSED}, load="open", profile="steps", level=100.0)
    assert named(run, "inconclusive").evidence.startswith("500 of 1,000 requests failed")
