"""When processor time that was taken away is the limit, and when other causes look like it."""

from typing import Any

import pytest

from reports.backend_facts import BackendFacts
from reports.limit import Limit
from reports.limits.rules import limit_of
from reports.summary.summary import Summary
from tests.reports.limit_runs import MS, a_run, at_server
from tests.reports.limits.test_rules import code_of

SLEEP_NS = 20 * MS
"""How long the lag probe sleeps before it looks."""


def stopped(quota: float, wanted: float, **changes: Any) -> Summary:
    """A worker of one thread that wants a share of a core and is allowed `quota` of it.

    Of each 100 ms it runs until the quota is used up, and then stops: a loop that is looked at within a stop
    is late by what is left of it. The kernel counts the stop as a wait for a core.
    """
    ran = min(quota, wanted)
    stop = max(0.0, 1 - quota / wanted)
    cpu = {"worker_cpu_pct": 100 * ran, "loop_cpu_pct": 100 * ran, "cpu_wait_pct": 100 * stop}
    lag_ns = max(0.0, stop - 0.05) * 100 * MS
    latency = {"latency_p95_ns": 20 * MS + lag_ns, "loop_lag_p95_ns": lag_ns}
    taken = {"cpu_quota": quota, "throttled_pct": 100 * stop, "awake_pct": 100 * (ran + stop)}
    return a_run(**{**cpu, **latency, **taken, **changes})


def limit(run: Summary, code: str) -> Limit:
    found = limit_of(run)
    assert found is not None
    assert found.code == code
    return found


@pytest.mark.parametrize("quota", [0.2, 0.31, 0.5, 0.62])
@pytest.mark.parametrize("wanted", [0.7, 0.8, 1.0])
def test_a_worker_whose_cgroup_is_stopped(quota: float, wanted: float) -> None:
    found = limit(stopped(quota, wanted), "throttled")
    assert f"the worker's cgroup allows {quota:.3g} cores and stopped it" in found.evidence
    assert "Raise the quota of its cgroup (cpu.max" in found.advice


def test_the_evidence_of_a_stopped_worker() -> None:
    run = stopped(0.5, 1.0, throttled_pct=38.0, cpu_wait_pct=38.0, loop_lag_p95_ns=35 * MS)
    assert limit(run, "throttled").evidence == (
        "the worker's cgroup allows 0.5 cores and stopped it 38.0 % of the time; the busiest worker used "
        "50.0 % of a core; a worker was ready to run and had no core 38.0 % of the time; "
        "a worker's event loop lagged 35.0 ms at p95 beside a latency of 65.0 ms (53.8 %)"
    )


def test_a_kernel_that_counts_no_wait_while_a_cgroup_is_stopped() -> None:
    run = stopped(0.5, 1.0, cpu_wait_pct=1.0, awake_pct=51.0)
    assert code_of(run) == "throttled"


def test_a_quota_that_is_not_used_up() -> None:
    assert code_of(stopped(0.5, 0.3)) == "offered-load"


@pytest.mark.parametrize(("throttled_pct", "code"), [(4.9, "client-loop"), (5.0, "throttled")])
def test_how_much_of_the_time(throttled_pct: float, code: str) -> None:
    run = a_run(throttled_pct=throttled_pct, loop_lag_p95_ns=4.9 * MS, cpu_wait_pct=5.0)
    assert code_of(run) == code


def test_a_stopped_worker_that_no_request_feels() -> None:
    run = a_run(throttled_pct=8.0, cpu_quota=0.5, loop_lag_p95_ns=2 * MS, cpu_wait_pct=8.0)
    assert code_of(run) == "offered-load"


def test_a_call_that_blocks_in_a_worker_that_is_seldom_stopped() -> None:
    """200 ms of sleep: stops of 6 % of the time do not make that lag."""
    lagging: dict[str, Any] = {
        "loop_lag_p95_ns": 190 * MS,
        "latency_p95_ns": 260 * MS,
        "worker_cpu_pct": 12.0,
    }
    run = a_run(**lagging, throttled_pct=6.0, cpu_quota=0.5, cpu_wait_pct=6.0)
    assert "blocks the loop" in limit(run, "client-loop").evidence


def test_long_stops_of_a_loop_are_not_those_of_a_quota() -> None:
    stops: dict[str, Any] = {
        "loop_lag_p95_ns": 0.4 * MS,
        "loop_delay_ns": 89 * MS,
        "latency_mean_ns": 170 * MS,
    }
    run = a_run(**stops, throttled_pct=6.0, cpu_quota=0.5, worker_cpu_pct=12.0)
    assert code_of(run) == "client-loop"


def test_a_neighbour_on_the_cores_of_a_worker_that_is_seldom_stopped() -> None:
    run = a_run(throttled_pct=6.0, cpu_quota=4.0, cpu_wait_pct=55.0, loop_lag_p95_ns=12 * MS)
    assert "Stop what else computes" in limit(run, "client-cpu").advice


def test_a_quota_that_runs_out_beside_a_neighbour() -> None:
    """The kernel stops a cgroup when one of its threads would run, which on full cores is late."""
    waits: dict[str, Any] = {"cpu_wait_pct": 62.0, "awake_pct": 92.0, "worker_cpu_pct": 29.9}
    run = a_run(**waits, throttled_pct=20.0, cpu_quota=0.3, used_up_pct=90.0, loop_lag_p95_ns=30 * MS)
    assert limit(run, "throttled").evidence.startswith(
        "the worker's cgroup allows 0.3 cores and stopped it 20.0 % of the time; its quota ran out in 90.0 % "
        "of the periods"
    )
    spare = a_run(**waits, throttled_pct=20.0, cpu_quota=0.3, used_up_pct=40.0, loop_lag_p95_ns=30 * MS)
    assert code_of(spare) == "client-cpu"


def test_more_workers_share_the_quota_that_is_used_up() -> None:
    run = a_run(worker_cpu_pct=94.0, throttled_pct=6.0, cpu_quota=1.0, cpu_wait_pct=6.0)
    assert "allows 1 core and stopped it 6.00 %" in limit(run, "throttled").evidence


def test_a_full_core_under_a_quota_that_is_not() -> None:
    run = a_run(worker_cpu_pct=94.0, throttled_pct=0.0, cpu_quota=2.0)
    assert limit(run, "client-cpu").advice == (
        "Add workers on other hosts, or raise the cgroup's quota (2 cores) and add workers."
    )


def test_worker_and_server_in_one_cgroup() -> None:
    found = limit(stopped(0.5, 1.0, server_cpu_quota=0.5, server_cpu_shared=True), "throttled")
    assert "the embedded server is in the same cgroup" in found.evidence
    assert "cgroups of their own" in found.advice


def quota_at_server(quota: float, threads: int, **changes: Any) -> Summary:
    """A server whose threads compute all the time: each period, n threads run Q / n of it and stop."""
    pct = 100 * max(0.0, 1 - quota / threads)
    taken = {"server_cpu_quota": quota, "server_cpu_throttled_pct": pct}
    return at_server(0.2, 85, 100, server_busy=0.95, level=1, in_flight=1.0, **{**taken, **changes})


@pytest.mark.parametrize(("quota", "threads", "pct"), [(0.5, 1, "50.0"), (2.0, 8, "75.0"), (1.5, 2, "25.0")])
def test_a_server_whose_cgroup_is_stopped(quota: float, threads: int, pct: str) -> None:
    found = limit(quota_at_server(quota, threads), "throttled")
    assert found.evidence.startswith(
        f"the server's cgroup allows {quota:.3g} cores and stopped it {pct} % of the time; "
        "server and unexplained took 92.6 of 100 ms a request"
    )
    assert found.advice.startswith("Raise the quota of its cgroup (cpu.max")


def test_a_stopped_server_of_many_users_is_no_queue() -> None:
    run = at_server(
        600, 40, 642, server_busy=0.99, level=16, in_flight=16.0, server_cpu_throttled_pct=50.0,
        server_cpu_quota=1.0,
    )  # fmt: skip
    assert "allows 1 core" in limit(run, "throttled").evidence


def test_a_server_that_is_stopped_and_has_a_queue_is_told_of_both() -> None:
    """16 % of the time it is stopped, and one instance is busy 98 % of it: 90 of 100 ms are waiting."""
    run = at_server(
        90, 9, 100, server_busy=0.98, serving={"instances": 1}, level=11, in_flight=11.0,
        server_cpu_throttled_pct=16.0, server_cpu_quota=2.0,
    )  # fmt: skip
    found = limit(run, "throttled")
    assert "stopped it 16.0 % of the time" in found.evidence
    assert "requests waited 90.0 of 100 ms in the server's queue" in found.evidence
    assert "the model's one instance was executing 98.0 % of the time" in found.evidence
    assert found.advice.startswith("Raise the quota of its cgroup")
    assert "Where requests wait as long then: Give the model more instances" in found.advice
    alone = at_server(
        0.1, 95, 100, server_busy=0.98, serving={"instances": 1}, level=1, in_flight=1.0,
        server_cpu_throttled_pct=16.0, server_cpu_quota=2.0,
    )  # fmt: skip
    assert "instances" not in limit(alone, "throttled").advice


def test_a_silent_server_that_is_stopped() -> None:
    silent: dict[str, Any] = {
        "server_parts": {},
        "server_busy": None,
        "network_ns": 1 * MS,
        "unexplained_ns": 18 * MS,
    }
    assert code_of(a_run(**silent, server_cpu_throttled_pct=60.0, server_cpu_quota=0.5)) == "throttled"


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"server_cpu_throttled_pct": 14.9}, "server-compute"),
        ({"server_cpu_throttled_pct": 15.0}, "throttled"),
        ({"server_cpu_throttled_pct": 8.0, "server_cpu_used_up_pct": 80.0}, "throttled"),
        ({"server_cpu_throttled_pct": 4.0, "server_cpu_used_up_pct": 80.0}, "server-compute"),
        ({"server_cpu_throttled_pct": None, "server_cpu_quota": 2.0}, "server-compute"),
    ],
)
def test_a_server_that_is_seldom_stopped(changes: dict[str, Any], code: str) -> None:
    assert code_of(quota_at_server(2.0, 4, **changes)) == code


def test_a_stopped_server_that_requests_are_seldom_at() -> None:
    """Its front end polls, and takes 7 of 20 ms."""
    assert code_of(a_run(server_cpu_throttled_pct=40.0, server_cpu_quota=0.1)) == "offered-load"


def test_a_gateway_that_waits_for_its_upstream_is_not_slowed_by_its_own_quota() -> None:
    parts = {"decode": 3 * MS, "upstream": 15 * MS}
    run = a_run(
        server_parts=parts, network_ns=1 * MS, server_busy=None, server_cpu_throttled_pct=30.0,
        server_cpu_quota=1.0,
    )  # fmt: skip
    assert "waited 15.0 of 20.0 ms for its upstream" in limit(run, "inconclusive").evidence


def test_a_client_that_is_stopped_comes_before_its_server() -> None:
    run = stopped(0.5, 1.0, server_cpu_throttled_pct=60.0, server_cpu_quota=1.0)
    assert limit(run, "throttled").evidence.startswith("the worker's cgroup")


LATE: dict[str, Any] = {"loop_lag_p95_ns": 6 * MS, "cpu_wait_pct": 3.0, "worker_cpu_pct": 50.0}


@pytest.mark.parametrize(("stolen_pct", "code"), [(9.9, "client-loop"), (10.0, "cpu-stolen")])
def test_a_host_whose_processors_a_hypervisor_gave_to_others(stolen_pct: float, code: str) -> None:
    assert code_of(a_run(**LATE, stolen_pct=stolen_pct)) == code


def test_the_evidence_of_a_host_without_its_processors() -> None:
    found = limit(a_run(**LATE, stolen_pct=23.0), "cpu-stolen")
    assert found.evidence.startswith(
        "a hypervisor gave others 23.0 % of the time for which a worker's host wanted its processors "
        "(steal); the busiest worker used 50.0 % of a core"
    )
    assert "not oversubscribed" in found.advice


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"loop_lag_p95_ns": 0.4 * MS}, "offered-load"),  # nothing is late
        ({"worker_cpu_pct": 93.0}, "client-cpu"),  # a core was used up all the same
        ({"loop_lag_p95_ns": 190 * MS, "latency_p95_ns": 260 * MS}, "client-loop"),  # a call that blocks
        ({"cpu_wait_pct": 60.0}, "client-cpu"),  # the host's own processes
    ],
)
def test_stolen_time_that_explains_little(changes: dict[str, Any], code: str) -> None:
    assert code_of(a_run(**{**LATE, "stolen_pct": 12.0, **changes})) == code


def test_a_server_without_its_processors() -> None:
    run = at_server(0.2, 85, 100, server_busy=0.95, level=1, in_flight=1.0, server_cpu_stolen_pct=30.0)
    found = limit(run, "cpu-stolen")
    assert "30.0 % of the time for which the server's host wanted its processors" in found.evidence
    assert "not oversubscribed" in found.advice


def test_a_server_that_only_sleeps_loses_nothing() -> None:
    run = at_server(
        0.2, 85, 100, server_busy=0.95, level=1, in_flight=1.0, server_cpu_stolen_pct=30.0,
        facts=BackendFacts(computes=False),
    )  # fmt: skip
    assert code_of(run) == "server-compute"


LOCKED: dict[str, Any] = {
    "worker_cpu_pct": 98.0,
    "loop_cpu_pct": 40.0,
    "awake_pct": 41.0,
    "loop_lag_p95_ns": 9 * MS,
}
"""A thread that runs Python keeps the lock for 5 ms whenever the loop wants it."""


@pytest.mark.parametrize("lock_wait_ns", [None, 5.1 * MS])
def test_a_thread_that_keeps_the_interpreter_lock(lock_wait_ns: float | None) -> None:
    found = limit(a_run(**LOCKED, lock_wait_ns=lock_wait_ns), "client-cpu")
    assert found.evidence.startswith(
        "the busiest worker used 98.0 % of a core; a worker was ready to run and had no core 2.00 % of the "
        "time; its threads used 98.0 % of a core and its event loop ran 40.0 %: "
        "Python runs one thread at a time (the interpreter lock)"
    )
    assert "Stop the users' thread that computes" in found.advice


def test_a_thread_that_computes_now_and_then() -> None:
    run = a_run(worker_cpu_pct=60.0, loop_cpu_pct=10.0, loop_lag_p95_ns=9 * MS, lock_wait_ns=3 * MS)
    assert "the loop waited 3.0 ms for the interpreter lock each time" in limit(run, "client-cpu").evidence


@pytest.mark.parametrize(
    "changes",
    [
        {"lock_wait_ns": 0.02 * MS},  # numpy computes without the lock while something else blocks the loop
        {"worker_cpu_pct": 140.0},  # more than one lock allows
        {"worker_cpu_pct": 60.0},  # a core's worth is not used
        {"worker_cpu_pct": 86.0, "loop_cpu_pct": 65.0, "awake_pct": 66.0},  # little of it beside the loop
    ],
)
def test_threads_that_do_not_keep_the_lock(changes: dict[str, Any]) -> None:
    found = limit(a_run(**{**LOCKED, **changes}), "client-loop")
    assert "does not yield to gevent" in found.advice


def test_a_call_that_sleeps_with_the_lock() -> None:
    """As one by ctypes does, which keeps the lock: the processor is idle meanwhile."""
    run = a_run(worker_cpu_pct=8.0, loop_cpu_pct=6.0, loop_lag_p95_ns=40 * MS, lock_wait_ns=11 * MS)
    found = limit(run, "client-loop")
    assert "waited 11.0 ms for the interpreter lock each time; so some call keeps that lock" in found.evidence
    assert "Find the thread" in found.advice


@pytest.mark.parametrize("latency_ms", [10, 20, 40])
def test_a_call_of_10_ms_that_blocks_half_the_time(latency_ms: int) -> None:
    """10 ms in every 20: a look falls into the call at even chance, and comes late by what is left of it.

    Of all looks half are late by 0 to 10 ms evenly, so that 5 % are late by more than 9 ms.
    """
    lag_ns = 9 * MS
    run = a_run(
        loop_lag_p95_ns=lag_ns, latency_p95_ns=latency_ms * MS, worker_cpu_pct=9.0, loop_cpu_pct=8.0,
        lock_wait_ns=0.03 * MS, throttled_pct=0.0, stolen_pct=0.4,
    )  # fmt: skip
    found = limit(run, "client-loop")
    assert "(a sleep, a lock, a file)" in found.advice


def test_a_codec_that_sleeps_blocks_the_loop() -> None:
    """10 ms of each request: 60 a second keep the loop for 0.6 of the time, in which it hardly runs."""
    known: dict[str, Any] = {
        "loop_lag_p95_ns": 9 * MS,
        "decode_ns": 10 * MS,
        "requests_per_s": 60.0,
        "network_ns": 2 * MS,
    }
    assert code_of(a_run(**known, worker_cpu_pct=8.0)) == "client-loop"
    assert code_of(a_run(**known, worker_cpu_pct=62.0)) != "client-loop"  # one that computes
