"""What the rules for a limit compare: parts of a request's time, and whether instances and GPUs have room.

Shares are of the service time, not of the latency: under open-loop load beyond the server's capacity, most of
the latency is the wait for a free user, which says nothing about where the others are held up. Nor does the
wait for a free stream of HTTP/2, without which the server's and the path's shares are. None where a part was
not measured.
"""

from reports.caveats.gpu import name_of
from reports.fold.records import ratio
from reports.format import digits
from reports.machines.gpus import GpuUse, in_use
from reports.summary.summary import Summary, mean_in_flight

SATURATED = 0.8
"""Of its instances' time: between two executions a server takes and answers requests, so 1 is never seen."""
MOST = 0.5
"""Of the service time: what takes less is not what to fix first."""
DELAYED_ACK_NS = 40_000_000
"""So long may a receiver hold an acknowledgement back; until it comes, the connection counts as busy."""
GPU_BUSY_PCT = 90
"""Of the seconds with some kernel: necessary for a full GPU, and never enough."""
SM_ACTIVE_PCT = 80
"""Of the multiprocessors' time with work, as DCGM tells it: NVIDIA calls this an effective use."""
POWER_SHARE = 0.9
"""Of the power limit: what draws so much computes on most of its units."""
CAPPED_SHARE = 0.5
"""Of the seconds in which the power limit held the clocks down."""
LITTLE_POWER = 0.5
"""Of the power limit: a GPU that draws less has units that idle, however full its batches are."""
FULL_BATCH = 0.9
"""Of the largest batch that the server makes: more requests would not fill executions any more."""
LARGE_BATCH = 8
"""Images: smaller batches fill no GPU by themselves, so its power has to show it."""

HOST_ADVICE = "Run client and server on hosts of their own, with nothing else on them."
UNEXPLAINED_ADVICE = (
    "See docs/attribution.md for possible causes; look at proxies and at the server's front end."
)
UNTOLD_ADVICE = "Fix the cause or measure longer (--seconds), then run again."


def more_arrivals(run: Summary) -> str:
    """How an open-loop load is raised: Raise the rate."""
    return "Replay the trace faster (--replay-speed)" if run.replay else "Raise the rate"


def larger_batches(run: Summary) -> str:
    """By which option requests get more items."""
    if run.together and not run.split:
        return "larger batches (@bN in --together)"
    return f"larger {'batches in --batch-mix' if run.batch_mix else '--batches'}"


def total(*parts: float | None) -> float:
    """The sum of those that are known."""
    return sum(part for part in parts if part is not None)


def at_least(value: float | None, bound: float) -> bool:
    """Whether a value is known and reaches a bound."""
    return value is not None and value >= bound


def kilobytes(value: float) -> str:
    """Bytes in words."""
    return f"{digits(value / 1e3)} kB"


def service_ns(run: Summary) -> float | None:
    """Mean time from a request's start to its end."""
    if run.service.mean_ns is not None:
        return run.service.mean_ns
    if run.latency.mean_ns is None:
        return None
    return run.latency.mean_ns - total(run.send_delay.mean_ns)


def held_ns(run: Summary) -> float | None:
    """The service time without the wait for a free stream of HTTP/2."""
    whole = service_ns(run)
    return None if whole is None else whole - total(run.phases.stream_wait_ns)


def upstream_share(run: Summary) -> float | None:
    """The part of that time for which a gateway waited for its upstream; None where it has none."""
    return ratio(run.server.parts.get("upstream"), held_ns(run))


def server_share(run: Summary) -> float | None:
    """The server's part of that time."""
    return ratio(run.server.total_ns, held_ns(run))


def work_ns(run: Summary) -> float:
    """What the server did for a request while it did not wait."""
    return total(run.server.compute_ns, run.server.other_ns)


def path_ns(run: Summary) -> float | None:
    """What a request is proven to have spent between client and server, its handing to the kernel included.

    So is the wait for a window of HTTP/2, whose credit is on the way. Where the connections were not looked
    at, all that neither side explains.
    """
    phases = run.phases
    if run.network_ns is not None:
        return total(phases.flow_wait_ns, phases.send_ns, run.network_ns, phases.receive_ns)
    whole, server = held_ns(run), run.server.total_ns
    if whole is None or server is None:
        return None
    own = total(phases.connect_ns, phases.encode_ns, phases.decode_ns)
    return max(0.0, whole - server - own)


def path_share(run: Summary) -> float | None:
    """The path's part of the time without the wait for a free stream."""
    return ratio(path_ns(run), held_ns(run))


def in_flight(run: Summary) -> float | None:
    """Requests under way at once, on average: in a closed-loop load never more than it has users."""
    mean = mean_in_flight(run)
    if run.load != "closed":
        return mean
    return run.level if mean is None else min(mean, run.level)


def saturated(run: Summary) -> bool:
    """Whether the server's instances were executing nearly all the time."""
    return at_least(run.server.busy, SATURATED)


def has_caveat(run: Summary, *codes: str) -> bool:
    """Whether a run carries any of these caveats."""
    return any(caveat.code in codes for caveat in run.caveats)


def full_gpu(run: Summary) -> str:
    """How the server's GPUs have no room, in words; empty where that is not shown.

    Of several that it is known to use the least busy one counts, since requests can go there, and of all that
    hold its process those that work; where it is not known which it uses, the busiest one.
    """
    known = [(gpu.util_pct, gpu) for gpu in in_use(run.each_gpu) if gpu.util_pct is not None]
    if not known:
        return ""
    choose = min if all(gpu.serves for _, gpu in known) else max
    util_pct, gpu = choose(known, key=lambda one: one[0])
    if util_pct < GPU_BUSY_PCT or not (sign := _sign(run, gpu)):
        return ""
    return f"{name_of(gpu, run.each_gpu)} was {digits(util_pct)} % busy, {sign}"


def _sign(run: Summary, gpu: GpuUse) -> str:
    """What shows that its kernels fill it; empty where nothing does. Activity of its SMs decides alone."""
    if gpu.sm_active_pct is not None:
        active = f"with its SMs active {digits(gpu.sm_active_pct)} % of the time"
        return active if gpu.sm_active_pct >= SM_ACTIVE_PCT else ""
    if at_least(gpu.power_share, POWER_SHARE):
        return f"at {digits(100 * (gpu.power_share or 0.0))} % of its power limit"
    if (capped := gpu.held_by.get("its power limit", 0.0)) >= CAPPED_SHARE:
        return f"with its power limit reached in {digits(100 * capped)} % of the seconds"
    if gpu.power_share is not None and gpu.power_share < LITTLE_POWER:
        return ""
    most, executed = run.serving.max_batch if run.serving else None, run.server.executed_batch
    if gpu.power_share is None and (most or 0) < LARGE_BATCH:
        return ""
    if most is None or most < 2 or executed is None or executed < FULL_BATCH * most:
        return ""
    return f"with {digits(executed)} of at most {most:,} images in an execution"
