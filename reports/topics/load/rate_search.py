"""The highest rate that meets a bound on latency: which runs met it, the table, and the sentence."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from reports.caveat import gravest
from reports.caveats.rate_bound import RateBound
from reports.format import MISSING, digits
from reports.page.question import Question, Theme
from reports.page.study_table import Columns, cell, number, study_table, text
from reports.page.table import Footnotes, Table, TableCell
from reports.stats.figures import images_per_s
from reports.stats.repeats import Runs, taints, typical
from reports.study.study import Study
from reports.summary.summary import Way, percentile_ms, tainting
from reports.topics.load.open_load import latency, open_cells

CAPPED = "as many as --max-in-flight allows were in use"
NONE_MET, NOT_KNOWN = "none met it", "not known"


def find_bound(study: Study) -> RateBound | None:
    """The bound in the header's options, such as `p99<=100`; None where no rate was searched for."""
    try:
        return RateBound.parse(str((study.header.get("options") or {}).get("find_rate") or ""))
    except ValueError:
        return None


def obstacle(unknown: Runs) -> str:
    """Why the runs at a rate are no evidence, the gravest reason alone: `failed at 83.5/s`."""
    why = gravest({code for run in unknown for code in tainting(run)})
    return f"{why or 'no latency is known'} at {unknown[0].level:g}/s"


@dataclass(frozen=True)
class SearchResult:
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


def searches(study: Study, bound: RateBound) -> Iterator[SearchResult]:
    """What was found for each way and batch that has runs with open load."""
    begun = ([run for run in runs if run.started] for runs in open_cells(study))
    rates = [runs for runs in begun if runs]
    for _, group in groupby(rates, key=lambda runs: (runs[0].way, runs[0].batch)):
        yield search(sorted(group, key=lambda runs: runs[0].level), bound)


def search(rates: list[Runs], bound: RateBound) -> SearchResult:
    """One search from the repeats of each rate, lowest rate first."""
    verdicts = [meets(runs, bound) for runs in rates]
    best = max((place for place, verdict in enumerate(verdicts) if verdict), default=-1)
    above = range(best + 1, len(rates))
    missed = next((place for place in above if verdicts[place] is False), None)
    first = rates[0][0]
    return SearchResult(
        way=first.way,
        batch=first.batch,
        met=evidence(rates[best], bound) if best >= 0 else [],
        missed=[] if missed is None else evidence(rates[missed], bound),
        unknown=rates[above[0]] if above and verdicts[above[0]] is None else [],
        below=tuple(rates[place][0].level for place in range(best) if verdicts[place] is False),
        made=sum(len(runs) for runs in rates),
    )


def evidence(runs: Runs, bound: RateBound) -> Runs:
    """The runs that tell something of the server."""
    return [run for run in runs if bound.met_by(run) is not None]


def meets(runs: Runs, bound: RateBound) -> bool | None:
    """Whether a rate met it: in every run of it that is evidence; None where none is."""
    judged = [bound.met_by(run) for run in evidence(runs, bound)]
    return all(judged) if judged else None


def shortfall(missed: Runs, bound: RateBound) -> str:
    """Why a rate did not meet the bound: its latency, or where that was within it, what went wrong."""
    found_ms = [percentile_ms(run, bound.percentile) or 0.0 for run in missed if bound.exceeded_by(run)]
    if found_ms:
        return digits(max(found_ms))
    return CAPPED if any(run.sent.dropped for run in missed) else "requests failed"


def highest_rates(study: Study, bound: RateBound) -> Table:
    """One row for each endpoint and batch that a rate was searched for."""
    name = f"{bound.percentile} ms"
    columns: Sequence[Columns[SearchResult]] = (
        cell("endpoint", lambda it, notes: notes.head(study.named(it.way), it.way.endpoint), numeric=False),
        text("batch", lambda it: str(it.batch)),
        Columns(("rate/s", name, "images/s"), lambda it, notes: _met(it, bound, notes)),
        Columns(("not met at", f"its {name}, or why"), lambda it, notes: _missed(it, bound, notes)),
        text("runs made", lambda it: str(it.made)),
    )
    return study_table(
        study,
        f"Highest rate that meets {bound}",
        "Nothing failed, was dropped or is disqualified there; beside it the next rate that missed it.",
        columns,
        searches(study, bound),
    )


def _met(search: SearchResult, bound: RateBound, notes: Footnotes) -> tuple[TableCell, ...]:
    if not search.met:
        return TableCell(NONE_MET if search.missed else NOT_KNOWN), TableCell(MISSING), TableCell(MISSING)
    lower = [f"at the lower {rate:g}/s it was not met" for rate in search.below]
    rate = TableCell(f"{search.met[0].level:g}", notes.marks(lower))
    return rate, latency(search.met, bound.percentile, notes), number(search.met, images_per_s, notes)


def _missed(search: SearchResult, bound: RateBound, notes: Footnotes) -> tuple[TableCell, ...]:
    if search.missed:
        lower = [f"{NOT_KNOWN} below: {obstacle(search.unknown)}"] if search.unknown else []
        rate = TableCell(f"{search.missed[0].level:g}", notes.marks(lower))
        return rate, TableCell(shortfall(search.missed, bound), notes.marks(taints(search.missed)))
    if search.unknown:
        return TableCell(NOT_KNOWN), TableCell(obstacle(search.unknown), notes.marks(taints(search.unknown)))
    return TableCell(MISSING, notes.marks(["no higher rate was tried"])), TableCell(MISSING)


def rate_finding(study: Study) -> str:
    """The sentence of what a search found; empty where none was made."""
    bound = find_bound(study)
    found = list(searches(study, bound)) if bound else []
    if not bound or not found:
        return ""
    said = [_said(study.named(search.way), search, bound) for search in found]
    return f"Highest rate that meets {bound}: {'; '.join([*said, *_hedges(found, bound)])}."


def _said(name: str, search: SearchResult, bound: RateBound) -> str:
    higher = "; ".join(_higher(search, bound))
    batch = f"at batch {search.batch}"
    if not search.met:
        return f"{name} {'none' if search.missed else NOT_KNOWN} {batch} ({higher})"
    found_ms = typical(search.met, lambda run: percentile_ms(run, bound.percentile)) or 0.0
    return f"{name} {search.met[0].level:g}/s {batch} ({digits(found_ms)} ms; {higher})"


def _higher(search: SearchResult, bound: RateBound) -> Iterator[str]:
    """What became of the rates above the highest that met the bound, or of all where none did."""
    if search.missed:
        even = "" if search.met or search.unknown else "even "
        capped = f": {CAPPED}" if shortfall(search.missed, bound) == CAPPED else ""
        yield f"{even}{search.missed[0].level:g}/s did not{capped}"
    if search.unknown and search.missed:
        yield f"{NOT_KNOWN} {'between' if search.met else 'below'}: {obstacle(search.unknown)}"
    elif search.unknown:
        yield f"{NOT_KNOWN} above: {obstacle(search.unknown)}" if search.met else obstacle(search.unknown)
    elif not search.missed:
        yield "no higher rate was tried"


def _hedges(found: Sequence[SearchResult], bound: RateBound) -> Iterator[str]:
    """What limits the whole sentence: rates that were run once, percentiles with too little behind them."""
    met: list[Runs] = [search.met for search in found if search.met]
    if any(len(runs) == 1 for runs in met):
        yield "a rate that was run once may meet it by chance"
    if any(run.succeeded < bound.results for runs in met for run in runs):
        yield f"some have fewer than the {bound.results:,} results that {bound.percentile} needs"


RATE_SEARCH = Question(
    name="rate-search",
    section="Results",
    place=5,
    shows=lambda study: [highest_rates(study, bound)] if (bound := find_bound(study)) else [],
    finds=rate_finding,
    theme=Theme.SPEED,
)
