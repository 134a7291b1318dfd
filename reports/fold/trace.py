"""What Triton's own trace said of one run's requests, one by one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from reports.histogram.buckets import percentiles_ns
from reports.ledger.ledger import Record

PARTS = ("receive", "queue", "input", "compute", "output", "send", "server", "outside")


@dataclass(frozen=True)
class Percentiles:
    """Of one part, over the requests that were found in the trace."""

    p50_ns: float
    p95_ns: float
    p99_ns: float


@dataclass(frozen=True)
class Trace:
    """How many requests could be in the trace, how many were found, and the parts that it has of them."""

    requests: int
    joined: int
    parts: Mapping[str, Percentiles]


def trace_of(records: Sequence[Record]) -> Trace | None:
    """From the last `trace` record of a run; None where there is none."""
    if not records:
        return None
    told = records[-1]
    found = {name: told["histograms"][name] for name in PARTS if name in told["histograms"]}
    parts = {
        name: Percentiles(
            *(float(value) for value in percentiles_ns(buckets, (50, 95, 99)) if value is not None)
        )
        for name, buckets in found.items()
        if buckets.total
    }
    return Trace(told["requests"], told["joined"], parts)
