"""What stops a run from going faster: rules over its Summary in their order, the first that holds naming it.

Here too are those that need all others: too little measured, the load itself as the limit, and none named.
"""

from collections.abc import Callable, Iterator

from reports.caveat import Trait
from reports.caveats.attribution import UNEXPLAINED_SHARE
from reports.fold.records import ratio
from reports.format import digits, ms, plural
from reports.limit import Limit
from reports.limits.batching import slow_shape
from reports.limits.client import AWAITED_PCT, client_cpu, client_loop, cpu_said, used_pct
from reports.limits.connecting import client_ports, handshake
from reports.limits.cpu import client_stolen, client_throttled, server_stolen, server_throttled
from reports.limits.downlink import downlink, nagle, server_intake
from reports.limits.gpu import full_gpu
from reports.limits.path import (
    few_connections,
    fills_windows,
    link,
    lossy_or_policed,
    near_least,
    round_trips_said,
    shares_connections,
    shows_room,
)
from reports.limits.refusals import rate_limited, refused_untold, server_full
from reports.limits.server import (
    HOST_BUSY_PCT,
    queue_untold,
    server_cold,
    server_compute,
    server_preprocess,
    server_queue,
    several_untold,
)
from reports.limits.shares import (
    MOST,
    at_least,
    has_caveat,
    path_ns,
    path_share,
    server_share,
    service_ns,
    total,
    upstream_share,
)
from reports.summary.link import link_rate
from reports.summary.network import always_full
from reports.summary.summary import Summary, unclear

Rule = Callable[[Summary], Limit | None]
FAILED_SHARE = 0.1
"""Of the requests or of their time: the successes are then a choice of the easy ones, and failures load the
server too."""
LEAST_SUCCESSES = 10
"""Behind any mean: of fewer, one slow request moves it by more than a tenth."""
VARIED = "the rate changed during the run, so no single limit applies to all of it"
SHORT_NS = 2_000_000
"""Between client and server: so little is no long path, even where the connections were not looked at."""
HANDLING_NS, HANDLING_BYTES_PER_S = 2_000_000, 500_000_000
"""What taking a request in and passing it on may cost unseen: that it is unexplained is no wonder."""
DELAYED_SHARE = 0.2
"""Of the latency, before a request of an open-loop load was sent: no user was free for it."""
SILENT_ADVICE = (
    "The server states no times of its own: where its answers or metrics do, say so in the endpoint's file "
    "([times]); else see how its rate grows with users."
)
ROUND_TRIPS = 2.0
"""A request and its answer take one, the first bytes of a large request a second one."""
SHORT_WAIT = 0.1
"""Of the service time in the server's queue: so little waits nowhere for an instance."""
CODEC_CPU = 0.5
"""Of the time in which requests are built and answers are read: what computes uses a core for most of it."""
HOST_ADVICE = "Run client and server on hosts of their own, with nothing else on them."
UNEXPLAINED_ADVICE = (
    "See docs/attribution.md for possible causes; look at proxies and at the server's front end."
)
PART_ADVICE = {
    "encode and decode": "Find what holds the client up while it builds requests or reads answers.",
    "send": "Look at what the client waits for before it can send: shared connections, a full send buffer.",
    "input": "Look at what the server does with its input: copies, transfers to the device.",
    "output": "Look at what the server does with its output: copies, transfers from the device.",
    "receive": "Look at how the server writes its answers, and at proxies before it.",
    "queue wait": "Look at the server's scheduler: its batching delay, its rate limiter, its priorities.",
    "network": "Look at proxies on the way and at the link; give its rate with --link-mbit.",
}
"""By part, where no rule names a cause."""
WORTH_SAYING_PCT = 5
"""Of the time without a core: not what stops a run, but it is seen in the highest percentiles."""

UNTOLD_ADVICE = "Fix the cause or measure longer (--seconds), then run again."


def nothing_measured(run: Summary) -> Limit | None:
    """The run did not end well, has too few successes, or a load that changed."""
    why = next(_flaws(run), None)
    if why is None and run.profile:
        return Limit("inconclusive", VARIED, "Measure its peak by itself: --rates without --load-profile.")
    return None if why is None else Limit("inconclusive", why, UNTOLD_ADVICE)


def failed_time_share(run: Summary) -> float:
    """Of the time of all requests: a few that hang take more of it than many that fail at once."""
    timeouts = run.counts.failure_kinds.get("timeout", 0)
    others = (run.counts.failures or 0) - timeouts
    failed_ns = timeouts * (run.timeout.p50_ns or 0.0) + others * (run.failed.p50_ns or 0.0)
    whole_ns = failed_ns + run.succeeded * (service_ns(run) or 0.0)
    return failed_ns / whole_ns if whole_ns else 0.0


def _flaws(run: Summary) -> Iterator[str]:
    failures, finished = run.counts.failures or 0, run.counts.requests or 0
    if run.status != "done":
        yield f"the run ended as {run.status}"
    if run.succeeded <= 0:
        yield "no request succeeded"
    if failures > FAILED_SHARE * finished:
        yield f"{failures:,} of {finished:,} requests failed ({digits(100 * failures / finished)} %)"
    elif (share := failed_time_share(run)) > FAILED_SHARE:
        taken = f"{digits(100 * share)} % of all requests' time"
        yield f"{failures:,} of {finished:,} requests failed, in {taken}"
    if run.succeeded < LEAST_SUCCESSES:
        yield f"only {run.succeeded:,} requests succeeded, of the {LEAST_SUCCESSES} that a mean needs"
    yield from (caveat.text for caveat in run.caveats if caveat.has(Trait.SPLITS))
    if (service_ns(run) or 0) <= 0:
        yield "no mean latency is known"


def server_unread(run: Summary) -> Limit | None:
    """What the server did with requests is not known."""
    if run.server.total_ns is not None:
        return None
    if run.server.silent:
        return Limit("inconclusive", "neither client nor path is seen to limit it", SILENT_ADVICE)
    gaps = [caveat.text for caveat in run.caveats if caveat.code == "probe-gap"]
    why = "; ".join(["the server's parts could not be read", *gaps, "nothing else is seen to limit it"])
    advice = "Let the server's statistics be read (their address and extension), then run again."
    return Limit("inconclusive", why, advice)


def upstream_untold(run: Summary) -> Limit | None:
    """A gateway knows how long its upstream took, and not what with."""
    if not at_least(upstream_share(run), MOST):
        return None
    took = f"{ms(run.server.parts['upstream'])} of {ms(service_ns(run))} ms"
    why = f"the gateway waited {took} for its upstream: in its queue, its work or the network is not known"
    advice = "Measure the upstream's own endpoint, whose counters tell these apart, at the same load."
    return Limit("inconclusive", why, advice)


def unexplained(run: Summary) -> Limit | None:
    """More is left than any part takes, or the parts come to more than there was."""
    left, whole = run.unexplained_ns, service_ns(run)
    if left is None or whole is None or run.network_ns is None:
        return None
    said = f"{ms(abs(left))} ms beside a latency of {ms(whole)} ms"
    may_be = unclear(run)
    network = f", of which up to {ms(may_be)} ms may be the network's" if may_be else ""
    advice = UNEXPLAINED_ADVICE
    if left < -UNEXPLAINED_SHARE * whole:
        return Limit("inconclusive", f"the parts come to more than was measured: {said}", advice)
    handling = HANDLING_NS + 1e9 * (run.counts.request_bytes or 0) / HANDLING_BYTES_PER_S
    others = (run.server.queue_ns, run.server.compute_ns, run.server.other_ns, path_ns(run))
    codec = (run.phases.encode_ns, run.phases.decode_ns)
    if left > handling and left > max(part or 0.0 for part in (*others, *codec)):
        return Limit("inconclusive", f"the largest part is unexplained: {said}{network}", advice)
    return None


def path_unseen(run: Summary) -> Limit | None:
    """Without the connections' state, few connections, a full link and a mere long way look alike."""
    seen = run.path is not None and run.path.rtt_ns is not None and not has_caveat(run, "path-gap")
    if seen or not at_least(path_share(run), MOST) or (path_ns(run) or 0) <= SHORT_NS:
        return None
    why = f"the path took {ms(path_ns(run))} of {ms(service_ns(run))} ms, and its connections were not seen"
    advice = "Run the workers on Linux, whose kernel reports connections, with keep-alive on."
    return Limit("inconclusive", why, advice)


def queue_or_loss(run: Summary) -> Limit | None:
    """Windows are full at a round trip that is neither near its least nor long enough for a queue.

    Or near its least and without a loss: a link that is full may signal that by marks in place of a queue.
    """
    path = run.path
    if path is None or link_rate(run) or not (at_least(path_share(run), MOST) or always_full(run)):
        return None
    if shows_room(path) or not fills_windows(run, path):
        return None
    if near_least(path) and (path.retransmits != 0 or not always_full(run)):
        return None
    why = f"{round_trips_said(path)}, with full windows: a full link or few connections"
    return Limit("inconclusive", why, "Give the link's rate with --link-mbit, then run again.")


def untold_part(run: Summary) -> Limit | None:
    """Some part is half of the time, and no rule says what with."""
    whole = service_ns(run)
    for name, part_ns in _untold(run):
        if at_least(ratio(part_ns, whole), MOST):
            why = f"{name} took {ms(part_ns)} of {ms(whole)} ms, and why is not known"
            return Limit("inconclusive", why, PART_ADVICE[name])
    return None


def _untold(run: Summary) -> Iterator[tuple[str, float | None]]:
    """Parts that have no cause where no rule names one, by name; those that are no wonder are left out."""
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
    return Limit("inconclusive", f"nothing was found full, but {what}", advice)


def _unseen(run: Summary) -> Iterator[tuple[str, str]]:
    """What is not known to have room, and what would tell."""
    if used_pct(run) is None and run.generator.loop_lag_p95_ns is None:
        yield "neither CPU nor lag of the workers is known", UNTOLD_ADVICE
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


def host_full(run: Summary) -> Limit | None:
    """Client, server and others share the host's cores, which are all in use: the client waits for them."""
    waits = run.generator.cpu_wait_pct is None or run.generator.cpu_wait_pct >= AWAITED_PCT
    if run.host_cpu_pct is None or run.host_cpu_pct < HOST_BUSY_PCT or not waits:
        return None
    why = f"the client's host was {digits(run.host_cpu_pct)} % busy, and it is not known by whom"
    return Limit("inconclusive", why, HOST_ADVICE)


def not_kept_up(run: Summary) -> Limit | None:
    """An open-loop load was not carried, though nothing that was measured was full."""
    if run.load == "closed":
        return None
    delay, latency = run.send_delay.mean_ns, run.latency.mean_ns
    if run.sent.dropped:
        why = f"{run.sent.dropped:,} of {run.sent.due or 0:,} arrivals were never sent"
    elif delay is not None and latency is not None and delay > DELAYED_SHARE * latency:
        why = f"requests began {ms(delay)} ms late"
    elif has_caveat(run, "rate-missed"):
        why = "the asked rate was not sent"
    else:
        return None
    advice = "Raise --max-in-flight, or add workers: see the arrivals that came late."
    return Limit("inconclusive", f"{why}, and nothing was full", advice)


def offered_load(run: Summary) -> Limit:
    """What holds where no other rule does: nothing was found full, and the time is explained."""
    said = "; ".join([_load(run), *_room(run)])
    if run.load == "closed":
        return Limit(
            "offered-load",
            said,
            "Add users: nothing was saturated, so more users would raise the throughput.",
        )
    return Limit("offered-load", said, "Raise the rate: the server kept up with this one.")


def _load(run: Summary) -> str:
    if run.load == "closed":
        return f"{plural(int(run.level), 'user')} did not fill anything"
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


RULES: tuple[Rule, ...] = (
    # What refused requests is known even where so many failed that no mean of the others tells anything.
    client_ports,
    server_full,
    rate_limited,
    refused_untold,
    nothing_measured,
    # Building engines slows all that comes after it, so no other number of the run is a steady one.
    server_cold,
    slow_shape,
    # A client at its limit stretches every time it measures, the path's and the server's too.
    # Time that was taken from it looks like a full or a blocked core.
    client_throttled,
    client_stolen,
    client_cpu,
    client_loop,
    # A server that is stopped also takes in late, so that its queue and the path's windows are full.
    server_throttled,
    server_stolen,
    # What waits before the server keeps it from being loaded; what waits in it fills the path only a little.
    link,
    server_intake,
    handshake,
    few_connections,
    downlink,
    nagle,
    server_preprocess,
    server_queue,
    server_compute,
    # No other rule holds, and what was measured does not show that there is room either.
    several_untold,
    server_unread,
    upstream_untold,
    queue_untold,
    unexplained,
    path_unseen,
    queue_or_loss,
    lossy_or_policed,
    untold_part,
    host_full,
    not_kept_up,
    room_unseen,
    offered_load,
)
"""In the order in which they are asked."""


def limit_of(run: Summary) -> Limit | None:
    """The limit of one run; None only where it was not begun."""
    if not run.started:
        return None
    return next((limit for rule in RULES if (limit := rule(run))), None)
