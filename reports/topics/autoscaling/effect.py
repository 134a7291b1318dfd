"""Did more replicas help? The seconds before and after they changed, where the load was the same."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from math import ceil, inf, log

import numpy as np
import numpy.typing as npt

from reports.histogram.buckets import mean_ns, percentiles_ns, together
from reports.histogram.percentiles import LEAST_RESULTS
from reports.stats.log_ratio import RESOLUTION, LogRatio, log_ratio
from reports.stats.paired import LEAST_REPEATS, paired_ratio, told_apart
from reports.stats.shares import alike_neighbours
from reports.study.course import Change, CourseRun, Moment

BLOCK_S, LEAST_BLOCKS = 10, 3
"""A block's seconds, at least, and a side's blocks: as few and as long as its seconds allow."""
ENOUGH = LEAST_RESULTS["p95"]
"""Requests asked for in a block: the least that a p95 is read from."""
WINDOW_S = 30
"""Before an autoscaler asks for other replicas it looks at so many seconds, metrics of 15 s every 15 s. Those
triggered the step: they are not what the load is without it, since what is measured again is less extreme.
Source: A. G. Barnett, J. C. van der Pols, A. J. Dobson, Regression to the mean: what it is and how to deal
with it, International Journal of Epidemiology 34 (2005).
"""
GRAINS_S = 1, 5
"""Seconds whose means are compared with the next ones: what varies slowly below much that does not shows only
in longer ones.
"""
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
    """What a step came to, after over before, at the load that was `asked`; `why` says why it is left open.

    `blocks` are how many of `block_s` seconds were compared before and after; `failed` is whether requests
    failed in any. `pairs` are the repeats whose step was compared with runs without one, 0 where they are not
    enough: the ratios are then over what those changed by meanwhile.
    """

    step: ReplicaStep
    asked: float
    verdict: str
    why: str = ""
    p95: LogRatio | None = None
    served: LogRatio | None = None
    blocks: tuple[int, int] = (0, 0)
    block_s: int = 0
    failed: bool = False
    pairs: int = 0


BlockValue = Callable[[Sequence[Moment]], float | None]
Sides = tuple[Sequence[Moment], Sequence[Moment]]
"""The seconds before a step and those after it."""


def effects(scaling: CourseRun, among: Sequence[CourseRun] = ()) -> list[Effect]:
    """One for every step, in order. `among` are all runs of the study: some may be without a step."""
    count = len(steps_of(scaling.ready))
    return [controlled(scaling, among, at) or effect(scaling, at) for at in range(count)]


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


def effect(scaling: CourseRun, at: int) -> Effect:
    """What one step came to by the blocks of its own run."""
    step = steps_of(scaling.ready)[at]
    whole = around(scaling, at)
    rate = rate_after(whole)
    sides = same_load(whole)
    size = block_size(sides, rate)
    blocks = [blocks_of(side, size) for side in sides]
    counts = len(blocks[0]), len(blocks[1])
    if min(counts) < LEAST_BLOCKS:
        return Effect(step, rate, UNCLEAR, too_few(whole, sides, rate), blocks=counts)
    found = compared(step, rate, *blocks)
    if found.block_s < noise_s(sides):
        why = f"what varies may last longer than the blocks of {found.block_s} s"
        return replace(found, verdict=UNCLEAR, why=why)
    return found


def around(scaling: CourseRun, at: int) -> Sides:
    """The seconds that belong to a step: its neighbours bound them; those that triggered it are left out."""
    steps = steps_of(scaling.ready)
    step = steps[at]
    begin_s = steps[at - 1].to_s if at else scaling.stages[0].begin_s
    end_s = steps[at + 1].from_s if at + 1 < len(steps) else scaling.stages[-1].end_s
    up = step.after > step.before
    asked = [one.at_s for one in scaling.desired if (one.after > one.before) == up]
    trigger_s = max((s for s in asked if begin_s <= s <= step.from_s), default=step.from_s)
    return between(scaling, begin_s, trigger_s - WINDOW_S), between(scaling, step.to_s, end_s)


def between(scaling: CourseRun, begin_s: float, end_s: float) -> list[Moment]:
    """The seconds of a run that lie wholly between two moments."""
    return [one for one in scaling.moments if begin_s <= one.s and one.end_s <= end_s]


def rate_after(whole: Sides) -> float:
    """What is asked for right after a step."""
    return whole[1][0].asked if whole[1] else 0.0


def same_load(whole: Sides) -> Sides:
    """Those nearest to the step in which as much was asked for as right after it."""
    before, after = whole
    rate = rate_after(whole)
    return at_rate(before[::-1], rate)[::-1], at_rate(after, rate)


def at_rate(moments: Sequence[Moment], rate: float) -> list[Moment]:
    """Those at the beginning for which the same was asked."""
    return list(takewhile(lambda one: abs(one.asked - rate) <= SAME_RATE * rate, moments))


def block_s(rate: float, width_s: int) -> int:
    """How many seconds a block has, a whole number of moments."""
    return ceil(max(BLOCK_S, ENOUGH / rate) / width_s) * width_s if rate else BLOCK_S


def block_size(sides: Sequence[Sequence[Moment]], rate: float) -> int:
    """How many moments a block has, the same on both sides: the p95 of a longer block is higher."""
    width_s = next((side[0].width_s for side in sides if side), 1)
    return max(block_s(rate, width_s) // width_s, min(map(len, sides)) // LEAST_BLOCKS)


def blocks_of(moments: Sequence[Moment], size: int) -> list[Sequence[Moment]]:
    """Whole blocks, counted from the step on: few and long, since neighbouring seconds resemble each other.

    These are batch means, whose interval holds as far as the blocks are long beside what lasts: A. M. Law,
    Simulation Modeling and Analysis, the chapter on output data analysis.
    """
    return [moments[begin : begin + size] for begin in range(0, len(moments) - size + 1, size)]


def too_few(whole: Sides, sides: Sides, rate: float) -> str:
    """Why there is nothing to compare: another load cut a side short, or it never was long enough."""
    before, after = whole
    width_s = (before or after)[0].width_s if before or after else 1
    each = block_s(rate, width_s)
    short = [len(side) * width_s < LEAST_BLOCKS * each for side in sides]
    cut = [len(side) < len(every) for side, every in zip(sides, whole, strict=True)]
    if before and after and any(map(all, zip(short, cut, strict=True))):
        return "the load changed at about the same time"
    return (
        f"fewer than {LEAST_BLOCKS} blocks of {each} s at one number of replicas before or after, without "
        f"the {WINDOW_S} s that triggered the step"
    )


def noise_s(sides: Sides) -> float:
    """How long what varies from second to second lasts, by neighbours that are alike on the same side.

    The means of independent stretches so long vary as those of what is measured: (1 + r) / (1 - r) of a
    grain, with r the correlation of one with the next. Source: M. S. Bartlett, On the theoretical
    specification and sampling properties of autocorrelated time-series, Supplement to the Journal of the
    Royal Statistical Society 8 (1946).
    """
    found = []
    for value in (lambda one: mean_ns(one.latency), lambda one: one.ok or None):
        series = [np.log([known for one in side if (known := value(one))]) for side in sides]
        width_s = sides[0][0].width_s
        found += [_lasts_s(series, max(1, grain // width_s)) * width_s for grain in GRAINS_S]
    return max(found)


def _lasts_s(series: Sequence[npt.NDArray[np.float64]], grain: int) -> float:
    """How many moments what varies lasts, by the means of so many; 0 where nothing does that can be seen."""
    means = [side[: len(side) // grain * grain].reshape(-1, grain).mean(axis=1) for side in series]
    errors = np.concatenate([side - side.mean() for side in means if len(side)])
    if not len(errors) or np.abs(errors).max() < log(RESOLUTION):
        return 0.0
    runs = np.repeat(np.arange(len(means)), [len(side) for side in means])
    r = alike_neighbours(errors, runs)
    return grain * (1 + r) / (1 - r) if r else 0.0


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
    """Better where one figure is told to be better and none to be worse; worse the other way round."""
    found = [(it, lower) for it, lower in ((p95, True), (served, False)) if it is not None]
    told = told_apart([it for it, _ in found])
    signs = {(it.ratio < 1) is lower for (it, lower), apart in zip(found, told, strict=True) if apart}
    return {frozenset({True}): HELPED, frozenset({False}): HURT}.get(frozenset(signs), UNCLEAR)


def controlled(scaling: CourseRun, among: Sequence[CourseRun], at: int) -> Effect | None:
    """A step of several repeats, each beside the same seconds of a run of the same course but without a step.

    None where there are too few such pairs. They are of the same endpoint: of others it is not known whether
    their replicas changed. What happens to both anyway is in both, so neither how long it lasts nor what
    triggered the step tells in favour of it.
    """
    step = steps_of(scaling.ready)[at]
    free = [one for one in among if one.watched and one.endpoint == scaling.endpoint]
    own: list[Sides] = []
    other: list[Sides] = []
    for one in [one for one in among if one.cell == scaling.cell and _has(one, step, at)]:
        sides = same_load(around(one, at))
        twin = next((it for it in free if it.stages == one.stages and _steady(it, sides)), None)
        if twin and min(map(len, sides)) >= block_size(((), ()), rate_after(sides)):
            free.remove(twin)
            own.append(sides)
            other.append(same_seconds(twin, sides))
    if len(own) < LEAST_REPEATS:
        return None
    p95, served = (_over(own, other, value) for value in (p95_ns, served_per_s))
    failed = any(one.failures for sides in own for side in sides for one in side)
    rate = rate_after(own[0])
    return Effect(step, rate, verdict(p95, served), "", p95, served, failed=failed, pairs=len(own))


def _has(one: CourseRun, step: ReplicaStep, at: int) -> bool:
    """Whether a run has a step between the same numbers in the same place."""
    steps = steps_of(one.ready)
    return len(steps) > at and (steps[at].before, steps[at].after) == (step.before, step.after)


def _steady(one: CourseRun, sides: Sides) -> bool:
    """Whether a run's replicas did not change from the first of some seconds to the last."""
    if not all(sides):
        return False
    changed = any(sides[0][0].s <= it.at_s <= sides[1][-1].end_s for it in one.ready)
    return not changed and all(same_seconds(one, sides))


def same_seconds(one: CourseRun, sides: Sides) -> Sides:
    """Those of another run, half a moment off at most."""
    before, after = (between(one, side[0].s - 0.5, side[-1].end_s + 0.5) for side in sides)
    return before, after


def _over(own: Sequence[Sides], other: Sequence[Sides], value: BlockValue) -> LogRatio | None:
    """After over before of runs with a step, over that of runs without; None where a side has no value."""
    changes = [
        {place: (value(after) or 0.0) / (value(before) or inf) for place, (before, after) in enumerate(sides)}
        for sides in (own, other)
    ]
    return paired_ratio(*changes) if all(all(each.values()) for each in changes) else None


def p95_ns(block: Sequence[Moment]) -> float | None:
    """Of all successes of a block."""
    (found,) = percentiles_ns(together(one.latency for one in block), [95.0])
    return found


def served_per_s(block: Sequence[Moment]) -> float:
    """Successes a second of a block."""
    return sum(one.ok for one in block) / sum(one.width_s for one in block)
