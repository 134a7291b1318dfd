"""Where a request's time went: parts whose sum is the mean latency. docs/attribution.md defines each."""

from dataclasses import dataclass
from operator import attrgetter

from reports.summary.summary import Summary

PARTS = {
    "send_delay": "send_delay.mean_ns",
    "encode": "phases.encode_ns",
    "send": "phases.send_ns",
    "network": "network_ns",
    "server_queue": "server.queue_ns",
    "server_compute": "server.compute_ns",
    "server_other": "server.other_ns",
    "receive": "phases.receive_ns",
    "decode": "phases.decode_ns",
    "unexplained": "unexplained_ns",
}
"""The parts in the order of the sum, and where a Summary has each."""
LEFT_OVER = ("network", "unexplained")


@dataclass(frozen=True)
class Part:
    """One part of the mean latency and its share of it; None where it was not measured."""

    name: str
    ns: float | None
    share: float | None


def parts_of(run: Summary) -> list[Part]:
    """Every part in the order of the sum; those that are known add up to the mean latency."""
    whole_ns = run.latency.mean_ns
    found: list[tuple[str, float | None]] = [(name, attrgetter(path)(run)) for name, path in PARTS.items()]
    return [Part(name, ns, ns / whole_ns if ns is not None and whole_ns else None) for name, ns in found]


def breakdown(run: Summary) -> tuple[float | None, float | None]:
    """The network's part of the mean latency and what stays unexplained, from all the other parts, in ns.

    The first is None where the path is not known, the second may be below 0; both are None where nothing
    succeeded.
    """
    if run.latency.mean_ns is None:
        return None, None
    stated = (attrgetter(path)(run) for name, path in PARTS.items() if name not in LEFT_OVER)
    left_ns = run.latency.mean_ns - sum(ns for ns in stated if ns is not None)
    kernel_ns = in_kernel_ns(run)
    if kernel_ns is None:
        return None, left_ns
    network_ns = min(max(0.0, left_ns), max(0.0, kernel_ns - (run.phases.send_ns or 0.0)))
    return network_ns, left_ns - network_ns


def in_kernel_ns(run: Summary) -> float | None:
    """For how long, per success, bytes of it lay in the kernel or on the wire; None where that is not known.

    A connection is busy from the first byte handed to it to the acknowledgement of the last. Where several
    requests share one, each instant counts for all of them.
    """
    if run.path is None or run.path.busy_ns is None or not run.succeeded:
        return None
    return run.path.busy_ns / run.succeeded * sharing(run)


def sharing(run: Summary) -> float:
    """How many requests were on one connection at a time, on average, and at least 1."""
    connections = run.path.connections if run.path else None
    in_flight = mean_in_flight(run)
    return max(1.0, in_flight / connections) if connections and in_flight else 1.0


def mean_in_flight(run: Summary) -> float | None:
    """By Little's law, which is exact over a phase; looks at each second's end are few and by chance."""
    if run.service.mean_ns is None or not run.counts.measure_ns:
        return run.generator.in_flight
    return run.service.mean_ns * run.succeeded / run.counts.measure_ns
