"""When the client is the limit, and by what."""

from typing import Any

import pytest

from reports.caveat import caveat
from reports.limit import Limit
from reports.limits.client import client_cpu, client_loop
from reports.limits.rules import limit_of
from reports.summary.summary import Summary
from tests.reports.limit_runs import MS, a_run, at_server
from tests.reports.limits.test_rules import code_of

STARVED = {"cpu_wait_pct": 30.0, "loop_lag_p95_ns": 3 * MS}
"""Felt at a lag of more than a tenth of the latency."""


def cpu(run: Summary) -> Limit:
    limit = limit_of(run)
    assert limit is not None
    assert limit.code == "client-cpu"
    return limit


@pytest.mark.parametrize(("used_pct", "code"), [(89.9, "offered-load"), (90.0, "client-cpu")])
def test_a_used_up_core(used_pct: float, code: str) -> None:
    assert code_of(a_run(worker_cpu_pct=used_pct)) == code


@pytest.mark.parametrize(
    ("used_pct", "waited_pct", "code"),
    [(75.0, 19.9, "offered-load"), (75.0, 20.0, "client-cpu"), (49.0, 24.0, "offered-load")],
)
def test_a_core_that_was_used_whenever_it_was_to_be_had(
    used_pct: float, waited_pct: float, code: str
) -> None:
    assert code_of(a_run(worker_cpu_pct=used_pct, cpu_wait_pct=waited_pct)) == code


def test_the_evidence_of_a_used_up_core() -> None:
    limit = cpu(a_run(worker_cpu_pct=97.3, loop_lag_p95_ns=9 * MS))
    assert limit.evidence == (
        "the busiest worker used 97.3 % of a core; a worker was ready to run and had no core 2.00 % "
        "of the time; a worker's event loop lagged 9.0 ms at p95 beside a latency of 24.0 ms (37.5 %)"
    )
    assert limit.advice == "Add workers (--processes) or hosts: each worker has one core."


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        (STARVED, "client-cpu"),
        (STARVED | {"cpu_wait_pct": 24.9}, "offered-load"),
        (STARVED | {"loop_lag_p95_ns": 2.3 * MS}, "offered-load"),  # no request feels it
        (STARVED | {"loop_lag_p95_ns": 0.3 * MS, "cpu_wait_pct": 55.0}, "client-cpu"),  # hardly ever idle
    ],
)
def test_a_core_that_others_have(changes: dict[str, Any], code: str) -> None:
    assert code_of(a_run(**changes)) == code


def test_the_evidence_of_a_core_that_others_have() -> None:
    limit = cpu(a_run(**STARVED))
    assert "ready to run and had no core 30.0 % of the time" in limit.evidence
    assert limit.advice.startswith("Stop what else computes on the client's host")


def test_waits_for_a_core_while_the_requests_are_at_the_server_cost_nothing() -> None:
    """A model that uses every core of the host takes them from a worker that has nothing to do with them."""
    run = at_server(
        0.2, 55, 60, cpu_wait_pct=30.0, loop_lag_p95_ns=8 * MS, server_busy=0.9, level=1, in_flight=1.0
    )
    assert client_cpu(run) is None
    assert code_of(run) == "server-compute"


def test_waits_for_a_core_beside_a_silent_server_prove_nothing() -> None:
    silent = {"server_queue_ns": None, "server_compute_ns": None, "server_other_ns": None}
    assert client_cpu(a_run(**STARVED | silent)) is None


def test_a_blocked_loop() -> None:
    limit = limit_of(a_run(loop_lag_p95_ns=98.8 * MS, latency_p95_ns=115 * MS, worker_cpu_pct=13.7))
    assert limit is not None
    assert limit.code == "client-loop"
    assert limit.evidence == (
        "a worker's event loop lagged 98.8 ms at p95 beside a latency of 115 ms (85.9 %); the busiest worker "
        "used 13.7 % of a core; a worker was ready to run and had no core 2.00 % of the time; "
        "so something else blocks the loop"
    )
    assert "does not yield" in limit.advice


@pytest.mark.parametrize(
    ("used_pct", "waited_pct", "code"),
    [
        (60.0, 9.0, "client-loop"),
        (60.0, 10.0, "client-cpu"),  # hardly idle
        (10.0, 25.0, "client-cpu"),
        (10.0, 24.0, "client-loop"),  # waits of a quarter do not make a lag of 40 ms at every twentieth look
    ],
)
def test_a_lag_is_of_the_cpu_where_that_is_used_or_awaited(
    used_pct: float, waited_pct: float, code: str
) -> None:
    assert code_of(a_run(loop_lag_p95_ns=40 * MS, worker_cpu_pct=used_pct, cpu_wait_pct=waited_pct)) == code


@pytest.mark.parametrize(
    ("lag_ms", "code"),
    [(4.7, "offered-load"), (4.9, "client-loop")],  # a fifth of 24 ms is 4.8
)
def test_a_loop_lags_where_the_caveat_says_so(lag_ms: float, code: str) -> None:
    assert code_of(a_run(loop_lag_p95_ns=lag_ms * MS, cpu_wait_pct=5.0)) == code


def test_short_turns_of_others_on_a_core_are_not_what_stops_a_run() -> None:
    """One user of a model of 1 ms beside a neighbour that burns a core: p95 suffers, the mean hardly."""
    run = at_server(
        0.14, 1.5, 2.9, level=1, in_flight=1.0, server_busy=0.56, loop_lag_p95_ns=3.12 * MS,
        latency_p95_ns=5.72 * MS, worker_cpu_pct=18.8, cpu_wait_pct=14.4, host_cpu_pct=91.0,
        caveats=(caveat("client-bound", "worker w0's event loop lagged 3.12 ms at p95"),),
    )  # fmt: skip
    limit = limit_of(run)
    assert limit is not None
    assert limit.code == "offered-load"
    assert "ready to run and had no core 14.4 % of the time" in limit.evidence


def test_late_requests_are_the_loops_where_neither_cpu_nor_lag_is_seen() -> None:
    said = "60 of 1,000 requests began late while users were free, 9.00 ms at p95"
    limit = client_loop(a_run(caveats=(caveat("client-bound", said),), loop_lag_p95_ns=None))
    assert limit is not None
    assert limit.evidence.startswith(said)


def test_building_requests_takes_the_time() -> None:
    library = {"client": "library", "encode_ns": 14 * MS, "network_ns": 0.0, "server_busy": 0.1}
    assert cpu(a_run(**library, worker_cpu_pct=72.0)).advice.startswith("Use --client prepared")
    assert "building requests and reading answers took 14.1 of 20.0 ms" in (
        cpu(a_run(**library, worker_cpu_pct=72.0)).evidence
    )
    assert client_cpu(a_run(**library, worker_cpu_pct=69.0)) is None


def test_a_loop_that_stops_seldom_and_for_long() -> None:
    """0.4 s of every 0.9: few looks are late, and events wait 89 ms for the loop."""
    stops = {"loop_lag_p95_ns": 0.4 * MS, "loop_delay_ns": 89 * MS, "latency_mean_ns": 170 * MS}
    limit = limit_of(a_run(**stops, worker_cpu_pct=12.0, cpu_wait_pct=3.0))
    assert limit is not None
    assert limit.code == "client-loop"
    assert (
        "events waited 89.0 ms for a worker's event loop on average, of a latency of 170 ms (52.4 %)"
        in limit.evidence
    )


def test_a_loop_that_builds_requests_meanwhile_is_not_blocked_by_something_else() -> None:
    lagging = {"loop_lag_p95_ns": 25 * MS, "latency_p95_ns": 110 * MS, "worker_cpu_pct": 50.0}
    assert code_of(a_run(**lagging)) == "client-loop"
    assert code_of(a_run(**lagging, encode_ns=30 * MS)) != "client-loop"


@pytest.mark.parametrize(("loop_pct", "code"), [(55.0, "offered-load"), (91.0, "client-cpu")])
def test_threads_beside_the_loop_do_not_use_up_its_core(loop_pct: float, code: str) -> None:
    used = {"worker_cpu_pct": 115.0, "loop_cpu_pct": loop_pct, "awake_pct": loop_pct + 2}
    assert code_of(a_run(**used)) == code
