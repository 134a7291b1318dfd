"""The client as the limit: its worker has no CPU left, or something blocks the worker's event loop."""

from collections.abc import Iterator

from reports.caveats.client import BUSY_PCT, lags
from reports.fold.records import ratio
from reports.format import digits, ms
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


def client_cpu(run: Summary) -> Limit | None:
    """A worker used up its core, or had to wait for one that another process had."""
    if not (_used_up(run) or _starved(run) or _coding(run) or (_held_up(run) and _on_cpu(run))):
        return None
    return Limit("client-cpu", "; ".join([*_cpu_said(run), *_lag_said(run)]), _advice(run))


def client_loop(run: Summary) -> Limit | None:
    """A worker's event loop came late although there was CPU for it.

    Where waits for a core account for the lag, they cost no more than their share of the time, which
    `client_cpu` has found to be small: the highest percentiles suffer, but it is not the limit.
    """
    if not _held_up(run) or (_waits_account_for_lag(run) and not _stops_long(run)) or _codec_holds(run):
        return None
    bound_by = [caveat.text for caveat in run.caveats if caveat.code == "client-bound"]
    said = [*(_lag_said(run) or bound_by), *_cpu_said(run), "so something else blocks the loop"]
    advice = (
        "Find what the users call that does not yield to gevent (a sleep, a lock, a file); or add workers."
    )
    return Limit("client-loop", "; ".join(said), advice)


def _used_up(run: Summary) -> bool:
    """Whether it used a core all the time that it had one."""
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


def _held_up(run: Summary) -> bool:
    lagging = lags(run.generator.loop_lag_p95_ns, run.latency.p95_ns)
    return lagging or _stops_long(run) or has_caveat(run, "client-bound")


def _stops_long(run: Summary) -> bool:
    """Whether the loop stops seldom and for long: events wait for it, though few looks at it were late."""
    return lags(run.generator.loop_delay_ns, run.latency.mean_ns)


def _codec_holds(run: Summary) -> bool:
    """Whether our own building of requests and reading of answers is what the loop does when it is late."""
    coding_ns, lag_ns = total(run.phases.encode_ns, run.phases.decode_ns), run.generator.loop_lag_p95_ns
    return lag_ns is not None and coding_ns >= lag_ns / 2 and coding_ns > 0


def _on_cpu(run: Summary) -> bool:
    """Whether a lagging loop is one that lacks CPU."""
    return at_least(run.generator.cpu_wait_pct, AWAITED_PCT) or awake_pct(run) >= AWAKE_PCT


def _waits_account_for_lag(run: Summary) -> bool:
    """Whether the loop waited for a core as long as it lagged: on average half its p95 at each look."""
    lag = run.generator.loop_lag_p95_ns
    if lag is None or run.generator.cpu_wait_pct is None:
        return False
    return run.generator.cpu_wait_pct / 100 >= lag / 2 / (LOOK_NS + lag)


def _starved(run: Summary) -> bool:
    """Whether requests felt that the worker waited for a core."""
    if not at_least(run.generator.cpu_wait_pct, AWAITED_PCT):
        return False
    if awake_pct(run) >= AWAKE_PCT:
        return True
    # Of a silent server it is not known whether the requests were there meanwhile.
    felt, share = ratio(run.generator.loop_lag_p95_ns, run.latency.p95_ns), server_share(run)
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
    yield from cpu_said(run)
    if _coding(run):
        coding = ms(total(run.phases.encode_ns, run.phases.decode_ns))
        yield f"building requests and reading answers took {coding} of {ms(service_ns(run))} ms"


def _lag_said(run: Summary) -> list[str]:
    """How late the loop was, the share that speaks against it first."""
    fit, latency = run.generator, run.latency
    if fit.loop_lag_p95_ns is None or latency.p95_ns is None:
        return []
    lagged = f"a worker's event loop lagged {ms(fit.loop_lag_p95_ns)} ms at p95"
    beside = f"beside a latency of {ms(latency.p95_ns)} ms{_percent(fit.loop_lag_p95_ns, latency.p95_ns)}"
    if not _stops_long(run):
        return [f"{lagged} {beside}"]
    waited = f"events waited {ms(fit.loop_delay_ns)} ms for a worker's event loop on average"
    of_mean = f"of a latency of {ms(latency.mean_ns)} ms{_percent(fit.loop_delay_ns, latency.mean_ns)}"
    return [f"{waited}, {of_mean}", f"{lagged} {beside}"]


def _percent(part: float | None, whole: float | None) -> str:
    share = ratio(part, whole)
    return "" if share is None else f" ({digits(100 * share)} %)"


def _advice(run: Summary) -> str:
    if total(run.generator.cpu_wait_pct) > total(run.generator.worker_cpu_pct) or _starved(run):
        return "Stop what else computes on the client's host, or give the client a host with free cores."
    if run.built_anew and _coding(run):
        return "Use --client prepared, or add workers (--processes): building requests takes the time."
    return "Add workers (--processes) or hosts: each worker has one core."
