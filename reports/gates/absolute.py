"""Bounds on a column itself: by the requests beyond them, by the repeats, or by the worst run."""

from collections.abc import Sequence
from dataclasses import replace
from math import ceil, inf

from reports.format import NS_PER_MS, plural
from reports.gates.evidence import Evidence, of_values
from reports.gates.require import FAILURE_RATIO, GOODPUT_SHARE, PERCENTILES, JudgedBy, results_needed
from reports.gates.source import Counted, Counting, GateSource, Taken
from reports.gates.thresholds import Threshold
from reports.gates.verdict import FAIL, INCONCLUSIVE, PASS, Claim, allowed, shown, unknown
from reports.histogram.buckets import Buckets, percentiles_ns
from reports.stats.paired import LEAST_REPEATS, mean_of
from reports.stats.shares import LEAST_BLOCKS, Share, seconds_needed, share_of
from reports.summary.blocks import BlockSeries

Held = tuple[Share, float]
"""A share, and what it is held against."""
NEAREST = 1.0005
"""A value lies so near the middle of its bucket: one that may be at a bound speaks for no outcome."""
JUST_BELOW = 0.9999
"""Of a value: a bound that the value itself exceeds, and that no smaller bucket of a histogram does."""


def judge_absolute(threshold: Threshold, cell: str, source: GateSource, counting: Counting) -> Claim:
    """What the runs of one cell say of a bound on one of its columns."""
    runs = source.runs.get(cell, ())
    if not runs:
        return unknown(threshold, cell, "no run of it was begun")
    kind = threshold.require.kind
    pooled = kind is JudgedBy.SHARE
    counted = counting.counted(runs, source.cells[cell], threshold.require.column, pooled=pooled)
    if not counted.runs:
        return unknown(threshold, cell, f"no run of it counts: {counted.said}")
    if threshold.counts:
        claim = _by_count(threshold, cell, counted.runs)
    elif pooled:
        claim = _by_requests(threshold, cell, source, counted)
    elif kind is JudgedBy.REPEATED:
        claim = _by_repeats(threshold, cell, counted.runs)
    else:
        claim = _by_worst(threshold, cell, counted.runs)
    return replace(claim, note=counted.said)


def _by_count(threshold: Threshold, cell: str, runs: Sequence[Taken]) -> Claim:
    failures, requests = (sum(run.row.numbers[name] for run in runs) for name in ("failures", "requests"))
    ratio = failures / requests
    outcome = PASS if threshold.keeps(ratio) else FAIL
    why = f"{failures:,.0f} of {plural(round(requests), 'request')} failed, {allowed(threshold)}"
    return Claim(threshold=threshold, cell=cell, settled=outcome, why=why, value=ratio, runs=len(runs))


def _by_worst(threshold: Threshold, cell: str, runs: Sequence[Taken]) -> Claim:
    require = threshold.require
    worst = (max if require.at_most else min)(run.known(require.column) for run in runs)
    of = "" if len(runs) == 1 else f" in the worst of {plural(len(runs), 'run')}"
    why = f"{require.column} {shown(threshold)(worst)}{of}, {allowed(threshold)}"
    outcome = PASS if threshold.keeps(worst) else FAIL
    if outcome == FAIL and require.kind is JudgedBy.EVIDENCE:
        outcome, why = INCONCLUSIVE, f"{why}, and a run without that shows nothing"
    return Claim(threshold=threshold, cell=cell, settled=outcome, why=why, value=worst, runs=len(runs))


def _too_few(threshold: Threshold, cell: str, runs: Sequence[Taken]) -> Claim | None:
    """That what runs differ by is not known, where they are fewer than LEAST_REPEATS."""
    if len(runs) >= LEAST_REPEATS:
        return None
    why = f"{plural(len(runs), 'run')} cannot tell how {threshold.require.column} varies"
    return unknown(threshold, cell, why, len(runs), LEAST_REPEATS - len(runs))


def _by_repeats(threshold: Threshold, cell: str, runs: Sequence[Taken]) -> Claim:
    require = threshold.require
    if lacking := _too_few(threshold, cell, runs):
        return lacking
    values = mean_of([run.known(require.column) for run in runs])
    evidence = of_values(values, require.bound, threshold.tolerated, require.at_most)
    return Claim(threshold=threshold, cell=cell, evidence=evidence, runs=len(runs))


def _by_requests(threshold: Threshold, cell: str, source: GateSource, counted: Counted) -> Claim:
    if lacking := _too_few(threshold, cell, counted.runs):
        return lacking
    blocks = source.blocks_of(counted.runs) if source.blocks_of else ()
    needed, runs = results_needed(threshold.require.column), len(counted.runs)
    requests = sum(run.row.numbers["requests"] for run in counted.runs)
    if requests < needed and threshold.require.column != FAILURE_RATIO:
        why = f"{requests:,.0f} results, and {threshold.require.column} takes {needed:,}"
        return unknown(threshold, cell, why, runs, ceil((needed - requests) / (requests / runs)))
    seconds = BlockSeries.of(blocks)
    if len(seconds.blocks) < LEAST_BLOCKS:
        why = f"results came in {plural(len(seconds.blocks), 'second')}, and it takes {LEAST_BLOCKS}"
        more = ceil(LEAST_BLOCKS * runs / max(1, len(seconds.blocks))) - runs
        return unknown(threshold, cell, why, runs, more)
    evidence, short = of_seconds(threshold, seconds, runs), _short(threshold, len(seconds.blocks))
    if not threshold.require.at_most and evidence.value == inf:
        why = f"no result: {threshold.require.column} lies among requests without a reply"
        return unknown(threshold, cell, why, runs)
    return Claim(threshold=threshold, cell=cell, evidence=evidence, runs=runs, short=short)


def _short(threshold: Threshold, seconds: int) -> str:
    """Why so few seconds pass no upper bound, however far below it all is; empty where they may."""
    require = threshold.require
    _, percent = PERCENTILES.get(require.column, ("", 0.0))
    if not require.at_most and require.column != GOODPUT_SHARE:
        return ""
    allowed = 1 - percent / 100 if percent else threshold.tolerated
    if require.column == GOODPUT_SHARE:
        allowed = 1 - threshold.tolerated
    if not allowed < 1 or seconds >= (needed := seconds_needed(allowed)):
        return ""
    at_most = f"at most {round(100 * allowed, 9):g} % are late or failed"
    return f"{seconds:,} s cannot show that {at_most}; at least {needed:,} s can"


def of_seconds(threshold: Threshold, seconds: BlockSeries, runs: int) -> Evidence:
    """What some seconds, of which at least one has requests, say of a percentile or a share of requests."""
    if threshold.require.column == FAILURE_RATIO:
        return _of_failures(threshold, seconds, runs)
    if threshold.require.column == GOODPUT_SHARE:
        return _of_goodput(threshold, seconds, runs)
    return _of_percentile(threshold, seconds, runs)


def _of_failures(threshold: Threshold, seconds: BlockSeries, runs: int) -> Evidence:
    found = share_of(*seconds.failed(), seconds.runs)
    broken, kept = (found, threshold.require.bound), (found, threshold.tolerated)
    evidence = _of_shares(threshold, found.share, found.interval, runs, broken, kept, above=True)
    # Where not one may fail, whether one did is known.
    return replace(evidence, certain=threshold.require.bound == 0)


def _of_goodput(threshold: Threshold, seconds: BlockSeries, runs: int) -> Evidence:
    """By the share of those that are not good, as failures are: seconds that were not seen may have more."""
    bad = share_of(*seconds.bad(), seconds.runs)
    broken, kept = (bad, 1 - threshold.require.bound), (bad, 1 - threshold.tolerated)
    least, most = bad.interval
    return _of_shares(threshold, 1 - bad.share, (1 - most, 1 - least), runs, broken, kept, above=True)


def _of_percentile(threshold: Threshold, seconds: BlockSeries, runs: int) -> Evidence:
    """A percentile is at most a bound where at most its share of requests takes longer, or has no reply.

    The interval is Woodruff's, from that of the share. Source: R. S. Woodruff, Confidence intervals for
    medians and other position measures, Journal of the American Statistical Association 47 (1952).
    """
    require = threshold.require
    name, percent = PERCENTILES[require.column]
    rest = 1 - percent / 100
    unanswered, whole = seconds.unanswered(), seconds.whole(name)

    def share_beyond(bound_ns: float) -> Share:
        hits, succeeded = seconds.beyond(name, bound_ns)
        return share_of(hits + unanswered, succeeded + unanswered, seconds.runs)

    def value_ns(share: float) -> float:
        return percentile_ns(whole, float(unanswered.sum()), 100 * (1 - share))

    at_value = share_beyond(JUST_BELOW * value_ns(rest))
    low, high = replace(at_value, share=rest).interval
    value, below, above = (value_ns(share) / NS_PER_MS for share in (rest, high, low))

    def held(bound: float, doubt: float) -> Held:
        found = share_beyond(bound * doubt * NS_PER_MS)
        # The few that are beyond a near bound do not tell how alike neighbours are; those at the value do.
        effective = min(at_value.effective, found.effective) if below <= bound <= above else found.effective
        return replace(found, effective=effective), rest

    doubt = NEAREST if require.at_most else 1 / NEAREST
    broken, kept = held(require.bound, doubt), held(threshold.tolerated, 1 / doubt)
    return _of_shares(threshold, value, (below, above), runs, broken, kept, above=require.at_most)


def percentile_ns(successes: Buckets, unanswered: float, percent: float) -> float:
    """Of all requests, of which those without a reply rank above every other; infinite among them."""
    of_successes = percent * (1 + unanswered / successes.total) if successes.total else inf
    (found,) = percentiles_ns(successes, [of_successes]) if of_successes <= 100 else (None,)
    return inf if found is None else found


def _of_shares(
    threshold: Threshold,
    value: float,
    interval: tuple[float, float],
    runs: int,
    broken: Held,
    kept: Held,
    *,
    above: bool,
) -> Evidence:
    """Each side comes with the share that it is held against; a bound is broken `above` it, or below."""
    (one, bound), (other, tolerated) = broken, kept
    if above:
        # Seconds that were not seen may keep it from passing, and excuse no slow ones that were seen. A lower
        # bound fails where slow ones are too few, and a kind of these may not have been seen.
        one = replace(one, seconds=inf)

    def chances(more: int) -> tuple[float, float]:
        factor = (runs + more) / runs
        grown, other_grown = one.grown(factor), other.grown(factor)
        return grown.p_beyond(bound, above), other_grown.p_beyond(tolerated, not above)

    return Evidence(
        value=value,
        low=interval[0],
        high=interval[1],
        chances=chances,
        beyond=not threshold.keeps(value),
        beyond_then=other.share > tolerated if above else other.share < tolerated,
    )
