"""Processor time that is taken away as the limit: by the quota of a cgroup, or by a hypervisor.

Both leave gaps in which nothing runs. So a share of time that was taken is no limit by itself: a loop that
lags, or a server that most of the time is spent at, has to show it, and by no more than such gaps explain.
"""

from collections.abc import Iterator

from reports.caveats.client import BUSY_PCT
from reports.format import digits, ms
from reports.limit import UNKNOWN, Limit
from reports.limits.client import (
    LOOK_NS,
    cpu_said,
    held_up,
    lag_said,
    starved,
    stops_long,
    used_pct,
    used_up,
)
from reports.limits.server import exhausted, server_queue
from reports.limits.shares import (
    MOST,
    at_least,
    full_gpu,
    held_ns,
    service_ns,
    total,
    upstream_share,
)
from reports.summary.summary import Summary

THROTTLED_PCT = 5
"""Of the time: a cgroup that is stopped more seldom delays fewer than one request in twenty."""
STOLEN_PCT = 10
"""Of the time that the host's processors were wanted: hosts with neighbours lose a few percent."""
SERVER_PCT = 15
"""Of the time, at a server: without it a server that computes would do about a sixth more."""
USED_UP_PCT = 50
"""Of the periods: a quota that runs out in most of them is what is to be had, whatever others take beside it.
On a busy host a cgroup is stopped late, and for less than the rest of the period."""
GAPS_TIMES = 4
"""A lag at p95 is about twice its mean, and a gap is seen by few looks of a second: so much room for both."""
LONGEST_PERIOD_NS = 1_000_000_000
"""Of a quota, by the kernel's own bound: a cgroup is stopped for no longer at once."""
QUOTA_ADVICE = (
    "Raise the quota of its cgroup (cpu.max; a container's --cpus, a pod's CPU limit), or remove it."
)
SHARED_ADVICE = (
    "Give workers and server cgroups of their own, or raise the quota (cpu.max, a pod's CPU limit)."
)
DEDICATED_HOST_ADVICE = (
    "Use a host that is not oversubscribed: one with processors of its own (dedicated, or bare metal)."
)


def client_throttled(run: Summary) -> Limit | None:
    """A worker's cgroup was stopped, and its loop came late or had no CPU for that reason.

    Where it used up a core all the same, more workers would share the same quota.
    """
    client, shared = run.generator, run.server_cpu.shared
    runs_out = at_least(client.used_up_pct, USED_UP_PCT)
    taken_pct = client.throttled_pct or 0.0
    if taken_pct < THROTTLED_PCT or not _suffers(run, taken_pct, runs_out):
        return None
    said = [_stopped_said("the worker's cgroup", client.cpu_quota, taken_pct, client.used_up_pct)]
    if shared:
        said.append("the embedded server is in the same cgroup")
    said += [*cpu_said(run), *lag_said(run)]
    return Limit("throttled", "; ".join(said), SHARED_ADVICE if shared else QUOTA_ADVICE)


def client_stolen(run: Summary) -> Limit | None:
    """A hypervisor gave a worker's processors to others, and its loop came late for that reason."""
    stolen_pct = run.generator.stolen_pct
    if at_least(used_pct(run), BUSY_PCT):
        return None  # it used up a core in spite of that, and other workers would have other cores
    if not at_least(stolen_pct, STOLEN_PCT) or not _suffers(run, stolen_pct or 0.0):
        return None
    said = [_stolen_said("a worker's", stolen_pct), *cpu_said(run), *lag_said(run)]
    return Limit("cpu-stolen", "; ".join(said), DEDICATED_HOST_ADVICE)


def server_throttled(run: Summary) -> Limit | None:
    """The server's cgroup was stopped, and most of a request's time is spent at the server."""
    cpu, runs_out = run.server_cpu, at_least(run.server_cpu.used_up_pct, USED_UP_PCT)
    if not at_least(cpu.throttled_pct, THROTTLED_PCT if runs_out else SERVER_PCT) or not _at_server(run):
        return None
    if full_gpu(run) or (exhausted(run) and not runs_out):
        return None
    said = [_stopped_said("the server's cgroup", cpu.quota, cpu.throttled_pct or 0.0, cpu.used_up_pct)]
    if cpu.shared:
        said.append("the master is in the same cgroup")
    said += _server_said(run)
    advice = SHARED_ADVICE if cpu.shared else QUOTA_ADVICE
    if queue := server_queue(run):  # stops lengthen executions, so that instances may be full for them alone
        said.append(queue.evidence)
        advice = f"{advice} Where requests wait as long then: {queue.advice}"
    return Limit("throttled", "; ".join(said), advice)


def server_stolen(run: Summary) -> Limit | None:
    """A hypervisor gave the server's processors to others while most of a request's time was spent there."""
    cpu = run.server_cpu
    if not at_least(cpu.stolen_pct, SERVER_PCT) or not _at_server(run):
        return None
    if not run.facts.computes or full_gpu(run):
        return None
    said = [_stolen_said("the server's", cpu.stolen_pct), *_server_said(run)]
    return Limit("cpu-stolen", "; ".join(said), DEDICATED_HOST_ADVICE)


def others_on_cores(run: Summary) -> Limit | None:
    """Other processes had many of the full cores of a server's host, so that its own limit is not seen."""
    taken = next((doubt for doubt in run.caveats if doubt.code == "others-cpu"), None)
    if taken is None or not run.local or not run.facts.computes or full_gpu(run):
        return None
    why = f"{taken.text}: what the server would do without them is not known"
    return Limit(UNKNOWN, why, "Stop these processes, or give the server cores or a host of its own.")


def _suffers(run: Summary, taken_pct: float, runs_out: bool = False) -> bool:
    """Whether a worker lacks CPU or its loop comes late, and gaps of so much of the time account for that.

    Where a quota `runs_out`, its worker would be stopped for longer if others let it run sooner.
    """
    client, share = run.generator, taken_pct / 100
    if taken_pct < (client.cpu_wait_pct or 0.0) / 2 and not runs_out:
        return False  # other processes of the host took more
    if used_up(run) or starved(run):
        return True
    if not held_up(run):
        return False
    if stops_long(run) and (client.loop_delay_ns or 0.0) > share * LONGEST_PERIOD_NS / 2:
        return False
    lag_ns = client.loop_lag_p95_ns
    return lag_ns is None or share >= lag_ns / GAPS_TIMES / (LOOK_NS + lag_ns)


def _at_server(run: Summary) -> bool:
    """Whether most of the service time is the server's own, with what no part explains."""
    whole = held_ns(run)
    return bool(whole) and _server_ns(run) / (whole or 1.0) - (upstream_share(run) or 0.0) >= MOST


def _server_ns(run: Summary) -> float:
    """What it states and what is unexplained: a server that is stopped takes in and answers late, too."""
    return total(run.server.total_ns, max(0.0, run.unexplained_ns or 0.0))


def _server_said(run: Summary) -> Iterator[str]:
    yield f"server and unexplained took {ms(_server_ns(run))} of {ms(service_ns(run))} ms a request"


def _stopped_said(who: str, quota: float | None, stopped_pct: float, used_up_pct: float | None) -> str:
    allowed = "" if quota is None else f"allows {quota:.3g} {'core' if quota == 1 else 'cores'} and "
    ran_out = "" if used_up_pct is None else f"; its quota ran out in {digits(used_up_pct)} % of the periods"
    return f"{who} {allowed}stopped it {digits(stopped_pct)} % of the time{ran_out}"


def _stolen_said(whose: str, stolen_pct: float | None) -> str:
    share = f"{digits(stolen_pct or 0.0)} % of the time for which {whose} host wanted its processors"
    return f"a hypervisor gave others {share} (steal)"
