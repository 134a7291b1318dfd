"""In which order a reader meets the variants of a cell: by link, then from one connection to many."""

from typing import Any

from reports.summary.summary import Summary

KINDS = ("", "shared", "same-args", "pool", "per-user", "per-request")
"""Of channels, from few connections to many."""


def variant_rank(run: Summary) -> tuple[Any, ...]:
    """What runs of one endpoint are sorted by."""
    kind, _, size = run.channels.partition(":")
    place = KINDS.index(kind) if kind in KINDS else len(KINDS)
    pooled = int(size) if size.isdigit() else 0
    topology = (run.workers_asked, run.hosts_asked)
    of_server = (run.instances_asked, -1 if run.queue_delay_us is None else run.queue_delay_us)
    built = run.built_anew
    return (run.link, built, run.congestion, topology, place, pooled, of_server, run.variant)
