"""What a search's bound on latency says of one run, and which texts give one."""

from typing import Any

import pytest

from reports.caveat import caveat
from reports.caveats.rate_bound import GoodputBound, RateBound, check_find_rate, rate_bound
from reports.fold.windows import Arrivals
from reports.slo import Slo
from reports.summary.goodput import Goodput
from tests.reports.limit_runs import HEALTHY, MS
from tests.reports.parts import changed

FAILED: dict[str, Any] = {"failures": 1, "caveats": (caveat("failures", "1 of 1,000"),)}


def spoilt(*codes: str) -> dict[str, Any]:
    return {"caveats": tuple(caveat(code, "so it was") for code in codes)}


@pytest.mark.parametrize(
    ("text", "said", "results", "least"),
    [
        ("p99<=100", "p99 ≤ 100 ms", 1_000, 500),
        (" p99.9 <= 2.50 ms ", "p99.9 ≤ 2.5 ms", 10_000, 5_000),
        ("p50<=3600000", "p50 ≤ 3.6e+06 ms", 20, 20),
        ("p95<=0.1ms", "p95 ≤ 0.1 ms", 200, 100),
        ("p90<=5", "p90 ≤ 5 ms", 100, 50),
    ],
)
def test_a_bound_is_a_percentile_and_milliseconds(text: str, said: str, results: int, least: int) -> None:
    found = RateBound.parse(text)
    assert (str(found), found.results, found.least) == (said, results, least)


@pytest.mark.parametrize(
    "text",
    ["p99", "p99<100", "p98<=5", "p99<=0", "p99<=3600001", "p99<=-5", "p99<=5 s", "xp99<=5", "p9999<=5"],
)
def test_what_is_no_bound(text: str) -> None:
    with pytest.raises(ValueError, match="give p50, p90, p95, p99"):
        RateBound.parse(text)


@pytest.mark.parametrize(
    ("p99_ms", "known", "met"),
    [
        (100.0, {}, True),
        (100.1, {}, False),
        (None, {}, None),
        (100.1, {"latency.p50_ns": 1.0, "latency.p999_ns": 1.0, "service.p99_ns": 1.0}, False),
        # what no server can be blamed for, however high its latency is
        (500.0, spoilt("worker-lost"), None),
        (500.0, spoilt("cold-shape", "client-bound"), None),
        # a client at its limit explains failures and drops, and not how high latency is
        (500.0, spoilt("client-bound"), False),
        (50.0, spoilt("client-bound"), None),
        (50.0, FAILED | {"caveats": (*FAILED["caveats"], caveat("client-exhausted", "1"))}, None),
        (50.0, FAILED, False),
        (None, FAILED, False),
        (50.0, spoilt("dropped-arrivals") | {"sent": Arrivals(due=1_000, dropped=1)}, False),
        # other doubts that invalidate it leave it unknown
        (50.0, spoilt("rate-missed"), None),
        (500.0, spoilt("rate-missed"), False),
        (50.0, spoilt("late-arrivals", "rising-latency"), True),
    ],
)
def test_whether_a_run_met_it(p99_ms: float | None, known: dict[str, Any], met: bool | None) -> None:
    run = changed(HEALTHY, latency_p99_ns=None if p99_ms is None else p99_ms * MS, **known)
    assert RateBound("p99", 100.0).met_by(run) is met


BOUNDED = ("failures", "dropped-arrivals")


@pytest.mark.parametrize(
    ("good", "failed", "codes", "met"),
    [
        (990, 0, (), True),
        (989, 0, (), False),
        # failures and drops are requests that are not good, and nothing more
        (990, 10, BOUNDED, True),
        (989, 10, BOUNDED, False),
        # what no server can be blamed for
        (500, 0, ("worker-lost",), None),
        # a client at its limit explains failures, and not that answers came late
        (500, 0, ("client-bound",), False),
        (500, 500, ("client-bound", "failures"), None),
        (1_000, 0, ("client-bound",), None),
        (1_000, 0, ("rate-missed",), None),
        (None, 0, (), None),
    ],
)
def test_whether_a_run_met_the_objective(
    good: int | None, failed: int, codes: tuple[str, ...], met: bool | None
) -> None:
    bound = GoodputBound.of(Slo.parse("p99<=100"))
    goodput = Goodput(slo="p99<=100", objective=0.99, good=good, due=None if good is None else 1_000)
    run = changed(HEALTHY, requests=1_000, failures=failed, goodput=goodput, **spoilt(*codes))
    assert bound.met_by(run) is met
    assert bound.measured(run) == ("" if good is None else f"{good / 10:g} % good")


def test_fewer_requests_than_the_percentile_takes_tell_nothing() -> None:
    bound = GoodputBound.of(Slo.parse("p99<=100"))
    few, enough = (Goodput(objective=0.99, good=due, due=due) for due in (499, 500))
    known = {"requests": 499, "failures": 0}
    assert [bound.met_by(changed(HEALTHY, goodput=one, **known)) for one in (few, enough)] == [None, True]


def test_a_search_is_by_its_own_bound_or_by_the_objective() -> None:
    assert rate_bound("p95<=5", "p99<=100") == RateBound("p95", 5)
    assert rate_bound("slo", "p99<=100") == GoodputBound("p99", 100, Slo.parse("p99<=100"))
    assert str(rate_bound("slo", "p99<=100")) == "the goodput objective p99 ≤ 100 ms"
    with pytest.raises(ValueError, match="give --slo, e"):
        rate_bound("slo")
    check_find_rate(" slo")
    with pytest.raises(ValueError, match="give p50, p90"):
        check_find_rate("goodput")
