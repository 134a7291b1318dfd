"""Which cells may be ranked by speed, and how long the requests took that failed."""

from collections.abc import Iterable, Iterator, Sequence

from reports.fold.records import ratio
from reports.format import digits, listed, ms
from reports.stats.repeats import by_cell
from reports.summary.summary import Summary

MOST_FAILED = 0.01
"""Of a cell's requests, all repeats together, that may fail where it is ranked by speed.

Rates and latencies are of successes. Those that fail are mostly the slow ones, as with a timeout, or cost the
server next to nothing, as with a refusal: a cell with many of them looks faster than it is.
"""
MOST_NAMED = 3


def too_many(failed: float, requests: float) -> bool:
    """Whether so many of a cell's requests failed that its speed is not ranked."""
    return bool(requests) and failed / requests > MOST_FAILED


def say_no_success(runs: Iterable[Summary]) -> str:
    """Why nothing can be said about speed, of runs without a success: whether they measured at all."""
    failed = any(run.counts.requests for run in runs)
    return (
        f"{'No request succeeded' if failed else 'Nothing was measured'}, so nothing can be said about speed"
    )


def failed_share(runs: Iterable[Summary]) -> float:
    """The part of all requests of some runs that failed, from 0 to 1; 0 where none came back."""
    return ratio(*_counts(runs)) or 0.0


def _counts(runs: Iterable[Summary]) -> tuple[int, int]:
    """Failures and all requests."""
    counts = [run.counts for run in runs]
    return sum(of.failures or 0 for of in counts), sum(of.requests or 0 for of in counts)


def ranks(runs: Iterable[Summary]) -> bool:
    """Whether a cell may be called the fastest; `runs` are all its repeats, those that failed included."""
    return not too_many(*_counts(runs))


def rankable(runs: Iterable[Summary]) -> list[Summary]:
    """The runs of those cells that may be ranked, in their order; all runs of a cell must be among them."""
    every = list(runs)
    failing = _failing(every)
    return [run for run in every if run.cell not in failing]


def beside(runs: Sequence[Summary], behind: Sequence[Summary]) -> Iterator[str]:
    """What failed of a cell, for a note at its figures: where one rests on a run with failures, or many did.

    `behind` are the repeats that the figure rests on, of all `runs` of the cell.
    """
    if any(run.counts.failures for run in behind) or not ranks(runs):
        yield from failed_said(runs)


def _failing(runs: Iterable[Summary]) -> dict[str, float]:
    """The cells that may not be ranked, with the share of their requests that failed."""
    return {cell: failed_share(of) for cell, of in by_cell(runs).items() if not ranks(of)}


def succeeded_ns(runs: Sequence[Summary]) -> float | None:
    """Mean nanoseconds until requests succeeded, over all repeats; None where none did."""
    return _mean_ns((run.succeeded, run.latency.mean_ns) for run in runs)


def failed_ns(runs: Sequence[Summary], timed_out: bool) -> float | None:
    """Mean nanoseconds until requests failed, either by timeouts or otherwise; None where none did."""
    if timed_out:
        return _mean_ns((run.timeouts, run.timeout.mean_ns) for run in runs)
    return _mean_ns(((run.counts.failures or 0) - run.timeouts, run.failed.mean_ns) for run in runs)


def _mean_ns(counted: Iterable[tuple[int, float | None]]) -> float | None:
    """The mean of some means, each of so many requests."""
    known = [(count, mean_ns) for count, mean_ns in counted if count and mean_ns is not None]
    return ratio(sum(count * mean_ns for count, mean_ns in known), sum(count for count, _ in known))


def failed_said(runs: Sequence[Summary]) -> Iterator[str]:
    """How many requests of a cell failed, after which time; nothing where none did."""
    failed = sum(run.counts.failures or 0 for run in runs)
    if not failed:
        return
    times = ((failed_ns(runs, timed_out), "timeout " * timed_out) for timed_out in (False, True))
    told = [f"{what}mean {ms(mean_ns)} ms" for mean_ns, what in times if mean_ns is not None]
    total = sum(run.counts.requests or 0 for run in runs)
    share = f"{failed:,} of {total:,} requests failed ({digits(100 * failed_share(runs))} %)"
    yield f"{share}: {listed(told)}" if told else share


def unranked(runs: Iterable[Summary]) -> str:
    """The sentence that names the cells that may not be ranked, most failures first; empty without any."""
    failing = _failing(runs)
    names = sorted(failing, key=lambda cell: (-failing[cell], cell))
    if not names:
        return ""
    told = [f"{cell} ({digits(100 * failing[cell])} %)" for cell in names[:MOST_NAMED]]
    more = [f"{len(names) - MOST_NAMED} more"] if names[MOST_NAMED:] else []
    why = f"more than {100 * MOST_FAILED:g} % of the requests failed"
    return f"Not ranked, since {why}: {listed([*told, *more])}."
