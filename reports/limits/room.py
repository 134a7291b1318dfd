"""Whether there was room: parts without a cause, what nobody saw to have room, and the load as the limit."""

from collections.abc import Iterator

from reports.caveats.client import HOST_BUSY_PCT
from reports.fold.records import ratio
from reports.format import digits, ms, plural
from reports.limit import UNKNOWN, Limit
from reports.limits.client import cpu_said, used_pct
from reports.limits.path import near_least, shares_connections, shows_room
from reports.limits.server import exhausted
from reports.limits.shares import (
    HOST_ADVICE,
    MOST,
    UNEXPLAINED_ADVICE,
    at_least,
    full_gpu,
    more_arrivals,
    path_share,
    saturated,
    server_share,
    service_ns,
    total,
)
from reports.summary.link import link_rate
from reports.summary.network import always_full
from reports.summary.summary import Summary

ROUND_TRIPS = 2.0
"""A request and its answer take one, the first bytes of a large request a second one."""
WORKERS_ADVICE = "Run the workers where the kernel tells their CPU (Linux), or measure longer (--seconds)."
SHORT_WAIT = 0.1
"""Of the service time in the server's queue: so little waits nowhere for an instance."""
CODEC_CPU = 0.5
"""Of the time in which requests are built and answers are read: what computes uses a core for most of it."""
PART_ADVICE = {
    "encode and decode": "Find what holds the client up while it builds requests or reads answers.",
    "send": "Look at what the client waits for before it can send: shared connections, a full send buffer.",
    "stream wait": "Raise the server's limit of concurrent streams, or use more connections.",
    "flow wait": "Look at why the server gives no credit: what it reads slowly, and its HTTP/2 windows.",
    "input": "Look at what the server does with its input: copies, transfers to the device.",
    "output": "Look at what the server does with its output: copies, transfers from the device.",
    "receive": "Look at how the server writes its answers, and at proxies before it.",
    "queue wait": "Look at the server's scheduler: its batching delay, its rate limiter, its priorities.",
    "network": "Look at proxies on the way and at the link; give its rate with --link-mbit.",
}
"""By part, where no rule names a cause."""
WORTH_SAYING_PCT = 5
"""Of the time without a core: not what stops a run, but it is seen in the highest percentiles."""


def untold_part(run: Summary) -> Limit | None:
    """One part takes half of the time, and no rule names its cause."""
    whole = service_ns(run)
    for name, part_ns in _untold(run):
        if at_least(ratio(part_ns, whole), MOST):
            why = f"{name} took {ms(part_ns)} of {ms(whole)} ms, and why is not known"
            return Limit(UNKNOWN, why, PART_ADVICE[name])
    return None


def _untold(run: Summary) -> Iterator[tuple[str, float | None]]:
    """Parts that have no cause where no rule names one, by name; those that are no wonder are left out."""
    yield "stream wait", run.phases.stream_wait_ns
    yield "flow wait", run.phases.flow_wait_ns
    yield "send", run.phases.send_ns
    yield "receive", run.phases.receive_ns
    if not _codec_computes(run):
        yield "encode and decode", total(run.phases.encode_ns, run.phases.decode_ns)
    yield from ((name, run.server.parts.get(name)) for name in ("input", "output"))
    if run.load == "closed":  # arrivals that come close together wait for each other on any server
        yield "queue wait", run.server.queue_ns
    if not _is_mere_distance(run):
        yield "network", run.network_ns


def _codec_computes(run: Summary) -> bool:
    """Whether a worker uses CPU for about as long as requests are built and answers are read."""
    used, rate = used_pct(run), run.counts.requests_per_s
    if used is None or rate is None:
        return True
    each_s = total(run.phases.encode_ns, run.phases.decode_ns) / 1e9
    return used / 100 >= CODEC_CPU * each_s * rate / max(1, run.workers or 1)


def _is_mere_distance(run: Summary) -> bool:
    """Whether requests only wait for round trips, or each for its own bytes on a path without a queue."""
    path = run.path
    if path is None or run.network_ns is None:
        return False
    if path.min_rtt_ns is not None and run.network_ns <= ROUND_TRIPS * path.min_rtt_ns:
        return True
    if shares_connections(run) or always_full(run):
        return False
    return near_least(path) or shows_room(path)


def room_unseen(run: Summary) -> Limit | None:
    """Nothing was found full, and of client, server or path it was not seen that it had room."""
    unseen = next(_unseen(run), None)
    if unseen is None:
        return None
    what, advice = unseen
    return Limit(UNKNOWN, f"nothing was found full, but {what}", advice)


def _unseen(run: Summary) -> Iterator[tuple[str, str]]:
    """What is not known to have room, and what would tell."""
    if used_pct(run) is None and run.generator.loop_lag_p95_ns is None:
        yield "neither CPU nor lag of the workers is known", WORKERS_ADVICE
    alone = run.load == "closed" and run.level == 1
    waits = ratio(run.server.queue_ns, service_ns(run))
    if run.server.busy is None and not alone and (waits is None or waits > SHORT_WAIT):
        grows = "Measure with more users, and see whether the rate grows."
        yield "how busy the server's instances were is not known", grows
    if not alone and run.host_cpu_pct is not None and run.host_cpu_pct >= HOST_BUSY_PCT:
        yield f"the client's host was {digits(run.host_cpu_pct)} % busy", HOST_ADVICE
    if device := full_gpu(run):
        yield device, "Give it a faster GPU, or another one, and see whether the rate grows."
    if not alone and at_least(ratio(run.unexplained_ns, service_ns(run)), MOST):
        yield f"{ms(run.unexplained_ns)} of {ms(service_ns(run))} ms are unexplained", UNEXPLAINED_ADVICE
    if at_least(path_share(run), MOST) and not (_is_mere_distance(run) or link_rate(run)):
        yield "the path took most of the time", "Give the link's rate with --link-mbit, then run again."


def think_time(run: Summary) -> Limit | None:
    """Users think for most of their time, and their requests hardly wait at the server: they set the rate."""
    if _thinking(run) < MOST or saturated(run) or exhausted(run):
        return None
    waits = ratio(run.server.queue_ns, service_ns(run))
    untold = run.server.busy is None and not run.serial
    return None if untold and (waits is None or waits > SHORT_WAIT) else offered_load(run)


def _thinking(run: Summary) -> float:
    """The share of a user's time that it thinks."""
    return ratio(run.think_s, run.think_s + (service_ns(run) or 0.0) / 1e9) or 0.0


def offered_load(run: Summary) -> Limit:
    """What holds where no other rule does: nothing was found full, and the time is explained."""
    said = "; ".join([_load(run), *_room(run)])
    if run.load == "closed":
        return Limit(
            "offered-load",
            said,
            f"Add users{_or_think_less(run)}: nothing was saturated, so more users would raise the"
            " throughput.",
        )
    return Limit("offered-load", said, f"{more_arrivals(run)}: the server kept up with this one.")


def _or_think_less(run: Summary) -> str:
    return " or shorten --think" if run.think else ""


def _load(run: Summary) -> str:
    if run.load == "closed":
        thought = f" thought {digits(100 * _thinking(run))} % of their time and" if run.think else ""
        return f"{plural(int(run.level), 'user')}{thought} did not fill anything"
    offered = run.level if run.sent.offered_per_s is None else run.sent.offered_per_s
    return f"the server kept up with {digits(offered)} requests a second"


def _room(run: Summary) -> Iterator[str]:
    yield from cpu_said(run, WORTH_SAYING_PCT)
    if run.server.busy is not None:
        yield f"the server's instances were executing {digits(100 * run.server.busy)} % of the time"
    elif (share := server_share(run)) is not None:
        yield f"the server took {digits(100 * share)} % of {ms(service_ns(run))} ms a request"
    path, rate = run.path, link_rate(run)
    if path and rate and path.wire_bytes_per_s is not None:
        yield f"{digits(100 * path.wire_bytes_per_s / rate)} % of the link's rate was sent"
    elif path and path.busy_share is not None:
        yield f"connections were busy {digits(100 * path.busy_share)} % of the time"
