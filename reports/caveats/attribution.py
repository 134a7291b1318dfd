"""Caveats on where a run's time went, and on a link or workers that were not what its cell's name says."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from reports.caveat import Caveat, caveat
from reports.format import NS_PER_MS, digits, known
from reports.summary.batch import batch_of
from reports.summary.link import BYTES_OF_MBIT, carried_per_s, exceeds, told_rate
from reports.summary.summary import Summary, unclear

COLD_SHARE = 0.05
UNEXPLAINED_SHARE = 0.2
PER_REQUEST = "per-request"
SENT_SHARE = 0.9
"""Of the successes' bytes: the kernel has seen them all and more, unless connections closed meanwhile."""
NS_PER_US = 1_000
LEAST_LONE, MOST_LONE = 0.5, 1.5
"""Of the batching delay: how long a request waits that nobody joins, scheduling included."""


def attribution_caveats(run: Summary) -> Iterator[Caveat]:
    """Every caveat that follows from the parts, the path and the executions of one Summary."""
    if run.server.cold.share is not None and run.server.cold.share >= COLD_SHARE:
        sizes = ", ".join(map(str, run.server.cold.batches))
        share = f"{digits(100 * run.server.cold.share)} % of the server's execution time"
        yield caveat("cold-shape", f"{share} went into its first executions of batch {sizes}")
    yield from _connections(run)
    yield from _link_rate(run)
    yield from _unexplained(run)
    yield from _lone(run)


def path_gap(run: Summary) -> Caveat | None:
    """The caveat of a path on which fewer bytes were seen than the successes alone are known to have sent.

    Headers, failures, abandoned requests and what was sent again only add to what is seen.
    """
    seen = run.path.bytes_sent if run.path else None
    if seen is None or run.counts.request_bytes is None:
        return None
    sent = run.counts.request_bytes * run.succeeded
    if seen >= SENT_SHARE * sent:
        return None
    return caveat("path-gap", f"{seen:,} of at least {round(sent):,} bytes sent were seen on the connections")


def _connections(run: Summary) -> Iterator[Caveat]:
    if run.path is None or run.channels == PER_REQUEST:
        return  # of one for each request, how many there are at once is no matter of asking
    asked, seen = run.path.asked, run.path.connections
    if asked is not None and seen is not None and asked != seen:
        yield caveat("connections-differ", f"connections asked for: {asked}, seen by the kernel: {seen}")


def _link_rate(run: Summary) -> Iterator[Caveat]:
    (carried, way), rate = carried_per_s(run), told_rate(run)
    if exceeds(run) and carried and rate:
        mbit = digits(carried / BYTES_OF_MBIT)
        said = f"{mbit} Mbit/s were {way} over a link of {digits(rate / BYTES_OF_MBIT)}"
        yield caveat("link-rate", f"{said} ({digits(100 * carried / rate)} %): the rate is not the link's")


def _unexplained(run: Summary) -> Iterator[Caveat]:
    """Only where everything that could explain it was read: without path or server it is no wonder."""
    left_ns, whole_ns = run.unexplained_ns, run.latency.mean_ns
    if left_ns is None or not whole_ns or run.network_ns is None or run.server.total_ns is None:
        return
    if left_ns > UNEXPLAINED_SHARE * whole_ns:
        share = f"{_ms(left_ns)} of {_ms(whole_ns)} ({digits(100 * left_ns / whole_ns)} %)"
        network = f", {_ms(may_be)} of which may be the network's" if (may_be := unclear(run)) else ""
        yield caveat("unexplained", f"{share} belong to no part that was measured{network}")
    if left_ns < -UNEXPLAINED_SHARE * whole_ns:
        yield caveat(
            "unexplained", f"the parts come to {_ms(-left_ns)} more than the {_ms(whole_ns)} measured"
        )


def _lone(run: Summary) -> Iterator[Caveat]:
    """One user's request waits for others that do not come; one that is a full batch does not wait."""
    serving, waited_ns = run.serving, run.server.queue_ns
    delay_ns = serving.batching_delay_ns if serving and serving.batching else None
    if not run.serial or not serving or not delay_ns or waited_ns is None:
        return
    full = serving.max_batch is not None and batch_of(run).least >= serving.max_batch
    if not full and LEAST_LONE * delay_ns <= waited_ns <= MOST_LONE * delay_ns:
        saved = f"{_ms(min(waited_ns, delay_ns))} of {_ms(run.latency.mean_ns or 0.0)}"
        yield caveat(
            "batching-delay",
            f"a lone request pays the batching delay in full; --queue-delay-us 0 would save {saved}",
        )


def _ms(value_ns: float) -> str:
    """To three digits, however small: two times that both read <0.1 ms would be no evidence."""
    return f"{known(value_ns, NS_PER_MS)} ms"


def axis_caveats(run: Summary, links: Iterable[Mapping[str, Any]]) -> Iterator[Caveat]:
    """What was measured of its link and found different, and the processes that were not as many as asked."""
    found = (link.get("differences") or () for link in links if link.get("name") == run.link)
    if differences := [str(text).rstrip(".") for texts in found for text in texts]:
        yield caveat("link-differs", f"{run.link}: {'; '.join(differences)}")
    if wrong := [
        *_other("workers", run.topology.workers, run.workers),
        *_other("hosts", run.topology.hosts, run.hosts),
    ]:
        yield caveat("topology-differs", "; ".join(wrong))
    if differing := list(_settings(run)):
        yield caveat("settings-differ", "; ".join(differing))


def _settings(run: Summary) -> Iterator[str]:
    """What the server says of itself that is not what it was set to."""
    told = run.serving
    if told is None:
        return
    if run.instances and told.instances not in (None, run.instances):
        yield f"instances asked for: {run.instances}, according to the server: {told.instances}"
    asked, delay_ns = run.queue_delay_us, told.batching_delay_ns
    if asked is not None and told.batching and delay_ns not in (None, asked * NS_PER_US):
        yield f"queue delay asked for: {asked} us, according to the server: {(delay_ns or 0) // NS_PER_US} us"


def _other(name: str, asked: int, seen: int | None) -> Iterator[str]:
    if asked and seen is not None and asked != seen:
        yield f"{name} asked for: {asked}, used: {seen}"
