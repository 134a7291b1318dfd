"""Which caveats one run deserves for where its time went."""

from collections.abc import Iterator

from reports.caveat import Caveat, caveat
from reports.format import digits, ms
from reports.summary.summary import Summary

COLD_SHARE = 0.05
UNEXPLAINED_SHARE = 0.2
PER_REQUEST = "per-request"
SENT_SHARE = 0.9
"""Of the successes' bytes: the kernel has seen them all and more, unless connections closed meanwhile."""


def attribution_doubts(run: Summary) -> Iterator[Caveat]:
    """Every caveat that follows from the parts, the path and the executions of one Summary."""
    yield from _cold(run)
    yield from _connections(run)
    yield from _unexplained(run)


def path_gap(run: Summary) -> Caveat | None:
    """The caveat of a path on which fewer bytes were seen than the successes alone are known to have sent.

    Headers, failures, abandoned requests and what was sent again only add to what is seen.
    """
    seen = run.path.bytes_sent if run.path else None
    if seen is None or run.request_bytes is None:
        return None
    sent = run.request_bytes * run.succeeded
    if seen >= SENT_SHARE * sent:
        return None
    return caveat("path-gap", f"{seen:,} of at least {round(sent):,} bytes sent were seen on the connections")


def _cold(run: Summary) -> Iterator[Caveat]:
    if run.cold_share is not None and run.cold_share >= COLD_SHARE:
        sizes = ", ".join(map(str, run.cold_batches))
        share = f"{digits(100 * run.cold_share)} % of the server's execution time"
        yield caveat("cold-shape", f"{share} went into its first executions of batch {sizes}")


def _connections(run: Summary) -> Iterator[Caveat]:
    asked, seen = run.tcp_asked, run.tcp_connections
    if run.channels == PER_REQUEST:
        return  # how many there are at once is no matter of asking
    if asked is not None and seen is not None and asked != seen:
        yield caveat("connections-differ", f"connections asked for: {asked}, seen by the kernel: {seen}")


def _unexplained(run: Summary) -> Iterator[Caveat]:
    """Only where everything that could explain it was read: without path or server it is no wonder."""
    left_ns, whole_ns = run.unexplained_ns, run.latency_mean_ns
    if left_ns is None or not whole_ns or run.network_ns is None or run.server_ns is None:
        return
    if left_ns > UNEXPLAINED_SHARE * whole_ns:
        share = f"{ms(left_ns)} ms of {ms(whole_ns)} ms ({digits(100 * left_ns / whole_ns)} %)"
        yield caveat("unexplained", f"{share} belong to no part that was measured")
    if left_ns < -UNEXPLAINED_SHARE * whole_ns:
        yield caveat(
            "unexplained", f"the parts come to {ms(-left_ns)} ms more than the {ms(whole_ns)} ms measured"
        )
