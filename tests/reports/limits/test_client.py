"""When the client is the limit, and by what."""

from typing import Any

import pytest

from reports.caveat import caveat
from reports.limits.client import client_loop
from tests.reports.limit_runs import MS, a_run, at_server, named
from tests.reports.limits.test_rules import code_of

STARVED = {"cpu_wait_pct": 30.0, "loop_lag_p95_ns": 3 * MS}
"""Felt at a lag of a tenth of the latency or more."""
LAGGING = {"loop_lag_p95_ns": 40 * MS}
STOPPING = {"loop_lag_p95_ns": 0.4 * MS, "loop_delay_ns": 30 * MS, "latency_mean_ns": 140 * MS}
"""A loop that stops seldom and for long: few looks are late, and events wait for it."""
CODING = {"loop_lag_p95_ns": 25 * MS, "latency_p95_ns": 110 * MS, "worker_cpu_pct": 50.0}
ENOUGH = {"encode_ns": 12.4 * MS}
BUILDING = {"client": "library", "encode_ns": 9.9 * MS, "network_ns": 0.0, "worker_cpu_pct": 70.0}
FREE_CORES = "Stop what else computes on the client's host, or give the client a host with free cores."
MORE_WORKERS = "Add workers (--processes) or hosts: each worker has one core."
NOT_YIELDING = (
    "Find what the users call that does not yield to gevent (a sleep, a lock, a file); or add workers."
)


@pytest.mark.parametrize(
    ("code", "changes", "figure", "at", "beyond"),
    [
        ("client-cpu", {}, "worker_cpu_pct", 90.0, 89.9),
        ("client-cpu", {"worker_cpu_pct": 75.0}, "cpu_wait_pct", 20.0, 19.9),  # used when it was to be had
        ("client-cpu", {"awake_pct": 95.0}, "worker_cpu_pct", 50.0, 49.9),
        ("client-cpu", {"worker_cpu_pct": 50.0}, "awake_pct", 95.0, 94.9),
        ("client-cpu", {"worker_cpu_pct": 115.0, "awake_pct": 93.0}, "loop_cpu_pct", 91.0, 55.0),
        ("client-cpu", STARVED, "cpu_wait_pct", 25.0, 24.9),
        ("client-cpu", STARVED, "loop_lag_p95_ns", 2.4 * MS, 2.3 * MS),  # no request feels less
        ("client-cpu", STARVED | {"loop_lag_p95_ns": 0.3 * MS}, "cpu_wait_pct", 50.0, 49.9),  # hardly idle
        ("client-cpu", STARVED, "server_parts", {"compute": 11.9 * MS}, {"compute": 12.0 * MS}),
        ("client-cpu", LAGGING | {"worker_cpu_pct": 60.0}, "cpu_wait_pct", 10.0, 9.0),
        ("client-cpu", LAGGING | {"worker_cpu_pct": 10.0}, "cpu_wait_pct", 25.0, 24.0),
        ("client-cpu", BUILDING, "worker_cpu_pct", 70.0, 69.9),
        ("client-cpu", BUILDING | {"worker_cpu_pct": 93.0, "awake_pct": 72.0}, "loop_cpu_pct", 70.0, 69.9),
        ("client-cpu", BUILDING, "encode_ns", 9.9 * MS, 9.8 * MS),
        ("client-loop", {}, "loop_lag_p95_ns", 4.9 * MS, 4.8 * MS),  # a fifth of 24 ms
        # At each look after 20 ms it was late by 2.5 ms on average: a tenth of the time.
        ("client-loop", {"loop_lag_p95_ns": 5 * MS}, "cpu_wait_pct", 9.9, 10.0),
        ("client-loop", {"loop_lag_p95_ns": 5 * MS, "cpu_wait_pct": 10.0}, "loop_delay_ns", 5 * MS, 4 * MS),
        # Waits for a core come to half of its lag: nothing blocks it.
        ("client-loop", {"loop_lag_p95_ns": 5 * MS}, "lag_awaited", 0.49, 0.5),
        ("client-cpu", {"loop_lag_p95_ns": 5 * MS}, "lag_awaited", 0.5, 0.49),
        ("client-cpu", STOPPING, "lag_awaited", 0.5, 0.49),
        ("client-loop", STOPPING, "latency_mean_ns", 149 * MS, 150 * MS),
        # Our own work holds the loop for half of the lag, and uses CPU for half of its time.
        ("client-loop", CODING, "encode_ns", 12.3 * MS, 12.4 * MS),
        ("client-loop", CODING | ENOUGH, "worker_cpu_pct", 49.9, 50.0),
        ("client-loop", CODING | ENOUGH | {"awake_pct": 52.0}, "loop_cpu_pct", 49.9, 50.0),
        ("client-loop", CODING | ENOUGH | {"requests_per_s": 40.0}, "worker_cpu_pct", 24.9, 25.0),
        (
            "client-loop",
            CODING | ENOUGH | {"requests_per_s": 40.0, "workers": 2},
            "worker_cpu_pct",
            12.4,
            12.5,
        ),
        ("client-loop", CODING | ENOUGH | {"worker_cpu_pct": 49.9}, "requests_per_s", 200.0, None),
    ],
)
def test_where_the_client_is_the_limit(
    code: str, changes: dict[str, Any], figure: str, at: Any, beyond: Any
) -> None:
    assert code_of(a_run(**changes | {figure: at})) == code
    assert code_of(a_run(**changes | {figure: beyond})) != code


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"worker_cpu_pct": 49.0, "cpu_wait_pct": 24.0}, "offered-load"),
        (STARVED | {"loop_lag_p95_ns": None}, "client-cpu"),
        (STARVED | {"server_parts": {}, "server_busy": None}, "inconclusive"),  # a silent one proves nothing
        (LAGGING | {"cpu_wait_pct": None}, "client-loop"),
        (STOPPING | {"latency_p95_ns": 900 * MS}, "client-loop"),  # means stand beside means
    ],
)
def test_what_else_says_whether_the_client_is_it(changes: dict[str, Any], code: str) -> None:
    assert code_of(a_run(**changes)) == code


def test_the_evidence_of_a_used_up_core() -> None:
    full = a_run(worker_cpu_pct=97.3, loop_lag_p95_ns=9 * MS, pressure_pct=80.0)
    limit = named(full, "client-cpu")
    assert limit.evidence == (
        "the busiest worker used 97.3 % of a core; a worker was ready to run and had no core 2.00 % "
        "of the time; a worker's event loop lagged 9.0 ms at p95 beside a latency of 24.0 ms (37.5 %)"
    )
    assert limit.advice == MORE_WORKERS
    unseen = {"loop_lag_p95_ns": None, "cpu_wait_pct": None, "cpu_quota": 2.5}
    limit = named(a_run(worker_cpu_pct=97.3, **unseen), "client-cpu")
    assert limit.evidence == "the busiest worker used 97.3 % of a core"
    assert limit.advice == (
        "Add workers on other hosts, or raise the cgroup's quota (2.5 cores) and add workers."
    )


@pytest.mark.parametrize(
    ("pressure_pct", "said"),
    [(24.9, ""), (25.0, "some process on its host waited for a core 25.0 % of the time; ")],
)
def test_the_evidence_of_a_core_that_others_have(pressure_pct: float, said: str) -> None:
    limit = named(a_run(**STARVED, pressure_pct=pressure_pct), "client-cpu")
    assert limit.evidence == (
        "the busiest worker used 20.0 % of a core; a worker was ready to run and had no core 30.0 % of the "
        f"time; {said}a worker's event loop lagged 3.0 ms at p95 beside a latency of 24.0 ms (12.5 %)"
    )
    assert limit.advice == FREE_CORES


@pytest.mark.parametrize(("waited_pct", "advice"), [(26.0, MORE_WORKERS), (26.1, FREE_CORES)])
def test_a_late_loop_needs_what_it_lacks_more(waited_pct: float, advice: str) -> None:
    at_the_server = {"server_parts": {"compute": 13 * MS}, "worker_cpu_pct": 26.0}
    run = a_run(**LAGGING | at_the_server, cpu_wait_pct=waited_pct)
    assert named(run, "client-cpu").advice == advice


def test_a_blocked_loop() -> None:
    blocked = a_run(loop_lag_p95_ns=98.8 * MS, latency_p95_ns=115 * MS, worker_cpu_pct=13.7)
    limit = named(blocked, "client-loop")
    assert limit.evidence == (
        "a worker's event loop lagged 98.8 ms at p95 beside a latency of 115 ms (85.9 %); the busiest worker "
        "used 13.7 % of a core; a worker was ready to run and had no core 2.00 % of the time; "
        "so something else blocks the loop"
    )
    assert limit.advice == NOT_YIELDING


def test_short_turns_of_others_on_a_core_are_not_what_stops_a_run() -> None:
    """One user of a model of 1 ms beside a neighbour that burns a core: p95 suffers, the mean hardly."""
    run = at_server(
        0.14, 1.5, 2.9, level=1, in_flight=1.0, server_busy=0.56, loop_lag_p95_ns=3.12 * MS,
        latency_p95_ns=5.72 * MS, worker_cpu_pct=18.8, cpu_wait_pct=14.4, host_cpu_pct=91.0,
        caveats=(caveat("client-bound", "worker w0's event loop lagged 3.12 ms at p95"),),
    )  # fmt: skip
    assert "ready to run and had no core 14.4 % of the time" in named(run, "offered-load").evidence


def test_late_requests_are_the_loops_where_neither_cpu_nor_lag_is_seen() -> None:
    said = "60 of 1,000 requests began late while users were free, 9.00 ms at p95"
    late = {"caveats": (caveat("client-bound", said),), "loop_lag_p95_ns": None}
    limit = client_loop(a_run(**late, cpu_wait_pct=None))
    assert limit is not None
    assert limit.evidence == (
        f"{said}; the busiest worker used 20.0 % of a core; so something else blocks the loop"
    )


def test_the_evidence_of_building_requests() -> None:
    limit = named(a_run(**BUILDING), "client-cpu")
    assert limit.evidence == (
        "the busiest worker used 70.0 % of a core; a worker was ready to run and had no core 2.00 % of the "
        "time; building requests and reading answers took 10.0 of 20.0 ms; a worker's event loop lagged 0.3 "
        "ms at p95 beside a latency of 24.0 ms (1.25 %)"
    )
    assert limit.advice == (
        "Use --client prepared, or add workers (--processes): building requests takes the time."
    )
    assert named(a_run(**BUILDING | {"client": "prepared"}), "client-cpu").advice == MORE_WORKERS
    assert named(a_run(client="library", worker_cpu_pct=97.0), "client-cpu").advice == MORE_WORKERS


def test_the_evidence_of_a_loop_that_stops_seldom_and_for_long() -> None:
    assert named(a_run(**STOPPING), "client-loop").evidence == (
        "events waited 30.0 ms for a worker's event loop on average, of a latency of 140 ms (21.4 %); a "
        "worker's event loop lagged 0.4 ms at p95 beside a latency of 24.0 ms (1.67 %); the busiest worker "
        "used 20.0 % of a core; a worker was ready to run and had no core 2.00 % of the time; so something "
        "else blocks the loop"
    )


def test_client_and_server_on_one_host_are_no_block_of_the_loop() -> None:
    """A worker that uses 4.5 % of a core and waits for one 8 % of the time."""
    waiting = {"worker_cpu_pct": 4.5, "cpu_wait_pct": 8.0, "loop_lag_p95_ns": 22 * MS, "host_cores": 2}
    limit = named(a_run(**waiting, latency_p95_ns=90 * MS, lag_awaited=0.8), "client-cpu")
    assert limit.evidence.startswith(
        "client and server share the host's 2 cores; the busiest worker used 4.50 % of a core; a worker was "
        "ready to run and had no core 8.00 % of the time; "
    )
    assert limit.advice == "Give the client cores of its own (taskset, cpusets), or a host of its own."
    elsewhere = named(a_run(**waiting, latency_p95_ns=90 * MS, lag_awaited=0.8, local=False), "client-cpu")
    assert "share" not in elsewhere.evidence
    assert elsewhere.advice.startswith("Stop what else computes on the client's host")
    blocked = named(a_run(**waiting, latency_p95_ns=90 * MS, lag_awaited=0.2), "client-loop")
    assert "blocks the loop" in blocked.evidence
