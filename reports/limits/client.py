"""The client as the limit: its worker has no CPU left, or something blocks the worker's event loop."""

from collections.abc import Iterator

from reports.caveat import Trait
from reports.caveats.client import BUSY_PCT, lags, waits_make_lag
from reports.fold.records import ratio
from reports.format import digits, ms, plural
from reports.limit import Limit
from reports.limits.shares import at_least, has_caveat, server_share, service_ns, total
from reports.summary.summary import Summary

AWAITED_PCT = 25
"""Of the time ready to run and without a core: a process that others leave alone waits a few percent."""
FELT_LAG_SHARE = 0.1
"""Of the latency at p95: a wait for a core that no request feels is not the limit."""
SERVER_SHARE = 0.6
"""Of the service time: a worker waits for a core at no cost while its requests are at the server."""
AWAKE_PCT = 70
"""Used or awaited: a loop with so little idle time lacks CPU; a blocked one has it and idles."""
MOST_PCT, NEVER_IDLE_PCT = 50, 95
"""Of a core: a worker that uses most of one, and waits for it nearly all the rest of the time."""
LOOK_NS = 20_000_000
"""How long the lag probe sleeps before each look at the loop."""
CODEC_SHARE, CODEC_PCT = 0.5, 70
"""Building requests and reading answers is most of a request's time, and keeps its core busy."""
ON_CPU_SHARE = 0.5
"""Of the loop's time in our codec, that it ran: in one that runs less, something waits."""
LOCK_WAIT_NS = 2_000_000
"""Mean wait for the interpreter lock: some microseconds, and 5 ms where another thread runs Python."""
LOCKED_PCT, OTHERS_PCT, ONE_CORE_PCT = 85, 25, 110
"""Of a core: threads under one lock use nearly all of one and no more, much of it beside the loop; the last
has room for errors of the kernel's ticks."""
PORTS_CODE = "EADDRNOTAVAIL"
PORTS_SHARE = 0.01
"""Of the requests: once no port is left, connections fail at the rate at which they are made."""
PORTS_ADVICE = (
    "Keep connections (--channels per-user, keep-alive on the server), widen net.ipv4.ip_local_port_range, or"
    " add hosts: a closed connection holds its port for a minute."
)


def client_ports(run: Summary) -> Limit | None:
    """This machine has no local port left for a new connection.

    Where no request succeeded, the address itself may be one that is not available here.
    """
    failed, finished = run.counts.failure_codes.get(PORTS_CODE, 0), run.counts.requests or 0
    if run.status != "done" or any(caveat.has(Trait.SPLITS) for caveat in run.caveats):
        return None
    if not failed or failed < PORTS_SHARE * finished or run.succeeded <= 0:
        return None
    said = [f"{failed:,} of {finished:,} requests found no free local port ({PORTS_CODE})"]
    if (each := run.counts.connects_per_request) is not None:
        said.append(f"{digits(each)} connections were made for each of the others")
    return Limit("client-ports", "; ".join(said), PORTS_ADVICE)


def client_cpu(run: Summary) -> Limit | None:
    """A worker used up its core, or had to wait for one that another process had."""
    lacking = held_up(run) and (_on_cpu(run) or locked_out(run))
    if not (used_up(run) or starved(run) or _coding(run) or lacking):
        return None
    return Limit("client-cpu", "; ".join([*_cpu_said(run), *lag_said(run)]), _advice(run))


def client_loop(run: Summary) -> Limit | None:
    """A worker's event loop came late although there was CPU for it.

    Where waits for a core account for the lag, they cost no more than their share of the time, which
    `client_cpu` has found to be small: the highest percentiles suffer, but it is not the limit. Where they
    are seen to make the lag and requests suffer all the same, nothing blocks the loop but the want of a core.
    """
    if not held_up(run) or (_waits_account_for_lag(run) and not stops_long(run)) or _codec_holds(run):
        return None
    if waits_make_lag(run.generator):
        return Limit("client-cpu", "; ".join([*_cpu_said(run), *lag_said(run)]), _advice(run))
    bound_by = [caveat.text for caveat in run.caveats if caveat.code == "client-bound"]
    said = [*(lag_said(run) or bound_by), *_cpu_said(run)]
    if _waits_for_lock(run):
        said.append("so some call keeps that lock")
        advice = "Find the thread of the users that keeps the interpreter lock, and give it its own process."
    else:
        said.append("so something else blocks the loop")
        advice = (
            "Find what the users call that does not yield to gevent (a sleep, a lock, a file); "
            "or add workers."
        )
    return Limit("client-loop", "; ".join(said), advice)


def used_up(run: Summary) -> bool:
    """Whether a worker used a core all the time that it had one."""
    return at_least(used_pct(run), BUSY_PCT) or (
        at_least(used_pct(run), MOST_PCT) and awake_pct(run) >= NEVER_IDLE_PCT
    )


def used_pct(run: Summary) -> float | None:
    """Of a core by the event loop's thread, or by all threads where that is not known."""
    client = run.generator
    return client.worker_cpu_pct if client.loop_cpu_pct is None else client.loop_cpu_pct


def awake_pct(run: Summary) -> float:
    """Of the time that one worker's loop ran or waited for a core."""
    client = run.generator
    spent = total(client.worker_cpu_pct, client.cpu_wait_pct)
    return spent if client.awake_pct is None else client.awake_pct


def held_up(run: Summary) -> bool:
    """Whether a worker's loop was late by a part of the latency that counts."""
    lagging = lags(run.generator.loop_lag_p95_ns, run.latency.any_p95_ns)
    return lagging or stops_long(run) or has_caveat(run, "client-bound")


def stops_long(run: Summary) -> bool:
    """Whether the loop stops seldom and for long: events wait for it, though few looks at it were late."""
    return lags(run.generator.loop_delay_ns, run.latency.mean_ns)


def _codec_holds(run: Summary) -> bool:
    """Whether our own building of requests and reading of answers is what the loop does when it is late."""
    coding_ns, lag_ns = total(run.phases.encode_ns, run.phases.decode_ns), run.generator.loop_lag_p95_ns
    if lag_ns is None or coding_ns < lag_ns / 2 or coding_ns <= 0:
        return False
    # A codec that sleeps, or waits for a file, takes time as one that computes does, and no CPU.
    per_worker_s = ratio(run.counts.requests_per_s, run.workers)
    used = used_pct(run)
    if per_worker_s is None or used is None:
        return True
    return used / 100 >= ON_CPU_SHARE * min(1.0, coding_ns / 1e9 * per_worker_s)


def _on_cpu(run: Summary) -> bool:
    """Whether a lagging loop is one that lacks CPU."""
    return at_least(run.generator.cpu_wait_pct, AWAITED_PCT) or awake_pct(run) >= AWAKE_PCT


def locked_out(run: Summary) -> bool:
    """Whether other threads of a worker compute, and its loop waits for the interpreter lock meanwhile.

    Threads that compute without the lock, such as numpy's and gRPC's, leave it to the loop. Where waits for
    the lock were not looked at, threads that together use one core and no more are taken to share it.
    """
    client = run.generator
    used, loop = client.worker_cpu_pct, client.loop_cpu_pct
    if used is None or loop is None or used - loop < OTHERS_PCT:
        return False
    if client.lock_wait_ns is not None:
        return _waits_for_lock(run)
    return LOCKED_PCT <= used <= ONE_CORE_PCT and not at_least(client.cpu_wait_pct, AWAITED_PCT)


def _waits_for_lock(run: Summary) -> bool:
    return at_least(run.generator.lock_wait_ns, LOCK_WAIT_NS)


def _waits_account_for_lag(run: Summary) -> bool:
    """Whether the loop waited for a core as long as it lagged: on average half its p95 at each look."""
    lag = run.generator.loop_lag_p95_ns
    if lag is None or run.generator.cpu_wait_pct is None:
        return False
    return run.generator.cpu_wait_pct / 100 >= lag / 2 / (LOOK_NS + lag)


def starved(run: Summary) -> bool:
    """Whether requests felt that the worker waited for a core."""
    if not at_least(run.generator.cpu_wait_pct, AWAITED_PCT):
        return False
    if awake_pct(run) >= AWAKE_PCT:
        return True
    # Of a silent server it is not known whether the requests were there meanwhile.
    felt, share = ratio(run.generator.loop_lag_p95_ns, run.latency.any_p95_ns), server_share(run)
    return (felt is None or felt >= FELT_LAG_SHARE) and share is not None and share < SERVER_SHARE


def _coding(run: Summary) -> bool:
    share = ratio(total(run.phases.encode_ns, run.phases.decode_ns), service_ns(run))
    return at_least(share, CODEC_SHARE) and at_least(used_pct(run), CODEC_PCT)


def cpu_said(run: Summary, least_wait_pct: float = 0) -> Iterator[str]:
    """What the workers used of a core, and how long they waited for one where that is so much."""
    if run.generator.worker_cpu_pct is not None:
        yield f"the busiest worker used {digits(run.generator.worker_cpu_pct)} % of a core"
    if run.generator.cpu_wait_pct is not None and run.generator.cpu_wait_pct >= least_wait_pct:
        yield f"a worker was ready to run and had no core {digits(run.generator.cpu_wait_pct)} % of the time"


def _cpu_said(run: Summary) -> Iterator[str]:
    if run.local and waits_make_lag(run.generator):
        cores = "cores" if run.host_cores is None else plural(run.host_cores, "core")
        yield f"client and server share the host's {cores}"
    yield from cpu_said(run)
    yield from _lock_said(run)
    pressure_pct = run.generator.pressure_pct
    if pressure_pct is not None and pressure_pct >= AWAITED_PCT and starved(run):
        yield f"some process on its host waited for a core {digits(pressure_pct)} % of the time"
    if _coding(run):
        coding = ms(total(run.phases.encode_ns, run.phases.decode_ns))
        yield f"building requests and reading answers took {coding} of {ms(service_ns(run))} ms"


def _lock_said(run: Summary) -> Iterator[str]:
    """How the loop waits for other threads that run Python, where it does."""
    client = run.generator
    if held_up(run) and locked_out(run):
        used, loop = (digits(pct or 0.0) for pct in (client.worker_cpu_pct, client.loop_cpu_pct))
        ran = f"its threads used {used} % of a core and its event loop ran {loop} %"
        yield f"{ran}: Python runs one thread at a time (the interpreter lock)"
    if _waits_for_lock(run):
        yield f"the loop waited {ms(client.lock_wait_ns)} ms for the interpreter lock each time"


def lag_said(run: Summary) -> list[str]:
    """How late the loop was, the share that speaks against it first."""
    fit, latency = run.generator, run.latency
    lag_ns, latency_ns = fit.loop_lag_p95_ns, latency.any_p95_ns
    if lag_ns is None or latency_ns is None:
        return []
    lagged = f"a worker's event loop lagged {ms(lag_ns)} ms at p95"
    beside = f"beside a latency of {ms(latency_ns)} ms{_percent(lag_ns, latency_ns)}"
    if not stops_long(run):
        return [f"{lagged} {beside}"]
    waited = f"events waited {ms(fit.loop_delay_ns)} ms for a worker's event loop on average"
    of_mean = f"of a latency of {ms(latency.mean_ns)} ms{_percent(fit.loop_delay_ns, latency.mean_ns)}"
    return [f"{waited}, {of_mean}", f"{lagged} {beside}"]


def _percent(part: float | None, whole: float | None) -> str:
    share = ratio(part, whole)
    return "" if share is None else f" ({digits(100 * share)} %)"


def _advice(run: Summary) -> str:
    if waits_make_lag(run.generator) and run.local:
        return "Give the client cores of its own (taskset, cpusets), or a host of its own."
    if total(run.generator.cpu_wait_pct) > total(run.generator.worker_cpu_pct) or starved(run):
        return "Stop what else computes on the client's host, or give the client a host with free cores."
    if held_up(run) and locked_out(run):
        return "Stop the users' thread that computes, give it its own process, or add workers (--processes)."
    if run.built_anew and _coding(run):
        return "Use --client prepared, or add workers (--processes): building requests takes the time."
    if (quota := run.generator.cpu_quota) is not None:
        return f"Add workers on other hosts, or raise the cgroup's quota ({quota:.3g} cores) and add workers."
    return "Add workers (--processes) or hosts: each worker has one core."
