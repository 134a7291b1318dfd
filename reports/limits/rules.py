"""What stops a run from going faster: rules over its Summary, of which the first that holds names it."""

from collections.abc import Callable

from reports.limit import Limit
from reports.limits.client import client_cpu, client_loop
from reports.limits.none_named import nothing_explains, nothing_measured, offered_load
from reports.limits.path import few_connections, link
from reports.limits.server import server_cold, server_compute, server_queue
from reports.summary.summary import Summary

Rule = Callable[[Summary], Limit | None]

RULES: tuple[Rule, ...] = (
    nothing_measured,
    # Building engines slows all that comes after it, so no other number of the run is a steady one.
    server_cold,
    # A client at its limit stretches every time it measures, the path's and the server's too.
    client_cpu,
    client_loop,
    # What waits before the server keeps it from being loaded; what waits in it fills the path only a little.
    link,
    few_connections,
    server_queue,
    server_compute,
    nothing_explains,
    offered_load,
)
"""In the order in which they are asked."""


def limit_of(run: Summary) -> Limit | None:
    """The limit of one run; None only where it was not begun."""
    if not run.started:
        return None
    return next((limit for rule in RULES if (limit := rule(run))), None)
