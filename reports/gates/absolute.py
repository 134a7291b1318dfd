"""Bounds on a column itself: by the requests beyond them, by the repeats, or by the worst run."""

from collections.abc import Sequence
from dataclasses import replace
from math import ceil

from reports.buckets import percentiles_ns
from reports.format import NS_PER_MS, plural
from reports.gates.blocks import Seconds
from reports.gates.claim import FAIL, INCONCLUSIVE, LEAST_REPEATS, PASS, Claim, unknown
from reports.gates.columns import FAILURE_RATIO, PERCENTILES, Kind, results_needed
from reports.gates.counting import Counted, Counting, valued, within
from reports.gates.evidence import LEVEL, MOST_REPEATS, Evidence, mean_of, of_values
from reports.gates.shares import LEAST_BLOCKS, Share, share_of
from reports.gates.source import Source, Taken
from reports.gates.thresholds import Threshold


def judge_absolute(threshold: Threshold, cell: str, source: Source, counting: Counting) -> Claim:
    """What the runs of one cell say of a bound on one of its columns."""
    runs = source.runs.get(cell, ())
    if not runs:
        return unknown(threshold, cell, "no run of it was begun")
    column = threshold.require.column
    counted = counting.counted(runs, source.cells[cell], column)
    if not counted.runs:
        return unknown(threshold, cell, f"no run of it counts: {counted.said}")
    if threshold.require.kind is Kind.SHARE:
        claim = _by_requests(threshold, cell, source, counted)
    else:
        known = [run for run in counted.runs if run.value(column) is not None]
        if not known:
            return unknown(threshold, cell, f"{column} is not known of it", len(counted.runs))
        by = _by_repeats if threshold.require.kind is Kind.REPEATED else _by_worst
        claim = by(threshold, cell, known)
    return replace(claim, note=counted.said)


def _by_worst(threshold: Threshold, cell: str, runs: Sequence[Taken]) -> Claim:
    require = threshold.require
    broken = [run for run in runs if not within(threshold, run)]
    pick = max if require.at_most else min
    worst = pick(runs, key=lambda run: run.value(require.column) or 0.0)
    why = f"the worst of {plural(len(runs), 'run')} has {valued(threshold, worst)}"
    if not broken:
        return Claim(threshold=threshold, cell=cell, settled=PASS, why=why, runs=len(runs))
    if require.kind is Kind.FACT:
        return Claim(threshold=threshold, cell=cell, settled=FAIL, why=why, runs=len(runs))
    why = f"{why}, and without that nothing can be said of the cell"
    return Claim(threshold=threshold, cell=cell, settled=INCONCLUSIVE, why=why, runs=len(runs))


def _by_repeats(threshold: Threshold, cell: str, runs: Sequence[Taken]) -> Claim:
    require = threshold.require
    values = [value for run in runs if (value := run.value(require.column)) is not None]
    if len(values) < LEAST_REPEATS:
        why = f"{plural(len(values), 'run')} cannot tell how {require.column} varies"
        return unknown(threshold, cell, why, len(values), LEAST_REPEATS - len(values))
    evidence = of_values(mean_of(values), require.bound, threshold.tolerated, require.at_most)
    return Claim(threshold=threshold, cell=cell, evidence=evidence, runs=len(values))


def _by_requests(threshold: Threshold, cell: str, source: Source, counted: Counted) -> Claim:
    blocks = source.blocks_of(counted.runs) if source.blocks_of else ()
    needed, runs = results_needed(threshold.require.column), len(counted.runs)
    results = sum(run.row.succeeded or 0 for run in counted.runs)
    if results < needed and threshold.require.column != FAILURE_RATIO:
        why = f"{results:,.0f} results, and {threshold.require.column} takes {needed:,}"
        return unknown(threshold, cell, why, runs, ceil((needed - results) / (results / runs)))
    seconds = Seconds.of(blocks)
    if len(seconds.blocks) < LEAST_BLOCKS and threshold.require.bound > 0:
        why = f"results came in {plural(len(seconds.blocks), 'second')}, and it takes {LEAST_BLOCKS}"
        more = ceil(LEAST_BLOCKS * runs / max(1, len(seconds.blocks))) - runs
        return unknown(threshold, cell, why, runs, more)
    return Claim(threshold=threshold, cell=cell, evidence=of_seconds(threshold, seconds, runs), runs=runs)


def of_seconds(threshold: Threshold, seconds: Seconds, runs: int) -> Evidence:
    """What some seconds, of which at least one has requests, say of a percentile or of the failure ratio."""
    if threshold.require.column == FAILURE_RATIO:
        return _of_failures(threshold, seconds, runs)
    return _of_percentile(threshold, seconds, runs)


def _of_failures(threshold: Threshold, seconds: Seconds, runs: int) -> Evidence:
    found = share_of(*seconds.failed(), seconds.runs)
    low, high = found.interval
    bound, tolerated = threshold.require.bound, threshold.tolerated
    if bound == 0:
        # Not one may fail, and whether one did is known.
        none = float(found.share == 0)
        return Evidence(
            value=found.share, low=low, high=high, p_broken=none, p_kept=1 - none, beyond=not none, runs=runs
        )
    return Evidence(
        value=found.share,
        low=low,
        high=high,
        p_broken=found.p_above(bound),
        p_kept=found.p_below(tolerated),
        beyond=found.share > tolerated,
        runs=runs,
        more_repeats=_more(found, found, bound, tolerated, runs),
    )


def _of_percentile(threshold: Threshold, seconds: Seconds, runs: int) -> Evidence:
    """A percentile is at most a bound where at most its share of requests takes longer.

    The interval is Woodruff's, from that of the share. Source: R. S. Woodruff, Confidence intervals for
    medians and other position measures, Journal of the American Statistical Association 47 (1952).
    """
    require = threshold.require
    name, percent = PERCENTILES[require.column]
    allowed = 1 - percent / 100
    whole = seconds.whole(name)
    (value_ns,) = percentiles_ns(whole, [percent])
    assert value_ns is not None, "its results were counted"
    at_value, at_bound, at_tolerated = (
        share_of(*seconds.beyond(name, ns), seconds.runs)
        for ns in (value_ns, require.bound * NS_PER_MS, threshold.tolerated * NS_PER_MS)
    )
    low, high = Share(allowed, at_value.effective, at_value.requests).interval
    ends = percentiles_ns(whole, [100 * (1 - high), 100 * (1 - low)])
    value, below, above = ((ns or 0.0) / NS_PER_MS for ns in (value_ns, *ends))
    sides = (at_bound.p_above(allowed), at_tolerated.p_below(allowed))
    if not require.at_most:
        sides = (at_bound.p_below(allowed), at_tolerated.p_above(allowed))
    return Evidence(
        value=value,
        low=below,
        high=above,
        p_broken=sides[0],
        p_kept=sides[1],
        beyond=value > threshold.tolerated if require.at_most else value < threshold.tolerated,
        runs=runs,
        more_repeats=_more(at_bound, at_tolerated, allowed, allowed, runs),
    )


def _more(at_bound: Share, at_tolerated: Share, bound: float, tolerated: float, runs: int) -> int | None:
    """The fewest runs more, each like those there are, with which one side would be sure."""
    for more in range(1, MOST_REPEATS):
        grown = [
            Share(one.share, one.effective * (runs + more) / runs, one.requests)
            for one in (at_bound, at_tolerated)
        ]
        if grown[0].share > bound and grown[0].p_above(bound) <= LEVEL:
            return more
        if grown[1].share < tolerated and grown[1].p_below(tolerated) <= LEVEL:
            return more
    return None
