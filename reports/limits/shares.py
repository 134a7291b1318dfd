"""What the rules for a limit compare: parts of a request's time, None where they were not measured.

Shares are of the service time, not of the latency: under open-loop load beyond the server's capacity, most of
the latency is the wait for a free user, which says nothing about where the others are held up.
"""

from reports.fold.records import ratio
from reports.summary.summary import Summary, mean_in_flight

SATURATED = 0.8
"""Of its instances' time: between two executions a server takes and answers requests, so 1 is never seen."""
MOST = 0.5
"""Of the service time: what takes less is not what to fix first."""
DELAYED_ACK_NS = 40_000_000
"""So long may a receiver hold an acknowledgement back; until it comes, the connection counts as busy."""

HOST_ADVICE = "Run client and server on hosts of their own, with nothing else on them."
UNEXPLAINED_ADVICE = (
    "See docs/attribution.md for possible causes; look at proxies and at the server's front end."
)
UNTOLD_ADVICE = "Fix the cause or measure longer (--seconds), then run again."


def total(*parts: float | None) -> float:
    """The sum of those that are known."""
    return sum(part for part in parts if part is not None)


def at_least(value: float | None, bound: float) -> bool:
    """Whether a value is known and reaches a bound."""
    return value is not None and value >= bound


def service_ns(run: Summary) -> float | None:
    """Mean time from a request's start to its end."""
    if run.service.mean_ns is not None:
        return run.service.mean_ns
    if run.latency.mean_ns is None:
        return None
    return run.latency.mean_ns - total(run.send_delay.mean_ns)


def upstream_share(run: Summary) -> float | None:
    """The part of the service time for which a gateway waited for its upstream; None where it has none."""
    return ratio(run.server.parts.get("upstream"), service_ns(run))


def server_share(run: Summary) -> float | None:
    """The server's part of the service time."""
    return ratio(run.server.total_ns, service_ns(run))


def work_ns(run: Summary) -> float:
    """What the server did for a request while it did not wait."""
    return total(run.server.compute_ns, run.server.other_ns)


def path_ns(run: Summary) -> float | None:
    """What a request is proven to have spent between client and server, its handing to the kernel included.

    Where the connections were not looked at, all that neither side explains.
    """
    if run.network_ns is not None:
        return total(run.phases.send_ns, run.network_ns, run.phases.receive_ns)
    whole, server = service_ns(run), run.server.total_ns
    if whole is None or server is None:
        return None
    own = total(run.phases.connect_ns, run.phases.encode_ns, run.phases.decode_ns)
    return max(0.0, whole - server - own)


def path_share(run: Summary) -> float | None:
    """The path's part of the service time."""
    return ratio(path_ns(run), service_ns(run))


def in_flight(run: Summary) -> float | None:
    """Requests under way at once, on average: in a closed-loop load never more than it has users."""
    mean = mean_in_flight(run)
    if run.load != "closed":
        return mean
    return run.level if mean is None else min(mean, run.level)


def saturated(run: Summary) -> bool:
    """Whether the server's instances were executing nearly all the time."""
    return at_least(run.server.busy, SATURATED)


def has_caveat(run: Summary, *codes: str) -> bool:
    """Whether a run carries any of these caveats."""
    return any(caveat.code in codes for caveat in run.caveats)
