"""When processor time that was taken away is the limit, and when other causes look like it."""

from typing import Any

import pytest

from reports.backend_facts import BackendFacts
from reports.caveat import caveat
from reports.machines.gpus import GpuUse
from reports.summary.summary import Summary
from tests.reports.limit_runs import MS, a_run, at_server, named
from tests.reports.limits.test_rules import code_of
from tests.reports.parts import changed

RAISE = "Raise the quota of its cgroup (cpu.max; a container's --cpus, a pod's CPU limit), or remove it."
APART = "Give workers and server cgroups of their own, or raise the quota (cpu.max, a pod's CPU limit)."
OWN_HOST = "Use a host that is not oversubscribed: one with processors of its own (dedicated, or bare metal)."
STOPPING: dict[str, Any] = {
    "loop_lag_p95_ns": 0.4 * MS,
    "loop_delay_ns": 30 * MS,
    "latency_mean_ns": 140 * MS,
}
WAITING = {"cpu_wait_pct": 62.0, "awake_pct": 92.0, "worker_cpu_pct": 29.9, "loop_lag_p95_ns": 30 * MS}
WAITING |= {"throttled_pct": 20.0, "cpu_quota": 0.3}
"""On the cores of neighbours, where the kernel stops a cgroup late: when one of its threads would run."""
LOCKED: dict[str, Any] = {
    "worker_cpu_pct": 98.0,
    "loop_cpu_pct": 40.0,
    "awake_pct": 41.0,
    "loop_lag_p95_ns": 9 * MS,
}
"""A thread that runs Python keeps the lock for 5 ms whenever the loop wants it."""
STOLEN: dict[str, Any] = {"loop_lag_p95_ns": 6 * MS, "cpu_wait_pct": 3.0, "worker_cpu_pct": 50.0}
STOLEN |= {"stolen_pct": 12.0}
HALF, LESS = {"compute": 48 * MS}, {"compute": 47.9 * MS}
"""Of 100 ms at the server, with 2 ms that are unexplained."""
LATE_CAVEATS = (caveat("client-bound", "late"),)
FULL_GPU = (GpuUse(id="GPU-71ce41fd-3ac0", serves=True, util_pct=97.0, power_share=0.95),)


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


def quota_at_server(quota: float, threads: int, **changes: Any) -> Summary:
    """A server whose threads compute all the time: each period, n threads run Q / n of it and stop."""
    pct = 100 * max(0.0, 1 - quota / threads)
    return at_busy_server(**{"server_cpu_quota": quota, "server_cpu_throttled_pct": pct, **changes})


def at_busy_server(**changes: Any) -> Summary:
    """One user whose requests are computed on for 85 of 100 ms."""
    return at_server(0.2, 85, 100, **{"server_busy": 0.95, "level": 1, "in_flight": 1.0, **changes})


@pytest.mark.parametrize("quota", [0.2, 0.31, 0.5, 0.62])
@pytest.mark.parametrize("wanted", [0.7, 0.8, 1.0])
def test_a_worker_whose_cgroup_is_stopped(quota: float, wanted: float) -> None:
    found = named(stopped(quota, wanted), "throttled")
    assert f"the worker's cgroup allows {quota:.3g} cores and stopped it" in found.evidence
    assert found.advice == RAISE


def test_the_evidence_of_a_stopped_worker() -> None:
    run = stopped(0.5, 1.0, throttled_pct=38.0, cpu_wait_pct=38.0, loop_lag_p95_ns=35 * MS)
    assert named(run, "throttled").evidence == (
        "the worker's cgroup allows 0.5 cores and stopped it 38.0 % of the time; the busiest worker used "
        "50.0 % of a core; a worker was ready to run and had no core 38.0 % of the time; "
        "a worker's event loop lagged 35.0 ms at p95 beside a latency of 65.0 ms (53.8 %)"
    )


LATE: dict[str, Any] = {
    "cpu_quota": 0.5,
    "throttled_pct": 6.0,
    "loop_lag_p95_ns": 5 * MS,
    "cpu_wait_pct": 6.0,
}
AT_SERVER = {"unexplained_ns": 2 * MS}
STARVED = LATE | {"throttled_pct": 30.0, "cpu_wait_pct": 30.0, "loop_lag_p95_ns": 3 * MS}
RUNS_OUT = {"server_cpu_used_up_pct": 50.0}


@pytest.mark.parametrize(
    ("code", "run", "figure", "at", "beyond"),
    [
        ("throttled", a_run(**LATE), "throttled_pct", 5.0, 4.9),
        # 5 ms at p95 are 1.25 of each 25 ms, in looks that saw few of the gaps: a twentieth.
        ("throttled", a_run(**LATE | {"throttled_pct": 5.0}), "loop_lag_p95_ns", 5.0 * MS, 5.1 * MS),
        ("throttled", a_run(**LATE), "cpu_wait_pct", 12.0, 12.1),  # others took more
        ("throttled", a_run(**LATE | {"cpu_wait_pct": 12.1}), "used_up_pct", 50.0, 49.9),
        # Events wait half of a stop: 6 % of a second are stops of 60 ms at the most.
        ("throttled", a_run(**LATE | STOPPING), "loop_delay_ns", 30 * MS, 30.1 * MS),
        ("throttled", at_busy_server(), "server_cpu_throttled_pct", 15.0, 14.9),
        ("throttled", at_busy_server(**RUNS_OUT), "server_cpu_throttled_pct", 5.0, 4.9),
        ("throttled", at_busy_server(server_cpu_throttled_pct=14.9), "server_cpu_used_up_pct", 50.0, 49.9),
        ("throttled", quota_at_server(2, 4, **AT_SERVER), "server_parts", HALF, LESS),
        ("cpu-stolen", a_run(**STOLEN), "stolen_pct", 10.0, 9.9),
        ("cpu-stolen", a_run(**STOLEN | {"awake_pct": 93.0}), "loop_cpu_pct", 89.9, 90.0),
        ("cpu-stolen", at_busy_server(), "server_cpu_stolen_pct", 15.0, 14.9),
        ("cpu-stolen", at_busy_server(**AT_SERVER, server_cpu_stolen_pct=30.0), "server_parts", HALF, LESS),
        ("client-cpu", a_run(**LOCKED), "worker_cpu_pct", 85.0, 84.9),
        ("client-cpu", a_run(**LOCKED), "worker_cpu_pct", 110.0, 110.1),
        ("client-cpu", a_run(**LOCKED), "loop_cpu_pct", 73.0, 73.1),
        ("client-cpu", a_run(**LOCKED | {"worker_cpu_pct": 140.0}), "lock_wait_ns", 2.0 * MS, 1.9 * MS),
        ("client-cpu", a_run(**LOCKED), "loop_lag_p95_ns", 4.9 * MS, 4.8 * MS),
    ],
)
def test_where_time_that_was_taken_is_the_limit(
    code: str, run: Summary, figure: str, at: Any, beyond: Any
) -> None:
    assert code_of(changed(run, **{figure: at})) == code
    assert code_of(changed(run, **{figure: beyond})) != code


@pytest.mark.parametrize(
    ("run", "code"),
    [
        (stopped(0.5, 0.3), "offered-load"),  # a quota that is not used up
        (stopped(0.5, 1.0, cpu_wait_pct=1.0, awake_pct=51.0), "throttled"),  # a kernel may count no wait
        (a_run(**LATE | {"loop_lag_p95_ns": 2 * MS}), "offered-load"),  # no request feels it
        (a_run(**LATE | {"loop_lag_p95_ns": 190 * MS, "latency_p95_ns": 260 * MS}), "client-loop"),  # a sleep
        (a_run(**LATE | STOPPING | {"loop_delay_ns": 89 * MS}), "client-loop"),
        (a_run(**LATE | {"loop_lag_p95_ns": 12 * MS, "cpu_wait_pct": 55.0}), "client-cpu"),  # a neighbour
        (a_run(**WAITING, used_up_pct=40.0), "client-cpu"),
        (a_run(**LATE | {"worker_cpu_pct": 94.0}), "throttled"),  # workers share what is used up
        (a_run(**STARVED), "throttled"),  # it lacks CPU, and its lag is felt
        (a_run(**LATE | {"loop_lag_p95_ns": None, "caveats": LATE_CAVEATS}), "throttled"),
        (quota_at_server(2, 4, server_cpu_throttled_pct=None), "server-compute"),
        (quota_at_server(2, 4, host_cpu_pct=95.0), "server-compute"),  # a larger quota would find no core
        (quota_at_server(2, 4, host_cpu_pct=95.0, **RUNS_OUT), "throttled"),
        (quota_at_server(2, 4, each_gpu=FULL_GPU), "server-compute"),
        (quota_at_server(2, 4, each_gpu=FULL_GPU, **RUNS_OUT), "server-compute"),
        (quota_at_server(2, 4, unexplained_ns=-1 * MS, server_parts=HALF | {"input": 2 * MS}), "throttled"),
        (quota_at_server(2, 4, unexplained_ns=90 * MS, server_parts={}, server_busy=None), "throttled"),
        # Its front end polls, and takes 7 of 20 ms.
        (a_run(server_cpu_throttled_pct=40.0, server_cpu_quota=0.1), "offered-load"),
        (a_run(**STOLEN | {"loop_lag_p95_ns": 0.4 * MS}), "offered-load"),  # nothing is late
        (a_run(**STOLEN | {"worker_cpu_pct": 90.0}), "client-cpu"),  # a core was used up all the same
        (a_run(**STOLEN | {"loop_lag_p95_ns": 190 * MS, "latency_p95_ns": 260 * MS}), "client-loop"),
        (a_run(**STOLEN | {"cpu_wait_pct": 60.0}), "client-cpu"),  # the host's own processes
        (at_busy_server(server_cpu_stolen_pct=30.0, each_gpu=FULL_GPU), "server-compute"),
        # One that only sleeps loses nothing.
        (at_busy_server(server_cpu_stolen_pct=30.0, facts=BackendFacts(computes=False)), "server-compute"),
        (a_run(**LOCKED, lock_wait_ns=1.9 * MS), "client-loop"),  # numpy computes without the lock
        (a_run(**LOCKED | {"loop_cpu_pct": None}), "client-cpu"),  # a full core, as far as is known
    ],
)
def test_what_else_says_whether_time_that_was_taken_is_it(run: Summary, code: str) -> None:
    limit = named(run, code)
    assert "(the interpreter lock)" not in limit.evidence
    assert ("does not yield to gevent" in limit.advice) is (code == "client-loop")


def test_a_quota_that_runs_out_beside_a_neighbour() -> None:
    run = a_run(**WAITING, used_up_pct=90.0)
    assert named(run, "throttled").evidence.startswith(
        "the worker's cgroup allows 0.3 cores and stopped it 20.0 % of the time; its quota ran out in 90.0 % "
        "of the periods; the busiest worker used"
    )


@pytest.mark.parametrize(
    ("quota", "said"), [(1.0, "allows 1 core and stopped it 6.00 %"), (None, "cgroup stopped it 6.00 %")]
)
def test_the_quota_is_told_where_it_is_known(quota: float | None, said: str) -> None:
    run = a_run(worker_cpu_pct=94.0, throttled_pct=6.0, cpu_quota=quota, cpu_wait_pct=6.0)
    assert said in named(run, "throttled").evidence


def test_a_full_core_under_a_quota_that_is_not() -> None:
    run = a_run(worker_cpu_pct=94.0, throttled_pct=0.0, cpu_quota=2.0)
    assert "raise the cgroup's quota (2 cores)" in named(run, "client-cpu").advice


def test_worker_and_server_in_one_cgroup() -> None:
    found = named(stopped(0.5, 1.0, server_cpu_quota=0.5, server_cpu_shared=True), "throttled")
    assert "; the embedded server is in the same cgroup; the busiest worker" in found.evidence
    assert found.advice == APART


@pytest.mark.parametrize(("quota", "threads", "pct"), [(0.5, 1, "50.0"), (2.0, 8, "75.0"), (1.5, 2, "25.0")])
def test_a_server_whose_cgroup_is_stopped(quota: float, threads: int, pct: str) -> None:
    found = named(quota_at_server(quota, threads), "throttled")
    assert found.evidence == (
        f"the server's cgroup allows {quota:.3g} cores and stopped it {pct} % of the time; "
        "server and unexplained took 92.6 of 100 ms a request"
    )
    assert found.advice == RAISE


def test_master_and_server_in_one_cgroup() -> None:
    shared = quota_at_server(1.0, 2, server_cpu_shared=True, server_cpu_used_up_pct=60.0)
    found = named(shared, "throttled")
    assert "its quota ran out in 60.0 % of the periods; the master is in the same cgroup;" in found.evidence
    assert found.advice == APART


def test_a_server_that_is_stopped_and_has_a_queue_is_told_of_both() -> None:
    """16 % of the time it is stopped, and one instance is busy 98 % of it: 90 of 100 ms are waiting."""
    run = at_server(
        90, 9, 100, server_busy=0.98, serving={"instances": 1}, level=11, in_flight=11.0,
        server_cpu_throttled_pct=16.0, server_cpu_quota=1.0,
    )  # fmt: skip
    found = named(run, "throttled")
    assert "allows 1 core and stopped it 16.0 % of the time" in found.evidence
    assert "requests waited 90.0 of 100 ms in the server's queue" in found.evidence
    assert "the model's one instance was executing 98.0 % of the time" in found.evidence
    assert found.advice.startswith(f"{RAISE} Where requests wait as long then: Try more instances")


def test_a_gateway_that_waits_for_its_upstream_is_not_slowed_by_its_own_quota() -> None:
    parts = {"decode": 3 * MS, "upstream": 15 * MS}
    run = a_run(
        server_parts=parts, network_ns=1 * MS, server_busy=None, server_cpu_throttled_pct=30.0,
        server_cpu_quota=1.0,
    )  # fmt: skip
    assert "waited 15.0 of 20.0 ms for its upstream" in named(run, "inconclusive").evidence


def test_a_client_that_is_stopped_comes_before_its_server() -> None:
    run = stopped(0.5, 1.0, server_cpu_throttled_pct=60.0, server_cpu_quota=1.0)
    assert named(run, "throttled").evidence.startswith("the worker's cgroup")


def test_the_evidence_of_a_host_whose_processors_a_hypervisor_gave_to_others() -> None:
    found = named(a_run(**STOLEN | {"stolen_pct": 23.0}), "cpu-stolen")
    assert found.evidence == (
        "a hypervisor gave others 23.0 % of the time for which a worker's host wanted its processors "
        "(steal); the busiest worker used 50.0 % of a core; a worker was ready to run and had no core 3.00 % "
        "of the time; a worker's event loop lagged 6.0 ms at p95 beside a latency of 24.0 ms (25.0 %)"
    )
    assert found.advice == OWN_HOST


def test_the_evidence_of_a_server_without_its_processors() -> None:
    found = named(at_busy_server(server_cpu_stolen_pct=30.0), "cpu-stolen")
    assert found.evidence == (
        "a hypervisor gave others 30.0 % of the time for which the server's host wanted its processors "
        "(steal); server and unexplained took 92.6 of 100 ms a request"
    )
    assert found.advice == OWN_HOST


@pytest.mark.parametrize("lock_wait_ns", [None, 5.1 * MS])
def test_a_thread_that_keeps_the_interpreter_lock(lock_wait_ns: float | None) -> None:
    found = named(a_run(**LOCKED, lock_wait_ns=lock_wait_ns), "client-cpu")
    waited = "" if lock_wait_ns is None else "the loop waited 5.1 ms for the interpreter lock each time; "
    assert found.evidence == (
        "the busiest worker used 98.0 % of a core; a worker was ready to run and had no core 2.00 % of the "
        "time; its threads used 98.0 % of a core and its event loop ran 40.0 %: "
        f"Python runs one thread at a time (the interpreter lock); {waited}"
        "a worker's event loop lagged 9.0 ms at p95 beside a latency of 24.0 ms (37.5 %)"
    )
    assert found.advice == (
        "Stop the users' thread that computes, give it its own process, or add workers (--processes)."
    )


def test_a_thread_that_computes_now_and_then_with_the_lock() -> None:
    run = a_run(**LOCKED | {"worker_cpu_pct": 65.0, "cpu_wait_pct": 3.0}, lock_wait_ns=3 * MS)
    assert "the loop waited 3.0 ms for the interpreter lock each time" in named(run, "client-cpu").evidence
    others_have_the_core = named(a_run(**LOCKED, cpu_wait_pct=25.0), "client-cpu")
    assert "interpreter lock" not in others_have_the_core.evidence + others_have_the_core.advice


def test_a_call_that_sleeps_with_the_lock() -> None:
    """As one by ctypes does, which keeps the lock: the processor is idle meanwhile."""
    run = a_run(worker_cpu_pct=8.0, loop_cpu_pct=6.0, loop_lag_p95_ns=40 * MS, lock_wait_ns=11 * MS)
    found = named(run, "client-loop")
    assert found.evidence.endswith(
        "; the loop waited 11.0 ms for the interpreter lock each time; so some call keeps that lock"
    )
    assert found.advice == (
        "Find the thread of the users that keeps the interpreter lock, and give it its own process."
    )
