"""Codes of failures, connections made and what a server shed: from windows and readings to a Summary."""

from pathlib import Path
from typing import Any

import pytest

from reports.fold.server_facts import shed_of
from reports.study.study import load_study
from reports.summary.summary import Summary
from tests.reports.builder import Book

MS = 1_000_000


def folded(folder: Path, failures: dict[str, int] | None = None, **told: Any) -> Summary:
    """A run of 100 successes and some failures, whose first window of the measure phase tells more."""
    book = Book()
    book.endpoint("onnx-http", "127.0.0.1:8010")
    tag = book.add("onnx-http", 1, 1, {"w0": [10 * MS] * 100}, failures=failures)
    book.phases(tag, send=MS, wait=5 * MS)
    book.measured(tag)[0].update(told)
    return load_study(book.write(folder)).runs[0]


def failures_said(run: Summary) -> str:
    return next(caveat.text for caveat in run.caveats if caveat.code == "failures")


def test_refusals_are_counted_by_code(tmp_path: Path) -> None:
    codes = {"failure_codes": {"429": 120}, "refused_for": {"queue": 100}, "retry_after": 120}
    run = folded(tmp_path, {"rejected": 120}, **codes, retry_after_s=240)
    counts = run.counts
    assert (counts.failure_codes, counts.refused_for) == ({"429": 120}, {"queue": 100})
    assert (counts.retry_after, counts.retry_after_s) == (120, 240)
    assert failures_said(run) == "120 of 220: rejected 120 (429 with Retry-After)"
    assert run.limit is not None
    assert run.limit.code == "server-full"


@pytest.mark.parametrize(
    ("codes", "kinds", "said"),
    [
        ({"429": 9, "400": 1}, {"rejected": 10}, "rejected 10 (429 9, 400 1)"),
        (
            {"503": 5, "RESOURCE_EXHAUSTED": 2, "EADDRNOTAVAIL": 1},
            {"server-error": 5, "rejected": 2, "exhausted": 1, "timeout": 1},
            "server-error 5 (503), rejected 2 (RESOURCE_EXHAUSTED), exhausted 1 (EADDRNOTAVAIL), timeout 1",
        ),
        (
            {"UNAVAILABLE": 3, "302": 1},
            {"server-error": 3, "bad-reply": 1},
            "server-error 3 (UNAVAILABLE), bad-reply 1 (302)",
        ),
        ({}, {"rejected": 2}, "rejected 2"),
    ],
)
def test_failures_are_said_with_their_codes(
    codes: dict[str, int], kinds: dict[str, int], said: str, tmp_path: Path
) -> None:
    run = folded(tmp_path, kinds, failure_codes=codes)
    assert failures_said(run) == f"{sum(kinds.values())} of {100 + sum(kinds.values())}: {said}"


def test_a_server_that_hangs_up_is_named_though_the_path_was_not_seen(tmp_path: Path) -> None:
    """Each of 100 requests of 10 ms made a connection in 6, and no look at connections found many bytes."""
    book = Book()
    book.endpoint("onnx-http", "127.0.0.1:8010")
    tag = book.add("onnx-http", 1, 1, {"w0": [10 * MS] * 100})
    book.phases(tag, connect=6 * MS, send=MS, wait=3 * MS)
    book.request_bytes(tag, 600_000)
    book.path(tag, bytes_sent=2_000_000)
    for window in book.measured(tag):
        window["connects"] = window["ok"]
    book.footer()
    run = load_study(book.write(tmp_path)).runs[0]
    assert "path-gap" in {caveat.code for caveat in run.caveats}
    assert run.limit is not None
    assert (run.limit.code, run.limit.evidence) == (
        "handshake",
        "100 % of requests waited for a new connection; connecting took 6.0 of 10.0 ms (DNS included)",
    )
    assert run.unexplained_ns == pytest.approx(3 * MS, rel=1e-2)


def reading(when: str, **counters: int) -> dict[str, Any]:
    return {"kind": "server", "when": when, "counters": counters}


@pytest.mark.parametrize(
    ("readings", "shed"),
    [
        ([reading("before", shed=3), reading("after", shed=10)], 7),
        ([reading("before", shed=9), reading("after", shed=4)], None),  # it restarted
        ([reading("before"), reading("after", shed=4)], None),
        ([reading("before", shed=9), {"kind": "server", "when": "after", "error": "refused"}], None),
        ([], None),
    ],
)
def test_what_the_server_shed_meanwhile(readings: list[dict[str, Any]], shed: int | None) -> None:
    assert shed_of(readings) == shed
