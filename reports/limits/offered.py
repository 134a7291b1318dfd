"""The load itself as the limit: everything had room, and more would give more."""

from collections.abc import Iterator

from reports.format import digits, ms, plural
from reports.limit import Limit
from reports.limits.shares import server_share, service_ns
from reports.summary.summary import Summary

WORTH_SAYING_PCT = 5
"""Of the time without a core: not what stops a run, but it is seen in the highest percentiles."""


def offered_load(run: Summary) -> Limit:
    """What holds where no other rule does: nothing was found full, and the time is explained."""
    said = "; ".join([_load(run), *_room(run)])
    if run.load == "closed":
        return Limit("offered-load", said, "Add users: nothing was full, so more of them would give more.")
    return Limit("offered-load", said, "Ask for a higher rate: the server kept up with this one.")


def _load(run: Summary) -> str:
    if run.load == "closed":
        return f"{plural(int(run.level), 'user')} did not fill anything"
    offered = run.level if run.offered_per_s is None else run.offered_per_s
    return f"the server kept up with {digits(offered)} requests a second"


def _room(run: Summary) -> Iterator[str]:
    if run.worker_cpu_pct is not None:
        yield f"the busiest worker used {digits(run.worker_cpu_pct)} % of a core"
    if run.cpu_wait_pct is not None and run.cpu_wait_pct >= WORTH_SAYING_PCT:
        yield f"a worker was ready to run and had no core {digits(run.cpu_wait_pct)} % of the time"
    if run.server_busy is not None:
        yield f"the server's instances were executing {digits(100 * run.server_busy)} % of the time"
    elif (share := server_share(run)) is not None:
        yield f"the server took {digits(100 * share)} % of {ms(service_ns(run))} ms a request"
    path, rate = run.path, run.link_bytes_per_s
    if path and rate and path.wire_bytes_per_s is not None:
        yield f"{digits(100 * path.wire_bytes_per_s / rate)} % of the link's rate was sent"
    elif path and path.busy_share is not None:
        yield f"connections were busy {digits(100 * path.busy_share)} % of the time"
