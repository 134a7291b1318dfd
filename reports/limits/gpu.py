"""Whether a GPU has no room: what shows it beside its utilisation, which is only time with some kernel."""

from reports.caveats.gpu import name_of
from reports.format import digits
from reports.limits.shares import at_least
from reports.machines.gpus import GpuUse, in_use
from reports.summary.summary import Summary

BUSY_PCT = 90
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
    if util_pct < BUSY_PCT or not (sign := _sign(run, gpu)):
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
