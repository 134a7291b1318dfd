"""The server as the limit: requests wait for an instance or a batch, or the work itself takes the time."""

from collections.abc import Collection
from math import inf

from reports.caveats.attribution import COLD_SHARE
from reports.caveats.client import HOST_BUSY_PCT
from reports.fold.server import EnsembleStep
from reports.format import digits, ms
from reports.limit import UNKNOWN, Limit
from reports.limits.http2 import stream_wait_said, waits_for_streams
from reports.limits.shares import (
    MOST,
    SATURATED,
    at_least,
    full_gpu,
    held_ns,
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
OCCUPIED = 0.6
"""Of its instances' time, where so many wait at each: short executions have as long pauses between them."""
ALIKE_BUSY = 0.05
"""Of the time: of two steps that are full, the one that more wait for is the narrower one."""
DELAY_TIMES = 1.5
"""Of the batching delay: a longer wait is one for an instance."""
CHANCE_TIMES = 2.0
"""Of the mean wait that chance makes: in a short run, or with very uneven executions, it is up to so long."""
BEFORE_THE_MODEL = ("decode", "preprocess")
MORE_INSTANCES = "Give the model more instances (instance_group), a larger batch, or a faster device."
UNKNOWN_IF_FREE = "it is not known whether instances slow each other down"
UNTRIED = f"Try more instances (instance_group), a larger batch, or a faster device: {UNKNOWN_IF_FREE}."
SERIAL_ADVICE = (
    "One user sends one request at a time, so nothing else makes it faster; more users keep the server busy."
)


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
    if exhausted(run) or not queue_leads(run):
        return None
    return wait_for_instance(run)


def server_preprocess(run: Summary) -> Limit | None:
    """What prepares the model's input has no room: the fullest step of an ensemble, or the decoders."""
    name = fullest_step(run)
    if name and name != model_step(run):
        return _full_step(run, name, run.server.steps[name])
    if not decodes(run) or (not saturated(run) and held_back(run)):
        return None
    part, took_ns = _largest_work(run, BEFORE_THE_MODEL)
    cheaper = f"Make {part} cheaper (smaller pictures, a faster library)"
    advice = f"{cheaper}, or do it on the client. {SERIAL_ADVICE}"
    if not run.serial:
        advice = f"{cheaper}, or do it on more cores or the client."
    return Limit("server-preprocess", "; ".join(_work_said(run, part, took_ns)), advice)


def _full_step(run: Summary, name: str, step: EnsembleStep) -> Limit:
    spent = f"waited {ms(step.queue_ns)} ms for the step {name} and took {ms(step.work_ns)} ms in it"
    said = [f"requests {spent}, of {ms(service_ns(run))} ms"]
    said += [_step_said(name, step)] if step.busy is not None else []
    model = run.server.steps[model_step(run)]
    if model.busy is not None:
        said.append(f"the model's instances were executing {digits(100 * model.busy)} % of the time")
    do_less = "make it cheaper (smaller pictures, a faster library), or do its work on the client"
    if run.serial:
        advice = f"For the step {name}: {do_less}. {SERIAL_ADVICE}"
        return Limit("server-preprocess", "; ".join(said), advice)
    if device := exhausted(run):
        advice = f"More instances would not help, since {device}: {do_less}, or use more cores."
        return Limit("server-preprocess", "; ".join([*said, device]), advice)
    advice = f"Try more instances of the step {name} (instance_group): {UNKNOWN_IF_FREE}. Or {do_less}."
    return Limit("server-preprocess", "; ".join(said), advice)


def _step_said(name: str, step: EnsembleStep) -> str:
    count = f"{step.instances or 0:,} instances of {name} were"
    who = f"the one instance of {name} was" if step.instances == 1 else f"the {count}"
    return f"{who} executing {digits(100 * (step.busy or 0.0))} % of the time"


def queue_untold(run: Summary) -> Limit | None:
    """Requests wait in the queue of a server that is known to have room.

    Arrivals of an open-loop load that come close together wait for each other on any server, for as long as
    chance explains.
    """
    waited, whole, busy = run.server.queue_ns, service_ns(run), run.server.busy
    if waited is None or not whole or busy is None or waited < QUEUE_SHARE * whole:
        return None
    chance_ns = 0.0 if run.load == "closed" else _wait_by_chance_ns(run)
    if waited <= CHANCE_TIMES * chance_ns:
        return None
    said = [f"{_said_of_queue(waited, whole)}, and why is not known", *_busy_said(run)]
    others = {name: step for name, step in run.server.steps.items() if name != model_step(run)}
    said += [_step_said(name, step) for name, step in others.items() if step.busy is not None]
    said += [f"arrivals by chance explain {ms(chance_ns)} ms of it"] if chance_ns else []
    advice = "Look for what else holds requests back: preferred batch sizes, priorities, a rate limiter."
    return Limit(UNKNOWN, "; ".join(said), advice)


def _wait_by_chance_ns(run: Summary) -> float:
    """The mean wait that Poisson arrivals make, as a bound; infinite where a step's busy time is unknown.

    work x busy / (1 - busy), as of one instance with exponential times (M/M/1; Kleinrock, Queueing Systems I,
    3.2). With more instances, even executions or even arrivals, requests wait less. Where batches are
    collected, they wait for the delay too.
    """
    delay_ns = (run.serving.batching_delay_ns if run.serving else None) or 0
    steps = run.server.steps.values()
    pairs = [(step.work_ns, step.busy) for step in steps] or [(work_ns(run), run.server.busy)]
    known = [(work, busy) for work, busy in pairs if work is not None and busy is not None and busy < 1]
    if len(known) < len(pairs):
        return inf
    return delay_ns + sum(work * busy / (1 - busy) for work, busy in known)


def several_untold(run: Summary) -> Limit | None:
    """Several servers take the requests and most of the time, and how busy each of them was is not known."""
    share = server_share(run)
    if not run.server.several or (share is not None and share < MOST):
        return None
    why = "how long the servers took is not known"
    if share is not None:
        why = f"the server took {digits(100 * share)} % of the time, and whether it was full is not known"
    advice = (
        "Load each endpoint alone: those that ask one model at the same time share its counters."
        if run.together
        else "Give the endpoint the address of one replica, or read each replica's own metrics under load."
    )
    return Limit(UNKNOWN, f"{why}: {run.server.several}", advice)


def server_compute(run: Summary) -> Limit | None:
    """The work on requests takes the time: more instances would not help, or none of them waits."""
    if not (loaded(run) or exhausted(run)):
        return None
    part, took_ns = _largest_work(run)
    advice = "Use a faster device, a smaller or compiled model, or spread requests over more servers."
    if run.serial:
        advice = f"Use a faster device, or a smaller or compiled model. {SERIAL_ADVICE}"
    return Limit("server-compute", "; ".join(_work_said(run, part, took_ns)), advice)


def _work_said(run: Summary, part: str, took_ns: float | None) -> list[str]:
    said = [f"{part} took {ms(took_ns)} of {ms(held_ns(run))} ms a request{stream_wait_said(run)}"]
    if run.server.queue_ns is not None:
        said.append(f"requests waited {ms(run.server.queue_ns)} ms")
    device = exhausted(run)
    return [*said, *_busy_said(run), *([device] if device else [])]


def _waiting_for_a_batch(run: Summary) -> Limit:
    delay_ns = run.serving.batching_delay_ns if run.serving else None
    said = [_queue_said(run), f"the batcher may hold a request back for {ms(delay_ns)} ms"]
    if run.server.executed_batch is not None:
        said.append(f"executions had {digits(run.server.executed_batch)} images")
    advice = "Lower max_queue_delay_microseconds, or send more at once so that batches fill sooner."
    return Limit("server-queue", "; ".join([*said, *_busy_said(run)]), advice)


def wait_for_instance(run: Summary, advice: str = UNTRIED) -> Limit:
    """Requests wait for an instance; whether more of them help, other cells may show."""
    said = [_queue_said(run), f"work on a request took {ms(_model_work_ns(run))} ms", *_busy_said(run)]
    if run.server.executed_batch is not None:
        said.append(f"executions had {digits(run.server.executed_batch)} images")
    if run.server.several:
        said.append(run.server.several)
        advice = f"See that requests are spread evenly over the servers. {advice}"
    return Limit("server-queue", "; ".join(said), advice)


def _queue_said(run: Summary) -> str:
    return _said_of_queue(_model_queue_ns(run), service_ns(run))


def _said_of_queue(waited: float | None, whole: float | None) -> str:
    return f"requests waited {ms(waited)} of {ms(whole)} ms in the server's queue"


def _busy_said(run: Summary) -> list[str]:
    if run.server.busy is None:
        share = server_share(run)
        return [] if share is None else [f"the server took {digits(100 * share)} % of the time"]
    count = run.serving.instances if run.serving else None
    who = "the model's instances were" if count is None or count > 1 else "the model's one instance was"
    who = f"the model's {count:,} instances were" if at_least(count, 2) else who
    return [f"{who} executing {digits(100 * run.server.busy)} % of the time"]


def _largest_work(run: Summary, among: Collection[str] = ()) -> tuple[str, float | None]:
    """The name and the time of the largest part, of some or of all, that is no waiting."""
    parts = {name: took_ns for name, took_ns in run.server.parts.items() if name != "queue"}
    parts = {name: took_ns for name, took_ns in parts.items() if not among or name in among}
    name = max(parts, key=lambda part: parts[part], default="")
    return (name, parts[name]) if name else ("the server", None)


def model_step(run: Summary) -> str:
    """The step of an ensemble that computes; empty where there is none."""
    return ["", *run.server.steps][-1]


def _model_queue_ns(run: Summary) -> float | None:
    """What requests waited for the model: those of an ensemble wait for its other steps as well."""
    step = run.server.steps.get(model_step(run))
    return run.server.queue_ns if step is None or step.queue_ns is None else step.queue_ns


def _model_work_ns(run: Summary) -> float:
    step = run.server.steps.get(model_step(run))
    return work_ns(run) if step is None or step.work_ns is None else step.work_ns


def fullest_step(run: Summary) -> str:
    """The step of an ensemble that has no room and holds up most; empty where none is known to be full.

    Where it is not known how busy a step was, most of the time in its queue shows that it is full: then that
    of another one, which is known, holds up less.
    """
    steps, whole = run.server.steps, held_ns(run) or 0.0
    most = max((step.busy for step in steps.values() if step.busy is not None), default=0.0)
    full = [name for name, step in steps.items() if at_least(step.busy, max(SATURATED, most - ALIKE_BUSY))]
    if whole > 0:
        queued = {name: step.queue_ns or 0.0 for name, step in steps.items() if step.busy is None}
        full += [name for name, waited in queued.items() if waited >= QUEUE_SHARE * whole]
    return max(full, key=lambda name: steps[name].queue_ns or 0.0, default="")


def loaded(run: Summary) -> bool:
    """Whether the server has no room; by its share of the time where how busy it was is not known.

    What a gateway's upstream takes of it may be its queue, its work or the way there: that tells nothing.
    Nor does the share tell anything where others serve a part of the requests, or where only so many are
    at the server as it allows streams.
    """
    if run.server.busy is not None:
        return saturated(run)
    if run.server.several or waits_for_streams(run):
        return False
    share = server_share(run)
    return share is not None and share - (upstream_share(run) or 0.0) >= MOST_SHARE


def exhausted(run: Summary) -> str:
    """How the device that most of the time is spent on has no room, in words; empty where it has."""
    share = server_share(run)
    if not saturated(run) and (share is None or share < MOST_SHARE):
        return ""
    if gpu := full_gpu(run):
        return gpu
    if run.host_cpu_pct is not None and run.host_cpu_pct >= HOST_BUSY_PCT and _computes_here(run):
        return f"the host's cores were {digits(run.host_cpu_pct)} % busy"
    return ""


def decodes(run: Summary) -> bool:
    """Whether pictures are longer made ready than computed on, by a server that has most of the time.

    Waits are then for its decoders too, of which more instances of the model would make none. Where it is
    known how busy each step of an ensemble was, that alone tells.
    """
    told = any(step.busy is not None for name, step in run.server.steps.items() if name != model_step(run))
    if told or run.server.several:
        return False
    before = sum(run.server.parts.get(part, 0.0) for part in BEFORE_THE_MODEL)
    computed = total(run.server.compute_ns, run.server.parts.get("upstream"))
    return before > 0 and before >= computed and at_least(server_share(run), MOST_SHARE)


def queue_leads(run: Summary) -> bool:
    """Whether requests wait for the model's instances for more than they are worked on.

    Where these are known to be idle at times, only if so many wait that none can have found one idle.
    """
    waited, whole, work = _model_queue_ns(run), service_ns(run), _model_work_ns(run)
    held = held_ns(run)
    if waited is None or not whole or not held or min(whole, held) < 0:
        return False
    instances = (run.serving.instances if run.serving else None) or 1
    waiting_each = (in_flight(run) or 0.0) * (waited / whole) / instances
    if run.server.busy is not None and not saturated(run):
        occupied = run.load == "closed" and run.server.busy >= OCCUPIED and waiting_each >= WAITING_EACH
        return occupied and waited >= QUEUE_SHARE * held
    if waited >= QUEUE_SHARE * held:
        return True
    if not loaded(run):
        return False
    return waited > QUEUE_TIMES * work or (waited >= WAITING_TIMES * work and waiting_each >= WAITING_EACH)


def held_back(run: Summary) -> bool:
    """Whether requests are nowhere longer than in the server's queue, and its batcher explains their wait."""
    waited, whole = _model_queue_ns(run), service_ns(run)
    delay_ns = run.serving.batching_delay_ns if run.serving else None
    if waited is None or not whole or not delay_ns:
        return False
    if waited > DELAY_TIMES * delay_ns or waited < WASTEFUL_DELAY * whole:
        return False
    server, phases = run.server, run.phases
    others = (server.compute_ns, server.other_ns, path_ns(run), phases.encode_ns, phases.decode_ns)
    return waited > max(part or 0.0 for part in others)


def _computes_here(run: Summary) -> bool:
    # On the master's own machine the host's CPU is the server's too; one that only sleeps does not lack it.
    return run.local is True and run.facts.computes
