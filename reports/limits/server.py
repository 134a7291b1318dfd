"""The server as the limit: requests wait for an instance or a batch, or the work itself takes the time."""

from reports.caveats.attribution import COLD_SHARE
from reports.format import digits, ms
from reports.limit import Limit
from reports.limits.server_load import (
    decodes,
    exhausted,
    loaded,
    queue_is_largest,
    queue_leads,
    within_batching_delay,
)
from reports.limits.shares import at_least, saturated, server_share, service_ns, work_ns
from reports.summary.summary import Summary

WASTEFUL_DELAY = 0.3
"""Of the service time: a smaller wait for a batch costs less than what batching saves."""


def server_cold(run: Summary) -> Limit | None:
    """First executions of batch sizes, in which engines are built, took a part of the measured time."""
    if run.cold_share is None or run.cold_share < COLD_SHARE:
        return None
    sizes = ", ".join(map(str, run.cold_batches)) or "unknown size"
    said = f"{digits(100 * run.cold_share)} % of the server's execution time went into first executions"
    advice = "Warm the server up for these batch sizes before measuring, then run again."
    return Limit("server-cold", f"{said} of batch {sizes}", advice)


def server_queue(run: Summary) -> Limit | None:
    """Requests wait longer than they are worked on, for a batch to fill or for an instance to be free."""
    if run.server_queue_ns is None or service_ns(run) is None:
        return None
    if not saturated(run) and within_batching_delay(run) and queue_is_largest(run, WASTEFUL_DELAY):
        return _waiting_for_a_batch(run)
    if exhausted(run) or decodes(run) or not queue_leads(run):
        return None
    if run.load != "closed" and run.server_busy is not None and not saturated(run):
        return None  # arrivals that come close together wait for each other on any server
    return _waiting_for_an_instance(run)


def server_compute(run: Summary) -> Limit | None:
    """The work on requests takes the time: more instances would not help, or none of them waits."""
    if not (loaded(run) or exhausted(run) or decodes(run)):
        return None
    part, took_ns = _largest_work(run)
    said = [f"{part} took {ms(took_ns)} of {ms(service_ns(run))} ms a request"]
    if run.server_queue_ns is not None:
        said.append(f"requests waited {ms(run.server_queue_ns)} ms")
    said += _busy_said(run)
    if device := exhausted(run):
        said.append(device)
    advice = "Use a faster device, a smaller or compiled model, or spread requests over more servers."
    if decodes(run):
        advice = (
            f"Make {part} cheaper (smaller pictures, a faster library), or do it on more cores or the client."
        )
    return Limit("server-compute", "; ".join(said), advice)


def _waiting_for_a_batch(run: Summary) -> Limit:
    delay_ns = run.serving.batching_delay_ns if run.serving else None
    said = [_queue_said(run), f"the batcher may hold a request back for {ms(delay_ns)} ms"]
    if run.executed_batch is not None:
        said.append(f"executions had {digits(run.executed_batch)} images")
    advice = "Lower max_queue_delay_microseconds, or send more at once so that batches fill sooner."
    return Limit("server-queue", "; ".join([*said, *_busy_said(run)]), advice)


def _waiting_for_an_instance(run: Summary) -> Limit:
    said = [_queue_said(run), f"work on a request took {ms(work_ns(run))} ms", *_busy_said(run)]
    if run.executed_batch is not None:
        said.append(f"executions had {digits(run.executed_batch)} images")
    advice = "Give the model more instances (instance_group), a larger batch, or a faster device."
    return Limit("server-queue", "; ".join(said), advice)


def _queue_said(run: Summary) -> str:
    return f"requests waited {ms(run.server_queue_ns)} of {ms(service_ns(run))} ms in the server's queue"


def _busy_said(run: Summary) -> list[str]:
    if run.server_busy is None:
        share = server_share(run)
        return [] if share is None else [f"the server took {digits(100 * share)} % of the time"]
    count = run.serving.instances if run.serving else None
    who = "its instances were" if count is None or count > 1 else "its one instance was"
    who = f"its {count:,} instances were" if at_least(count, 2) else who
    return [f"{who} executing {digits(100 * run.server_busy)} % of the time"]


def _largest_work(run: Summary) -> tuple[str, float | None]:
    """The name and the time of the largest part that is no waiting."""
    parts = {name: took_ns for name, took_ns in run.server_parts.items() if name != "queue"}
    fields = {"compute": run.server_compute_ns, "other work": run.server_other_ns}
    known = parts or {name: took_ns for name, took_ns in fields.items() if took_ns is not None}
    name = max(known, key=lambda part: known[part], default="")
    return (name, known[name]) if name else ("the server", None)
