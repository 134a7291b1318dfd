"""Making connections as the limit: each request needs a new one, or this machine has no port left."""

from reports.caveat import Trait
from reports.fold.records import ratio
from reports.format import digits, ms
from reports.limit import Limit
from reports.limits.shares import at_least, saturated, service_ns
from reports.summary.summary import Summary, parts_of

PORTS_CODE = "EADDRNOTAVAIL"
PORTS_SHARE = 0.01
"""Of the requests: once no port is left, connections fail at the rate at which they are made."""
CONNECT_SHARE, LARGEST_SHARE = 0.3, 0.2
"""Of the service time: so much at least, or so much where no other part takes more."""
CONNECTS = 0.5
"""Connections a request: with fewer, most requests go over one that was kept."""
PER_REQUEST = "per-request"
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


def handshake(run: Summary) -> Limit | None:
    """Making connections takes much of requests' time, for each of them or for a few that wait for long.

    A server without room would answer no more requests over kept connections.
    """
    each, took_ns, whole_ns = run.counts.connects_per_request, run.phases.connect_ns, service_ns(run)
    if each is None or saturated(run):
        return None
    share = ratio(took_ns, whole_ns)
    often = each >= CONNECTS and at_least(share, LARGEST_SHARE) and _is_largest(run)
    if not at_least(share, CONNECT_SHARE) and not often:
        return None
    made = f"{digits(each)} connections a request"
    took = f"connecting took {ms(took_ns)} of {ms(whole_ns)} ms (DNS included)"
    return Limit("handshake", f"{made}; {took}", _advice(run))


def _is_largest(run: Summary) -> bool:
    """Whether no other part of the service time is longer, what is unexplained included."""
    others = (part.ns for part in parts_of(run) if part.name not in ("connect", "send_delay"))
    return (run.phases.connect_ns or 0.0) > max((ns for ns in others if ns is not None), default=0.0)


def _advice(run: Summary) -> str:
    if (run.counts.connects_per_request or 0.0) < CONNECTS:
        return "Find what makes connecting slow: the host's name server, or a listener whose queue is full."
    if run.channels == PER_REQUEST:
        return "Use --channels per-user: the client itself was asked for a new connection for each request."
    return (
        "Turn keep-alive on (HTTP/1.1 without `Connection: close`; nginx: keepalive_requests): the server, or"
        " a proxy before it, closes connections."
    )
