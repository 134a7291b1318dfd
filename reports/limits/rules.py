"""What stops a run from going faster: rules over its Summary in their order, the first that holds naming it.

Here too are those that need all others: too little measured, and none named.
"""

from collections.abc import Callable, Iterator

from reports.caveat import Trait
from reports.caveats.attribution import UNEXPLAINED_SHARE
from reports.caveats.client import HOST_BUSY_PCT
from reports.format import digits, ms
from reports.limit import UNKNOWN, Limit
from reports.limits.batching import slow_shape
from reports.limits.client import AWAITED_PCT, client_cpu, client_loop, client_ports
from reports.limits.cpu import (
    client_stolen,
    client_throttled,
    others_on_cores,
    server_stolen,
    server_throttled,
)
from reports.limits.ends import downlink, handshake, nagle, server_intake
from reports.limits.http2 import http2_window, streams
from reports.limits.path import (
    few_connections,
    fills_windows,
    link,
    lossy_or_policed,
    near_least,
    round_trips_said,
    shows_room,
    slow_start,
)
from reports.limits.refusals import rate_limited, refused_untold, server_full
from reports.limits.room import offered_load, room_unseen, think_time, untold_part
from reports.limits.server import (
    queue_untold,
    server_cold,
    server_compute,
    server_preprocess,
    server_queue,
    several_untold,
)
from reports.limits.shares import (
    HOST_ADVICE,
    MOST,
    UNEXPLAINED_ADVICE,
    UNTOLD_ADVICE,
    at_least,
    has_caveat,
    path_ns,
    path_share,
    service_ns,
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
VARIED = "the load changed during the run, so no single limit applies to all of it"
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


def nothing_measured(run: Summary) -> Limit | None:
    """The run did not end well, has too few successes, or a load that changed."""
    why = next(_flaws(run), None)
    if why is None and run.profile:
        peak = "--rates" if run.load == "open" else "--levels"
        return Limit(UNKNOWN, VARIED, f"Measure its peak by itself: {peak} without --load-profile.")
    return None if why is None else Limit(UNKNOWN, why, UNTOLD_ADVICE)


def failed_time_share(run: Summary) -> float:
    """Of the time of all requests: a few that hang take more of it than many that fail at once."""
    timeouts = run.counts.failure_kinds.get("timeout", 0)
    others = (run.counts.failures or 0) - timeouts
    failed_ns = timeouts * (run.timeout.mean_ns or 0.0) + others * (run.failed.mean_ns or 0.0)
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
        return Limit(UNKNOWN, "neither client nor path is seen to limit it", SILENT_ADVICE)
    gaps = [caveat.text for caveat in run.caveats if caveat.code == "probe-gap"]
    why = "; ".join(["the server's parts could not be read", *gaps, "nothing else is seen to limit it"])
    advice = "Let the server's statistics be read (their address and extension), then run again."
    return Limit(UNKNOWN, why, advice)


def upstream_untold(run: Summary) -> Limit | None:
    """A gateway knows how long its upstream took, and not what with."""
    if not at_least(upstream_share(run), MOST):
        return None
    took = f"{ms(run.server.parts['upstream'])} of {ms(service_ns(run))} ms"
    why = f"the gateway waited {took} for its upstream: in its queue, its work or the network is not known"
    advice = "Measure the upstream's own endpoint, whose counters tell these apart, at the same load."
    return Limit(UNKNOWN, why, advice)


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
        return Limit(UNKNOWN, f"the parts come to more than was measured: {said}", advice)
    handling = HANDLING_NS + 1e9 * (run.counts.request_bytes or 0) / HANDLING_BYTES_PER_S
    others = (run.server.queue_ns, run.server.compute_ns, run.server.other_ns, path_ns(run))
    own = (run.phases.encode_ns, run.phases.decode_ns, run.phases.stream_wait_ns)
    if left > handling and left > max(part or 0.0 for part in (*others, *own)):
        return Limit(UNKNOWN, f"the largest part is unexplained: {said}{network}", advice)
    return None


def path_unseen(run: Summary) -> Limit | None:
    """Without the connections' state, few connections, a full link and a mere long way look alike."""
    seen = run.path is not None and run.path.rtt_ns is not None and not has_caveat(run, "path-gap")
    if seen or not at_least(path_share(run), MOST) or (path_ns(run) or 0) <= SHORT_NS:
        return None
    why = f"the path took {ms(path_ns(run))} of {ms(service_ns(run))} ms, and its connections were not seen"
    advice = "Run the workers on Linux, whose kernel reports connections, with keep-alive on."
    return Limit(UNKNOWN, why, advice)


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
    return Limit(UNKNOWN, why, "Give the link's rate with --link-mbit, then run again.")


def host_full(run: Summary) -> Limit | None:
    """Client, server and others share the host's cores, which are all in use: the client waits for them."""
    waits = run.generator.cpu_wait_pct is None or run.generator.cpu_wait_pct >= AWAITED_PCT
    if run.host_cpu_pct is None or run.host_cpu_pct < HOST_BUSY_PCT or not waits:
        return None
    why = f"the client's host was {digits(run.host_cpu_pct)} % busy, and it is not known by whom"
    return Limit(UNKNOWN, why, HOST_ADVICE)


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
    return Limit(UNKNOWN, f"{why}, and nothing was full", advice)


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
    # Where connections idle, each request is slow in the same way, however many users there are.
    slow_start,
    # Who thinks most of the time is not slowed by what takes most of a request's.
    think_time,
    # A closed window leaves connections idle, which then look like few.
    http2_window,
    server_intake,
    handshake,
    few_connections,
    downlink,
    nagle,
    # A server whose cores others took looks as one that computes for longer.
    others_on_cores,
    server_preprocess,
    server_queue,
    server_compute,
    # Calls wait for a stream wherever those that have one are held up: what holds these is named first.
    streams,
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
