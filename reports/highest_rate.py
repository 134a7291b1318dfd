"""The highest rate that meets a bound on latency, from the runs of a search for it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from reports.format import digits
from reports.grid import Runs
from reports.open_table import latency_ms, open_cells
from reports.study import Study
from reports.summary import Summary

_BOUND = re.compile(r"\s*(p50|p90|p95|p99|p99\.9)\s*<=\s*(\d+(?:\.\d+)?)\s*(?:ms)?\s*")


@dataclass(frozen=True)
class Bound:
    """What was asked of every rate: a percentile of latency at or below some milliseconds."""

    percentile: str
    limit_ms: float

    def __str__(self) -> str:
        return f"{self.percentile} ≤ {self.limit_ms:g} ms"

    def met_by(self, run: Summary) -> bool:
        """Whether a run met it: nothing disqualifies it, nothing failed, nothing was left out."""
        found_ms = latency_ms(run, self.percentile)
        whole = not (run.tainted or run.failures or run.dropped)
        return whole and found_ms is not None and found_ms <= self.limit_ms


@dataclass(frozen=True)
class Search:
    """What a search found for one endpoint and batch.

    `met` are the runs at the highest rate that met the bound, empty where none did, and `missed` those at the
    lowest rate above it, empty where none was tried. `below` are the lower rates that did not meet it.
    """

    endpoint: str
    batch: int
    met: Runs
    missed: Runs
    below: tuple[float, ...]
    made: int


def find_bound(study: Study) -> Bound | None:
    """The bound in the header's options, such as `p99<=100`; None where no rate was searched for."""
    asked = (study.header.get("options") or {}).get("find_rate") or ""
    found = _BOUND.fullmatch(str(asked))
    return Bound(found[1], float(found[2])) if found else None


def searches(study: Study, bound: Bound) -> Iterator[Search]:
    """What was found for each endpoint and batch that has runs with open load."""
    begun = ([run for run in runs if run.started] for runs in open_cells(study))
    rates = [runs for runs in begun if runs]
    for _, group in groupby(rates, key=lambda runs: (runs[0].endpoint, runs[0].batch)):
        yield search(sorted(group, key=lambda runs: runs[0].level), bound)


def search(rates: list[Runs], bound: Bound) -> Search:
    """One search from the repeats of each rate, lowest rate first."""
    good = [runs for runs in rates if meets(runs, bound)]
    met = good[-1] if good else []
    above = [runs for runs in rates if not met or runs[0].level > met[0].level]
    below = (runs[0].level for runs in rates if met and runs[0].level < met[0].level and runs not in good)
    first = rates[0][0]
    return Search(
        endpoint=first.endpoint,
        batch=first.batch,
        met=met,
        missed=above[0] if above else [],
        below=tuple(below),
        made=sum(len(runs) for runs in rates),
    )


def meets(runs: Runs, bound: Bound) -> bool:
    """Whether a rate met it: in every run of it, save those that something else than the server spoilt."""
    judged = [run for run in runs if not run.tainted or run.failures or run.dropped]
    return bool(judged) and all(bound.met_by(run) for run in judged)


def shortfall(runs: Runs, bound: Bound) -> str:
    """Why a rate did not meet the bound: its latency, or where that was within it, what disqualifies it."""
    found_ms = [value for run in runs if (value := latency_ms(run, bound.percentile)) is not None]
    if found_ms and max(found_ms) > bound.limit_ms:
        return digits(max(found_ms))
    codes = dict.fromkeys(doubt.code for run in runs for doubt in run.caveats if doubt.tainted)
    return ", ".join(codes) or "no request succeeded"
