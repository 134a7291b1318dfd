"""What follows from one run's numbers: its link, how its users waited, and where its start-up ends."""

from dataclasses import replace
from math import log
from typing import Any

import numpy as np
import pytest
from scipy.stats import linregress

from reports.caveat import Caveat
from reports.fold.path import HEADER_BYTES, Path
from reports.histogram.buckets import Buckets
from reports.histogram.codec import decoded
from reports.summary.link import carried_per_s, exceeds, link_rate, told_rate
from reports.summary.slices import sliced, start_up, trend_of
from reports.summary.summary import (
    LatencyAt,
    Summary,
    Way,
    codes,
    mean_in_flight,
    tainting,
    unclear,
    users_busy,
)
from tests.reports.limit_runs import BEGUN
from tests.reports.lines import encoded
from tests.reports.parts import changed

MS, S = 1_000_000, 10**9


def carrying(path: Path | None, **known: Any) -> Summary:
    return changed(BEGUN, path=path, measure_ns=10.0 * S, **known)


@pytest.mark.parametrize(
    ("path", "carried"),
    [
        (None, (None, "")),
        (Path(), (None, "sent")),
        (Path(wire_bytes_per_s=100.0), (100, "sent")),
        # what was sent again may never have reached the link
        (Path(wire_bytes_per_s=100.0, bytes_sent=1_000, bytes_retransmitted=200), (80, "sent")),
        (Path(wire_bytes_per_s=100.0, bytes_received=1_000 - HEADER_BYTES, segments_in=1), (100, "sent")),
        (Path(wire_bytes_per_s=99.0, bytes_received=1_000 - HEADER_BYTES, segments_in=1), (100, "received")),
        (Path(bytes_received=1_000 - HEADER_BYTES, segments_in=1), (100, "received")),
    ],
)
def test_a_link_carries_what_its_busier_direction_does(path: Path | None, carried: tuple[Any, str]) -> None:
    assert carried_per_s(carrying(path)) == (pytest.approx(carried[0]), carried[1])


def test_each_host_has_a_link_and_none_carries_more_than_its_rate() -> None:
    for hosts, rate in ((None, 100), (1, 100), (3, 300)):
        run = carrying(Path(wire_bytes_per_s=1.05 * rate), link_bytes_per_s=100.0, hosts=hosts)
        assert (told_rate(run), link_rate(run), exceeds(run)) == (rate, rate, False)
        more = replace(run, path=Path(wire_bytes_per_s=1.051 * rate))
        assert (told_rate(more), link_rate(more), exceeds(more)) == (rate, None, True)
        assert (link_rate(replace(run, path=None)), exceeds(replace(run, link_bytes_per_s=None))) == (
            rate,
            False,
        )


def test_users_wait_for_answers_by_littles_law() -> None:
    run = changed(
        BEGUN, requests=110, failures=0, measure_ns=10.0 * S, service_mean_ns=0.2 * S, in_flight=3.5
    )
    assert (mean_in_flight(run), users_busy(run)) == (pytest.approx(2.2), pytest.approx(2.2 / 4))
    # 110 answers of 0.2 s and as many thoughts of 0.1 s in 10 s of 4 users
    assert users_busy(changed(run, think="exponential:0.1")) == pytest.approx(3.3 / 4)
    assert users_busy(changed(run, profile="steps:2x5")) is None, "not all users were there all the time"
    assert mean_in_flight(changed(run, failures=10)) == pytest.approx(2.0)
    assert mean_in_flight(changed(run, measure_ns=None)) == 3.5
    for unknown in ({"failures": 1}, {"load": "open"}, {"measure_ns": None}, {"service_mean_ns": None}):
        assert users_busy(changed(run, **unknown)) is None


def test_what_a_run_is_follows_from_its_plan_and_its_counts() -> None:
    lost, few = Caveat("worker-lost", "", ""), Caveat("few-samples", "", "")
    run = replace(BEGUN, caveats=(few, lost, few), variant="shared")
    assert (codes(run), codes(run, ";"), tainting(run)) == (
        "few-samples, worker-lost",
        "few-samples;worker-lost",
        {"worker-lost"},
    )
    assert (run.tainted, replace(run, caveats=(few,)).tainted) == (True, False)
    assert (str(run.way), str(Way("onnx-http"))) == ("emulated-http shared", "onnx-http")
    serial = [replace(run, load=load, level=level).serial for load in ("closed", "open") for level in (1, 2)]
    assert serial == [True, False, False, False]
    assert [replace(run, status=status).started for status in ("done", "failed", "not-run")] == [
        True,
        True,
        False,
    ]
    assert [replace(run, client=client).built_anew for client in ("", "prepared", "library")] == [
        False,
        False,
        True,
    ]
    assert [replace(run, path=path).tcp_connections for path in (None, Path(asked=4, connections=3))] == [
        None,
        3,
    ]
    failed = changed(run, requests=9, failures=5, failure_kinds={"timeout": 2, "refused": 3})
    assert (failed.succeeded, failed.timeouts, run.timeouts) == (4, 2, 0)
    assert unclear(changed(run, network_ns=30.0, network_most_ns=100.0)) == 70
    assert unclear(changed(run, network_ns=30.0)) is None


def test_a_latency_is_told_in_milliseconds_by_its_percentile() -> None:
    names = ("p50", "p90", "p95", "p99", "p99.9")
    run = changed(BEGUN, **{f"latency_{name.replace('.', '')}_ns": at * MS for at, name in enumerate(names)})
    assert [LatencyAt(name)(run) for name in names] == [0, 1, 2, 3, 4]
    assert LatencyAt("p50")(BEGUN) is None


def of(*values_ms: float) -> Buckets:
    return decoded(encoded([round(value * MS) for value in values_ms]))


def test_seconds_are_joined_backwards_until_there_is_an_answer() -> None:
    """Each by the mean of its requests, however many workers had them."""
    seconds = [
        (3, [of()]),
        (4, [of(10), of(40, 40)]),
        (5, [of(20)]),
        (6, [of()]),
        (8, [of(5), of()]),
        (9, []),
    ]
    found = sliced(seconds)
    assert [one.at_s for one in found] == [4, 5, 8]
    assert [one.log_ns for one in found] == pytest.approx([log(at * MS) for at in (30, 20, 5)], abs=1e-3)
    assert sliced([(1, [of()])]) == []


@pytest.mark.parametrize(
    ("logs", "cut"),
    [
        ([], 0),
        ([5.0], 0),
        ([1.0] * 20, 0),
        ([3.0, 2.0, *[1.0, 1.1] * 10], 2),
        ([3.0, 2.0, 1.1, *[1.0] * 20], 3),
        ([1.001, *[1.0] * 20], 0),  # too little for a start-up, however regular
        ([*[1.0, 1.1] * 10, 3.0], 0),
    ],
)
def test_a_start_up_ends_where_what_is_left_is_surest(logs: list[float], cut: int) -> None:
    assert start_up(np.array(logs)) == cut


def test_a_trend_is_the_line_of_least_squares() -> None:
    at_s, values = np.array([0.0, 1, 2, 5, 6]), np.array([1.0, 2.5, 2.0, 4.0, 6.0])
    line = linregress(at_s, values)
    found = trend_of(at_s, values)
    assert (found.slope, found.error) == pytest.approx((line.slope, line.stderr))
