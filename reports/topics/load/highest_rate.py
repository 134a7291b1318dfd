"""The highest rate that meets a bound on latency, from the runs of a search for it."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from reports.format import digits
from reports.page.grid import Runs
from reports.study.study_reports import Study
from reports.summary.way import Way
from reports.topics.load.open_load import latency_ms, open_cells
from reports.topics.load.rate_search import Bound

CAPPED = "as many as --max-in-flight allows were in use"


@dataclass(frozen=True)
class Search:
    """What a search found for one way to the model and batch.

    `met` are the runs at the highest rate that met the bound, empty where none did, `missed` those at the
    lowest rate above it that did not, both without runs that are no evidence. `unknown` are the runs at the
    lowest rate above `met`, where they are no evidence. `below` are lower rates that did not meet it.
    """

    way: Way
    batch: int
    met: Runs
    missed: Runs
    unknown: Runs
    below: tuple[float, ...]
    made: int


def searches(study: Study, bound: Bound) -> Iterator[Search]:
    """What was found for each way and batch that has runs with open load."""
    begun = ([run for run in runs if run.started] for runs in open_cells(study))
    rates = [runs for runs in begun if runs]
    for _, group in groupby(rates, key=lambda runs: (runs[0].way, runs[0].batch)):
        yield search(sorted(group, key=lambda runs: runs[0].level), bound)


def search(rates: list[Runs], bound: Bound) -> Search:
    """One search from the repeats of each rate, lowest rate first."""
    verdicts = [meets(runs, bound) for runs in rates]
    best = max((place for place, verdict in enumerate(verdicts) if verdict), default=-1)
    above = range(best + 1, len(rates))
    missed = next((place for place in above if verdicts[place] is False), None)
    first = rates[0][0]
    return Search(
        way=first.way,
        batch=first.batch,
        met=evidence(rates[best], bound) if best >= 0 else [],
        missed=[] if missed is None else evidence(rates[missed], bound),
        unknown=rates[above[0]] if above and verdicts[above[0]] is None else [],
        below=tuple(rates[place][0].level for place in range(best) if verdicts[place] is False),
        made=sum(len(runs) for runs in rates),
    )


def evidence(runs: Runs, bound: Bound) -> Runs:
    """The runs that tell something of the server."""
    return [run for run in runs if bound.met_by(run) is not None]


def meets(runs: Runs, bound: Bound) -> bool | None:
    """Whether a rate met it: in every run of it that is evidence; None where none is."""
    judged = [bound.met_by(run) for run in evidence(runs, bound)]
    return all(judged) if judged else None


def shortfall(missed: Runs, bound: Bound) -> str:
    """Why a rate did not meet the bound: its latency, or where that was within it, what went wrong."""
    found_ms = [latency_ms(run, bound.percentile) or 0.0 for run in missed if bound.exceeded_by(run)]
    if found_ms:
        return digits(max(found_ms))
    return CAPPED if any(run.dropped for run in missed) else "requests failed"
