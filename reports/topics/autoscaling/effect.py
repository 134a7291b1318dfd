"""Did more replicas help? The seconds before and after they changed, where the load was the same."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from math import ceil

from reports.fold.autoscaling import AutoscaledRun, Change, Moment
from reports.histogram.buckets import percentiles_ns, together
from reports.stats.log_ratio import LogRatio, log_ratio

BLOCK_S, LEAST_RESULTS = 5, 20
"""A block has at least so many seconds, and so many requests asked for: the least a p95 is read from."""
LEAST_BLOCKS, ENOUGH_BLOCKS = 3, 6
SAME_RATE = 0.02
TOGETHER_S = 15
"""Pods become ready one by one; changes no further apart are one step."""
HELPED, HURT, UNCLEAR = "helped", "made it worse", "inconclusive"


@dataclass(frozen=True)
class ReplicaStep:
    """From so many ready replicas to others, between two moments."""

    from_s: float
    to_s: float
    before: int
    after: int


@dataclass(frozen=True)
class Effect:
    """What a step came to, after over before, at a load of `rate_per_s`; without ratios, `why` says why not.

    `blocks` are how many of `block_s` seconds were compared before and after; `failed` is whether requests
    failed in any.
    """

    step: ReplicaStep
    rate_per_s: float
    verdict: str
    why: str = ""
    p95: LogRatio | None = None
    served: LogRatio | None = None
    blocks: tuple[int, int] = (0, 0)
    block_s: int = 0
    failed: bool = False


def effects(scaling: AutoscaledRun) -> list[Effect]:
    """One for every step, in order."""
    steps = steps_of(scaling.ready)
    return [effect(scaling, steps, at) for at in range(len(steps))]


def steps_of(changes: Sequence[Change]) -> list[ReplicaStep]:
    """Changes in the same direction that follow each other closely, as one."""
    steps: list[ReplicaStep] = []
    for change in changes:
        last, up = steps[-1] if steps else None, change.after > change.before
        if last and change.at_s - last.to_s <= TOGETHER_S and up == (last.after > last.before):
            steps[-1] = replace(last, to_s=change.at_s, after=change.after)
        else:
            steps.append(ReplicaStep(change.at_s, change.at_s, change.before, change.after))
    return steps


def effect(scaling: AutoscaledRun, steps: Sequence[ReplicaStep], at: int) -> Effect:
    """What one step came to: its neighbours bound the seconds that belong to it."""
    step = steps[at]
    begin_s = steps[at - 1].to_s if at else scaling.stages[0].begin_s
    end_s = steps[at + 1].from_s if at + 1 < len(steps) else scaling.stages[-1].end_s
    before = [one for one in scaling.moments if begin_s <= one.s and one.end_s <= step.from_s]
    after = [one for one in scaling.moments if step.to_s <= one.s and one.end_s <= end_s]
    rate = after[0].asked_per_s if after else 0.0
    sides = (alike(before[::-1], rate), alike(after, rate))
    size = block_size(sides, rate)
    blocks = [blocks_of(side, size) for side in sides]
    counts = len(blocks[0]), len(blocks[1])
    if min(counts) < LEAST_BLOCKS:
        return Effect(step, rate, UNCLEAR, too_few(before, after, sides, rate), blocks=counts)
    return compared(step, rate, *blocks)


def alike(moments: Sequence[Moment], rate: float) -> list[Moment]:
    """Those at the beginning for which the same was asked."""
    return list(takewhile(lambda one: abs(one.asked_per_s - rate) <= SAME_RATE * rate, moments))


def block_s(rate: float, width_s: int) -> int:
    """How many seconds a block has, a whole number of moments."""
    return ceil(max(BLOCK_S, LEAST_RESULTS / rate) / width_s) * width_s if rate else BLOCK_S


def block_size(sides: Sequence[Sequence[Moment]], rate: float) -> int:
    """How many moments a block has, the same on both sides: the p95 of a longer block is higher."""
    width_s = next((side[0].width_s for side in sides if side), 1)
    return max(block_s(rate, width_s) // width_s, min(map(len, sides)) // ENOUGH_BLOCKS)


def blocks_of(moments: Sequence[Moment], size: int) -> list[Sequence[Moment]]:
    """Whole blocks, counted from the step on: few and long, since neighbouring seconds resemble each other.

    These are batch means, whose interval holds as far as the blocks are long beside what lasts: A. M. Law,
    Simulation Modeling and Analysis, the chapter on output data analysis.
    """
    return [moments[begin : begin + size] for begin in range(0, len(moments) - size + 1, size)]


def too_few(
    before: Sequence[Moment], after: Sequence[Moment], sides: Sequence[Sequence[Moment]], rate: float
) -> str:
    """Why there is nothing to compare: another load cut a side short, or it never was long enough."""
    width_s = (before or after)[0].width_s if before or after else 1
    each = block_s(rate, width_s)
    short = [len(side) * width_s < LEAST_BLOCKS * each for side in sides]
    cut = [len(side) < len(whole) for side, whole in zip(sides, (before, after), strict=True)]
    if before and after and any(map(all, zip(short, cut, strict=True))):
        return "the load changed at about the same time"
    return f"fewer than {LEAST_BLOCKS} blocks of {each} s at one number of replicas before or after"


def compared(
    step: ReplicaStep, rate: float, before: Sequence[Sequence[Moment]], after: Sequence[Sequence[Moment]]
) -> Effect:
    """The blocks after over those before."""
    p95 = ratio([[p95_ns(block) for block in side] for side in (after, before)])
    served = ratio([[served_per_s(block) for block in side] for side in (after, before)])
    failed = any(one.failures for side in (before, after) for block in side for one in block)
    length_s, counts = sum(one.width_s for one in before[0]), (len(before), len(after))
    return Effect(step, rate, verdict(p95, served), "", p95, served, counts, length_s, failed)


def ratio(sides: Sequence[Sequence[float | None]]) -> LogRatio | None:
    """The ratio of two sides' blocks; None where a block has no value, or 0."""
    over, under = ([value for value in side if value] for side in sides)
    whole = len(over) == len(sides[0]) and len(under) == len(sides[1])
    return log_ratio(over, under) if whole else None


def verdict(p95: LogRatio | None, served: LogRatio | None) -> str:
    """Better where one figure is plainly better and none plainly worse; worse the other way round."""
    signs = {
        (found.ratio < 1) is lower
        for found, lower in ((p95, True), (served, False))
        if found is not None and found.significant
    }
    return {frozenset({True}): HELPED, frozenset({False}): HURT}.get(frozenset(signs), UNCLEAR)


def p95_ns(block: Sequence[Moment]) -> float | None:
    """Of all successes of a block."""
    (found,) = percentiles_ns(together(one.latency for one in block), [95.0])
    return found


def served_per_s(block: Sequence[Moment]) -> float:
    """Successes a second of a block."""
    return sum(one.ok for one in block) / sum(one.width_s for one in block)
