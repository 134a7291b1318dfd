"""Which caveats one run deserves for what its generator did: too slow, too late, too few."""

from collections.abc import Iterator, Mapping
from math import ceil, floor, sqrt
from typing import Any

from reports.caveat import Caveat, caveat
from reports.fold.health import ClientHealth
from reports.fold.windows import Arrivals, Offered, Windows
from reports.format import digits, ms, plural
from reports.histogram.percentiles import Distribution
from reports.summary.summary import Summary

BUSY_PCT = 90
"""Of one core: a worker is one process that runs Python on one core."""
LAG_SHARE, LEAST_LAG_NS = 0.2, 2_000_000
"""A lag at p95 that could be a fifth of the latency there, and is more than the scheduler's grain."""
AWAITED_SHARE = 0.5
"""Of a loop's lag: most of it is then no block."""
OVERSLEPT_SHARE = 0.05
"""Of the requests sent: then the p95 of the send delay is the generator's own."""
LATE_SHARE = 0.01
RATE_SHARE = 0.01
POISSON_SIGMAS = 3
HOST_BUSY_PCT = 90
"""Of all cores: what runs there then waits for one."""
OTHERS_SHARE, LEAST_OTHERS_CORES = 0.1, 0.25
"""Of the host's cores, and of one: what needs all that there is becomes slower by as much."""
EXHAUSTED = "exhausted"
"""The kind of failure that is the client's machine's own."""


def client_caveats(
    planned: Mapping[str, Any],
    counts: Windows,
    kept: Arrivals,
    fit: ClientHealth,
    latency: Distribution,
    send_delay: Distribution,
) -> Iterator[Caveat]:
    """Every caveat of the generator's own."""
    sent = counts.sent
    said = [*own_slowness(fit, latency), *_tardy(sent, kept, latency, send_delay)]
    if said:
        yield caveat("client-bound", "; ".join(said))
    if planned["load"] == "open" and kept.late and kept.late > LATE_SHARE * sent:
        share = f"{kept.late:,} of {sent:,} requests ({digits(100 * kept.late / sent)} %)"
        yield caveat("late-arrivals", f"{share} began more than 5 ms after their time")
    if kept.dropped:
        few = f"{kept.dropped:,} of {kept.due or 0:,} arrivals were never sent"
        yield caveat("dropped-arrivals", f"{few}: the slowest are missing from the percentiles")
    if count := counts.failure_kinds[EXHAUSTED]:
        yield caveat(
            "client-exhausted", f"{count:,} of {sent:,} requests found no free port or file descriptor"
        )
    yield from _rate_missed(planned, kept.offered)
    if outside := [f"{name} {count:,}" for name, count in sorted(counts.out_of_range.items()) if count]:
        yield caveat("out-of-range", f"values below 0 or above an hour: {', '.join(outside)}")


def taken_by_others(run: Summary) -> Iterator[Caveat]:
    """The caveat of a host whose cores were all in use, many of them by neither client nor server."""
    least = max(LEAST_OTHERS_CORES, OTHERS_SHARE * (run.host_cores or 0))
    if run.others_cpu is None or run.others_cpu.cores < least or (run.host_cpu_pct or 0) < HOST_BUSY_PCT:
        return
    of = "cores were" if run.host_cores is None else f"{plural(run.host_cores, 'core')} were"
    yield caveat(
        "others-cpu",
        f"other processes took {run.others_cpu}, and the host's {of} {digits(run.host_cpu_pct or 0)} % busy",
    )


def own_slowness(fit: ClientHealth, latency: Distribution) -> list[str]:
    """Why the generator itself may be what is slow, whatever the load; none where it is well."""
    return [*_busy(fit), *_lagging(fit, latency)]


def _busy(fit: ClientHealth) -> Iterator[str]:
    """The thread of the event loop, where it was looked at: gRPC's own threads run beside it."""
    alone = fit.loop_cpu_pct is not None
    worker = fit.busiest_loop if alone else fit.busiest
    used_pct = fit.loop_cpu_pct if alone else fit.worker_cpu_pct
    if used_pct is not None and used_pct >= BUSY_PCT:
        yield f"worker {worker} used {digits(used_pct)} % of a core"


def _lagging(fit: ClientHealth, latency: Distribution) -> Iterator[str]:
    yield from _late(fit, latency)
    if any(_late(fit, latency)) and waits_make_lag(fit):
        yield f"it was ready to run and had no core {digits(fit.cpu_wait_pct or 0.0)} % of the time"


def waits_make_lag(fit: ClientHealth) -> bool:
    """Whether an event loop lagged because it waited for a core, and not because something blocked it.

    All of a loop's lag that is such a wait is in the kernel's count of them, and so are waits that no look at
    the loop met: where these come to half of the lag or more, it is what to see to.
    """
    return fit.lag_awaited is not None and fit.lag_awaited >= AWAITED_SHARE


def _late(fit: ClientHealth, latency: Distribution) -> Iterator[str]:
    if lags(fit.loop_lag_p95_ns, latency.any_p95_ns):
        beside = f"beside a latency of {ms(latency.any_p95_ns)} ms"
        yield f"worker {fit.most_lagging}'s event loop lagged {ms(fit.loop_lag_p95_ns)} ms at p95, {beside}"
    elif lags(fit.loop_delay_ns, latency.mean_ns):
        beside = f"beside a mean latency of {ms(latency.mean_ns)} ms"
        yield f"events waited {ms(fit.loop_delay_ns)} ms for worker {fit.most_delaying}'s loop, {beside}"


def lags(lag_ns: float | None, latency_ns: float | None) -> bool:
    """Whether an event loop lagged so much that much of the latency may be the worker's own; both at p95,
    which many short lags raise, or both on average, which a few long ones do.
    """
    return bool(latency_ns) and (lag_ns or 0) > max(LEAST_LAG_NS, LAG_SHARE * (latency_ns or 0))


def _tardy(sent: int, kept: Arrivals, latency: Distribution, send_delay: Distribution) -> Iterator[str]:
    """Requests of an open-loop load that began late although users were free: the generator's own delay."""
    latency_ns, delay_ns = latency.any_p95_ns, send_delay.any_p95_ns or 0
    many = (kept.overslept or 0) > OVERSLEPT_SHARE * sent
    if latency_ns and many and delay_ns > LAG_SHARE * latency_ns:
        share = f"{kept.overslept:,} of {sent:,} requests began late while users were free"
        yield f"{share}, {ms(delay_ns)} ms at p95 beside a latency of {ms(latency_ns)} ms"


def _rate_missed(planned: Mapping[str, Any], offered: Offered | None) -> Iterator[Caveat]:
    if not offered:
        return
    asked_per_s = mean_asked_per_s(planned, offered.phase_s)
    if course := planned.get("asked"):  # of a trace every request counts, and its time is known
        least, most = (due / offered.phase_s for due in due_by(course, offered.phase_s))
        asked_per_s = min(max(offered.per_s, least), most)
    if abs(offered.per_s - asked_per_s) > allowed_per_s(planned, offered):
        said = f"{digits(offered.per_s)} requests a second were sent, {asked_per_s:.6g} were asked for"
        yield caveat("rate-missed", said)


def due_by(course: Mapping[str, Any], seconds: float) -> tuple[int, int]:
    """The least and the most requests of a trace that were due within these seconds; both are all at its end.

    Older ledgers do not tell when that is: there it is taken to be as its last span begins.
    """
    requests, spans = course["requests"], seconds / course["width_s"]
    if seconds >= course.get("seconds", (len(requests) - 1) * course["width_s"]):
        return sum(requests), sum(requests)
    return sum(requests[: floor(spans)]), sum(requests[: ceil(spans)])


def mean_asked_per_s(planned: Mapping[str, Any], phase_s: float) -> float:
    """The asked rate, or the mean of its course over so much of it."""
    left_s, arrivals = phase_s, 0.0
    for _, length_s, first, last in planned.get("stages") or ():
        part_s = min(length_s, left_s)
        arrivals += part_s * (first + (last - first) * part_s / length_s / 2) if part_s else 0.0
        left_s -= part_s
    return arrivals / (phase_s - left_s) if left_s < phase_s else float(planned["level"])


def allowed_per_s(planned: Mapping[str, Any], offered: Offered) -> float:
    """How far the offered rate may be from the asked one: 1 %, a request on each worker, or mere chance."""
    asked_per_s, one_each = mean_asked_per_s(planned, offered.phase_s), offered.workers / offered.phase_s
    # The number of Poisson arrivals in a phase varies by its square root, whatever the generator does; that
    # of a share drawn from all arrivals by as much, less the share.
    drawn = 1.0 if planned["arrivals"] == "poisson" else 1 - (planned.get("split") or 1.0)
    chance = sqrt(drawn * asked_per_s / offered.phase_s)
    return max(RATE_SHARE * asked_per_s, one_each, POISSON_SIGMAS * chance)
