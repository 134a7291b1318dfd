"""The search for the highest rate that keeps a bound: what it found, how sure that is, what confirmed it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import inf, isfinite

from reports.caveat import gravest
from reports.caveats.rate_bound import RateBound, rate_bound
from reports.format import MISSING, milliseconds, plural
from reports.page.answer import answered
from reports.page.question import Question, Theme
from reports.page.study_table import Columns, StudyNotes, cell, measured, study_table, text
from reports.page.table import Table, TableCell
from reports.stats.figures import images_per_s
from reports.stats.highest_rate import CONFIRMATIONS, RateTried, highest_rate, interval_said, told
from reports.stats.percentiles import pooled
from reports.stats.repeats import Runs, taints
from reports.study.study import Study
from reports.summary.batch import Batch, batch_of
from reports.summary.summary import Way, tainting
from reports.topics.load.open_load import begun_cells

CAPPED = "--max-in-flight was reached"
NONE_MET, NOT_KNOWN, NOT_CONFIRMED, NOT_REACHED = "none met it", "not known", "not confirmed", "not reached"


def find_bound(study: Study) -> RateBound | None:
    """The bound in the header's options, such as `p99<=100`; None where no rate was searched for."""
    options = study.header.get("options") or {}
    try:
        return rate_bound(*(str(options.get(name) or "") for name in ("find_rate", "slo")))
    except ValueError:
        return None


def obstacle(unknown: Runs) -> str:
    """Why the runs at a rate are no evidence, the gravest reason alone: `failed at 83.5/s`."""
    why = gravest({code for run in unknown for code in tainting(run)})
    return f"{why or 'too few requests'} at {unknown[0].level:g}/s"


@dataclass(frozen=True)
class SearchResult:
    """What a search found for one way to the model and batch.

    `met` are the runs at the answer, empty where none is: the confirming runs where a rate is `confirmed`,
    else the runs at the highest rate that met the bound. `missed` are those at the lowest rate above it that
    did not, both without runs that are no evidence. `unknown` are the runs at the lowest rate above
    `met` that no run met, where they are no evidence. `below` are lower rates that did not meet it, where
    none is confirmed. `within` has the highest rate in 95 %; None where all runs met the bound or none did.
    Where the highest rate that was tried met the bound, the search did not reach it: nothing is confirmed.
    """

    way: Way
    batch: Batch
    met: Runs
    confirmed: bool
    within: tuple[float, float] | None
    missed: Runs
    unknown: Runs
    below: tuple[float, ...]
    made: int


def searches(study: Study, bound: RateBound) -> Iterator[SearchResult]:
    """What was found for each way and batch that has runs with open-loop load."""
    for (way, batch), group in groupby(begun_cells(study), key=_searched):
        rates = sorted(group, key=lambda runs: runs[0].level)
        cells = {runs[0].cell for runs in rates}
        made = [run for run in study.started if _searched([run]) == (way, batch) and run.cell in cells]
        yield search(rates, made, bound)


def _searched(runs: Runs) -> tuple[Way, Batch]:
    return runs[0].way, batch_of(runs[0])


def search(rates: list[Runs], made: Runs, bound: RateBound) -> SearchResult:
    """One search from the repeats of each rate, lowest rate first, and from its runs as they were made."""
    verdicts = [(runs, meets(runs, bound)) for runs in rates]
    highest = evidence(next((runs for runs, kept in reversed(verdicts) if kept), []), bound)
    reached = not highest or any(runs[0].level > highest[0].level for runs in rates)
    confirmed = confirming(rates, bound) if reached else []
    met = confirmed or highest
    at = met[0].level if met else 0.0
    above = [(runs, kept) for runs, kept in verdicts if runs[0].level > at and not kept]
    lower = [runs[0].level for runs, kept in verdicts if runs[0].level < at and kept is False]
    return SearchResult(
        way=made[0].way,
        batch=batch_of(made[0]),
        met=met,
        confirmed=bool(confirmed),
        within=within(made, confirmed, bound),
        missed=next((evidence(runs, bound) for runs, kept in above if kept is False), []),
        unknown=above[0][0] if above and above[0][1] is None else [],
        below=() if confirmed else tuple(lower),
        made=len(made),
    )


def confirming(rates: list[Runs], bound: RateBound) -> Runs:
    """The runs that confirmed a rate: enough of them, none of which missed the bound; empty without any."""
    each = ([run for run in evidence(runs, bound) if run.confirming] for runs in reversed(rates))
    enough = (runs for runs in each if len(runs) >= CONFIRMATIONS)
    return next((runs for runs in enough if meets(runs, bound)), [])


def within(made: Runs, confirmed: Runs, bound: RateBound) -> tuple[float, float] | None:
    """Where the highest rate lies in 95 %; a rate that was confirmed is never below it.

    None where all runs met the bound or none did: then nothing limits it on one side.
    """
    known = told([RateTried(run.level, bound.met_by(run), run.confirming) for run in made])
    if len({run.met for run in known}) < len((True, False)):
        return None
    low, high = highest_rate(known).interval
    if not low and high == inf:
        return None
    return min([low, *(run.level for run in confirmed)]), high


def evidence(runs: Runs, bound: RateBound) -> Runs:
    """The runs that tell something of the server."""
    return [run for run in runs if bound.met_by(run) is not None]


def meets(runs: Runs, bound: RateBound) -> bool | None:
    """Whether a rate met it: in every run of it that is evidence; None where none is."""
    judged = [bound.met_by(run) for run in evidence(runs, bound)]
    return all(judged) if judged else None


def shortfall(missed: Runs, bound: RateBound) -> str:
    """Why a rate did not meet the bound: its latency, or where that was within it, what went wrong."""
    if exceeding := [run for run in missed if bound.exceeded_by(run)]:
        return bound.worst(exceeding)
    return CAPPED if any(run.sent.dropped for run in missed) else "requests failed"


def highest_rates(study: Study) -> Table | None:
    """One row for each endpoint and batch that a rate was searched for; None without a search."""
    bound = find_bound(study)
    if bound is None:
        return None
    name = f"{bound.percentile} ms"
    columns: Sequence[Columns[SearchResult]] = (
        cell("endpoint", lambda it, _: TableCell(study.named(it.way)), numeric=False),
        text("batch", lambda it: str(it.batch)),
        Columns(("rate/s", name, "images/s", "confirmed by"), lambda it, notes: _met(it, bound, notes)),
        Columns(("not met at", f"its {name}, or why"), lambda it, notes: _missed(it, bound, notes)),
        text("runs made", lambda it: str(it.made)),
    )
    return study_table(
        study,
        f"Highest rate that meets {bound}",
        f"At this rate {bound.allows}. In brackets: where the highest rate "
        f"that meets the bound lies, 95 %. {bound.percentile} is of the runs that confirmed the rate: that "
        "of a run that was chosen because it met the bound would be too low.",
        columns,
        searches(study, bound),
    )


def _met(search: SearchResult, bound: RateBound, notes: StudyNotes) -> tuple[TableCell, ...]:
    if not search.met:
        return (TableCell(NONE_MET if search.missed else NOT_KNOWN),)
    lower = [f"at the lower {rate:g}/s it was not met" for rate in search.below]
    level = search.met[0].level
    told_rate = f"{level:g}" + (f" ({interval_said(level, *search.within)})" if search.within else "")
    rate, images = TableCell(told_rate, notes.marks(lower)), measured(search.met, images_per_s, notes)
    if not search.confirmed:
        return rate, TableCell(MISSING), images, TableCell(_unconfirmed(search))
    found = latency_said(notes.study, search, bound)
    return (
        rate,
        TableCell(found, notes.marks(taints(search.met))),
        images,
        TableCell(_confirmed_by(search.met)),
    )


def latency_said(study: Study, search: SearchResult, bound: RateBound, unit: str = "") -> str:
    """The percentile of all results of the confirming runs together, with its interval: 88 ms (81–97)."""
    found = pooled(study, search.met, bound.percentile)
    return found.said(milliseconds, unit) if found else MISSING


def _confirmed_by(runs: Runs) -> str:
    return f"{plural(len(runs), 'run')} of {min(run.succeeded for run in runs):,} requests"


def _unconfirmed(search: SearchResult) -> str:
    number = len(search.met)
    if not search.missed and not search.unknown:
        return f"{NOT_REACHED}: {search.met[0].level:g}/s met it"
    return f"{NOT_CONFIRMED}: {'one run' if number == 1 else f'{number} runs'} met it"


def _missed(search: SearchResult, bound: RateBound, notes: StudyNotes) -> tuple[TableCell, ...]:
    if search.missed:
        lower = [f"{NOT_KNOWN} below: {obstacle(search.unknown)}"] if search.unknown else []
        rate = TableCell(f"{search.missed[0].level:g}", notes.marks(lower))
        return rate, TableCell(shortfall(search.missed, bound), notes.marks(taints(search.missed)))
    if search.unknown:
        return TableCell(NOT_KNOWN), TableCell(obstacle(search.unknown), notes.marks(taints(search.unknown)))
    return (TableCell(MISSING, notes.marks(["no higher rate was tried"])),)


def rate_finding(study: Study) -> str:
    """The sentence of what a search found; empty where none was made."""
    bound = find_bound(study)
    found = list(searches(study, bound)) if bound else []
    if not bound or not found:
        return ""
    return f"With {bound}: {'; '.join(_said(study, search, bound) for search in found)}."


def _said(study: Study, search: SearchResult, bound: RateBound) -> str:
    name, batch = study.named(search.way), f"at batch {search.batch}"
    higher = "; ".join(_higher(search, bound))
    if not search.met:
        return f"{name} {'none' if search.missed else NOT_KNOWN} {batch} ({higher})"
    rate = f"{search.met[0].level:g}/s"
    if not search.confirmed:
        reached = f" at {rate}" if search.missed or search.unknown else ""
        return f"{name} {batch} {_unconfirmed(search)}{reached} ({higher})"
    latency = f"{bound.percentile} {latency_said(study, search, bound, ' ms')}"
    return f"{name} {rate} {batch}, confirmed by {_confirmed_by(search.met)}: {latency} ({higher})"


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
    if search.met and search.within:
        within = interval_said(search.met[0].level, *search.within, unit="/s")
        both = search.within[0] and isfinite(search.within[1])
        yield f"the highest is {'within ' if both else ''}{within}, 95 %"


RATE_SEARCH = Question(
    "rate-search", "Results", (highest_rates,), answered("Highest rate", rate_finding), Theme.SPEED, place=5
)
