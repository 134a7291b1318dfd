"""The server as the limit: requests wait for an instance or a batch, or the work itself takes the time."""

from reports.caveats.attribution import COLD_SHARE
from reports.format import digits, ms
from reports.limit import Limit
from reports.limits.path import BESIDE_NS
from reports.limits.shares import (
    at_least,
    in_flight,
    path_ns,
    saturated,
    server_share,
    service_ns,
    total,
    upstream_share,
    work_ns,
)
from reports.summary.summary import Summary

WASTEFUL_DELAY = 0.3
"""Of the service time: a smaller wait for a batch costs less than what batching saves."""
MOST_SHARE = 0.6
"""Of the service time, where it is not known how busy the instances were."""
QUEUE_SHARE = 0.6
"""Of the service time: two users of one instance wait just under half, three wait two thirds."""
QUEUE_TIMES = 1.5
"""Wait over work on a server without room: one batch that waits for another is as much as its work."""
WAITING_TIMES, WAITING_EACH = 0.5, 4.0
"""At that tie, which many users in alternating batches make too: so many wait at each instance."""
DELAY_TIMES = 1.5
"""Of the batching delay: a longer wait is one for an instance."""
GPU_BUSY_PCT, HOST_BUSY_PCT = 90, 90
BEFORE_THE_MODEL = ("decode", "preprocess")


def server_cold(run: Summary) -> Limit | None:
    """First executions of batch sizes, in which engines are built, took a part of the measured time."""
    cold = run.server.cold
    if cold.share is None or cold.share < COLD_SHARE:
        return None
    sizes = ", ".join(map(str, cold.batches)) or "unknown size"
    said = f"{digits(100 * cold.share)} % of the server's execution time went into first executions"
    advice = "Warm the server up for these batch sizes before measuring, then run again."
    return Limit("server-cold", f"{said} of batch {sizes}", advice)


def server_queue(run: Summary) -> Limit | None:
    """Requests wait longer than they are worked on, for a batch to fill or for an instance to be free."""
    if run.server.queue_ns is None or service_ns(run) is None:
        return None
    if not saturated(run) and held_back(run):
        return _waiting_for_a_batch(run)
    if exhausted(run) or decodes(run) or not queue_leads(run):
        return None
    if run.load != "closed" and run.server.busy is not None and not saturated(run):
        return None  # arrivals that come close together wait for each other on any server
    return _waiting_for_an_instance(run)


def server_compute(run: Summary) -> Limit | None:
    """The work on requests takes the time: more instances would not help, or none of them waits."""
    if not (loaded(run) or exhausted(run) or decodes(run)):
        return None
    part, took_ns = _largest_work(run)
    said = [f"{part} took {ms(took_ns)} of {ms(service_ns(run))} ms a request"]
    if run.server.queue_ns is not None:
        said.append(f"requests waited {ms(run.server.queue_ns)} ms")
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
    if run.server.executed_batch is not None:
        said.append(f"executions had {digits(run.server.executed_batch)} images")
    advice = "Lower max_queue_delay_microseconds, or send more at once so that batches fill sooner."
    return Limit("server-queue", "; ".join([*said, *_busy_said(run)]), advice)


def _waiting_for_an_instance(run: Summary) -> Limit:
    said = [_queue_said(run), f"work on a request took {ms(work_ns(run))} ms", *_busy_said(run)]
    if run.server.executed_batch is not None:
        said.append(f"executions had {digits(run.server.executed_batch)} images")
    advice = "Give the model more instances (instance_group), a larger batch, or a faster device."
    return Limit("server-queue", "; ".join(said), advice)


def _queue_said(run: Summary) -> str:
    return f"requests waited {ms(run.server.queue_ns)} of {ms(service_ns(run))} ms in the server's queue"


def _busy_said(run: Summary) -> list[str]:
    if run.server.busy is None:
        share = server_share(run)
        return [] if share is None else [f"the server took {digits(100 * share)} % of the time"]
    count = run.serving.instances if run.serving else None
    who = "the model's instances were" if count is None or count > 1 else "the model's one instance was"
    who = f"the model's {count:,} instances were" if at_least(count, 2) else who
    return [f"{who} executing {digits(100 * run.server.busy)} % of the time"]


def _largest_work(run: Summary) -> tuple[str, float | None]:
    """The name and the time of the largest part that is no waiting."""
    parts = {name: took_ns for name, took_ns in run.server.parts.items() if name != "queue"}
    name = max(parts, key=lambda part: parts[part], default="")
    return (name, parts[name]) if name else ("the server", None)


def loaded(run: Summary) -> bool:
    """Whether the server has no room; by its share of the time where how busy it was is not known.

    What a gateway's upstream takes of it may be its queue, its work or the way there: that tells nothing.
    """
    if run.server.busy is not None:
        return saturated(run)
    share = server_share(run)
    return share is not None and share - (upstream_share(run) or 0.0) >= MOST_SHARE


def exhausted(run: Summary) -> str:
    """How the device that most of the time is spent on has no room, in words; empty where it has."""
    share = server_share(run)
    if not saturated(run) and (share is None or share < MOST_SHARE):
        return ""
    if run.gpu.util_pct is not None and run.gpu.util_pct >= GPU_BUSY_PCT:
        return f"the GPU was {digits(run.gpu.util_pct)} % busy"
    if run.host_cpu_pct is not None and run.host_cpu_pct >= HOST_BUSY_PCT and _computes_here(run):
        return f"the host's cores were {digits(run.host_cpu_pct)} % busy"
    return ""


def decodes(run: Summary) -> bool:
    """Whether pictures are longer made ready than computed on, by a server that has most of the time.

    Waits are then for its decoders too, of which more instances of the model would make none.
    """
    before = sum(run.server.parts.get(part, 0.0) for part in BEFORE_THE_MODEL)
    computed = total(run.server.compute_ns, run.server.parts.get("upstream"))
    return before > 0 and before >= computed and at_least(server_share(run), MOST_SHARE)


def queue_leads(run: Summary) -> bool:
    """Whether requests wait at the server for more than they are worked on."""
    waited, whole, work = run.server.queue_ns, service_ns(run), work_ns(run)
    if waited is None or not whole or whole < 0:
        return False
    if waited >= QUEUE_SHARE * whole:
        return True
    if not loaded(run):
        return False
    instances = (run.serving.instances if run.serving else None) or 1
    waiting_each = (in_flight(run) or 0.0) * (waited / whole) / instances
    return waited > QUEUE_TIMES * work or (waited >= WAITING_TIMES * work and waiting_each >= WAITING_EACH)


def held_back(run: Summary) -> bool:
    """Whether requests are nowhere longer than in the server's queue, and its batcher explains their wait."""
    waited, whole = run.server.queue_ns, service_ns(run)
    delay_ns = run.serving.batching_delay_ns if run.serving else None
    if waited is None or not whole or not delay_ns:
        return False
    if waited > DELAY_TIMES * delay_ns or waited < WASTEFUL_DELAY * whole:
        return False
    server, phases = run.server, run.phases
    others = (server.compute_ns, server.other_ns, path_ns(run), phases.encode_ns, phases.decode_ns)
    return waited > max(part or 0.0 for part in others)


def _computes_here(run: Summary) -> bool:
    # Between processes of one host the host's CPU is the server's too; one that only sleeps does not lack it.
    least = run.path.min_rtt_ns if run.path else None
    return least is not None and least <= BESIDE_NS and run.facts.computes
