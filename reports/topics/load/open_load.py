"""Open-loop load: what was offered, how long it took, which rate was kept, what a search for one found."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from reports.caveat import gravest
from reports.caveats.rate_bound import RateBound
from reports.caveats.run import ENOUGH
from reports.format import MISSING, counted, known, milliseconds
from reports.page.answer import answered
from reports.page.question import Question, Theme
from reports.page.study_table import (
    ENDPOINT,
    Columns,
    cell,
    figure,
    number,
    percentile,
    percentile_cell,
    study_table,
    text,
)
from reports.page.table import Footnotes, Table, TableCell
from reports.stats.figures import images_per_s
from reports.stats.repeats import Runs, Value, by_cell, taints, typical
from reports.study.study import Study
from reports.summary.summary import Summary, Way, percentile_ms, tainting

CAPPED = "--max-in-flight was reached"
NONE_MET, NOT_KNOWN = "none met it", "not known"
Rates = Sequence[Runs]
"""The repeats of each rate, lowest rate first."""


def open_cells(study: Study) -> list[Runs]:
    """The repeats of each open-loop cell at one rate but floors, by endpoint, batch, arrivals, rate."""
    runs = [run for run in study.runs if run.load == "open" and not run.is_floor and not run.profile]
    return list(by_cell(study.ordered(runs, lambda run: (*_kind(run), run.level))).values())


def _kind(run: Summary) -> tuple[Way, int, str]:
    return run.way, run.batch, run.arrivals


def begun_cells(study: Study) -> list[Runs]:
    """The same without runs that were not begun."""
    begun = ([run for run in runs if run.started] for runs in open_cells(study))
    return [runs for runs in begun if runs]


def _count(head: str, value: Value) -> Columns[Runs]:
    def shown(runs: Runs) -> str:
        found = typical(runs, value)
        return counted(None if found is None else round(found))

    return text(head, shown)


COLUMNS: Sequence[Columns[Runs]] = (
    ENDPOINT,
    text("batch", lambda runs: str(runs[0].batch)),
    text("arrivals", lambda runs: runs[0].arrivals or MISSING, numeric=False),
    text("asked/s", lambda runs: f"{runs[0].level:g}"),
    text("offered/s", lambda runs: known(typical(runs, lambda run: run.sent.offered_per_s))),
    figure("images/s", images_per_s),
    *map(percentile, ("p50", "p95", "p99")),
    _count("late", lambda run: run.sent.late),
    _count("dropped", lambda run: run.sent.dropped),
)


def open_load(study: Study) -> Table:
    """One row for each cell with open-loop load, medians over its repeats."""
    return study_table(
        study,
        "Open-loop load",
        "Requests are sent at a fixed rate, however slow the replies; latency counts from the intended "
        "start.",
        COLUMNS,
        open_cells(study),
    )


def open_finding(study: Study) -> str:
    """What was found of each endpoint, batch and kind of arrivals; empty where none was begun."""
    cells = begun_cells(study)
    if not cells:
        return ""
    ways = [list(group) for _, group in groupby(cells, key=lambda runs: _kind(runs[0]))]
    said = [f"{_name(study, rates[0][0], cells)} {_rates_said(rates)}" for rates in ways]
    kept = [runs for rates in ways if (runs := _kept(rates))]
    return f"{'; '.join([*said, *_hedges(kept, 'be kept', 'p95')])}."


def _name(study: Study, run: Summary, cells: Rates) -> str:
    """The endpoint, with its batch and arrivals where the study has several."""
    batch = f" at batch {run.batch}" if len({runs[0].batch for runs in cells}) > 1 else ""
    arrivals = f" with {run.arrivals} arrivals" if len({runs[0].arrivals for runs in cells}) > 1 else ""
    return f"{study.named(run.way)}{batch}{arrivals}"


def _rates_said(rates: Rates) -> str:
    """What was kept, and what was not for which reason: `kept 60/s (p99 24.1 ms); not 100/s (failed)`."""
    spoilt = [(runs, _reasons(runs)) for runs in rates if any(run.tainted for run in runs)]
    groups = groupby(spoilt, key=lambda found: found[1])
    missed = (f"{' and '.join(_rate(runs) for runs, _ in group)} ({why})" for why, group in groups)
    return "; not ".join(part for part in (_best(rates), ", ".join(missed)) if part)


def _best(rates: Rates) -> str:
    if not (clean := _kept(rates)):
        return "kept none"
    whole = next(runs for runs in rates if runs[0].cell == clean[0].cell)
    some = "" if len(clean) == len(whole) else f" in {len(clean)} of {len(whole)} runs"
    name = "p99" if min(run.succeeded for run in clean) >= ENOUGH["p99"] else "p95"
    found_ms = typical(clean, lambda run: percentile_ms(run, name)) or 0.0
    return f"kept {clean[0].level:g}/s{some} ({name} {milliseconds(found_ms)} ms)"


def _kept(rates: Rates) -> Runs:
    """The runs that nothing invalidates at the highest rate that has one; none where no rate has."""
    clean = [[run for run in runs if not run.tainted] for runs in rates]
    return next((runs for runs in reversed(clean) if runs), [])


def _rate(runs: Runs) -> str:
    spoilt = sum(run.tainted for run in runs)
    return f"{runs[0].level:g}/s" + ("" if spoilt == len(runs) else f" in {spoilt} of {len(runs)} runs")


def _reasons(runs: Runs) -> str:
    """The codes of what invalidates some runs; for one that did not end well, how it ended says enough."""
    codes = (
        [run.status] if run.status != "done" else [caveat.code for caveat in run.caveats if caveat.tainted]
        for run in runs
    )
    return ", ".join(dict.fromkeys(code for of_run in codes for code in of_run))


def _hedges(kept: Rates, done: str, percentile: str) -> Iterator[str]:
    """What limits the whole sentence: rates that were run once, percentiles with too little behind them."""
    if any(len(runs) == 1 for runs in kept):
        yield f"a rate that was run once may {done} by chance"
    if any(run.succeeded < ENOUGH[percentile] for runs in kept for run in runs):
        yield f"some have fewer than the {ENOUGH[percentile]:,} results that {percentile} needs"


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
    """What was found for each way and batch that has runs with open-loop load."""
    for _, group in groupby(begun_cells(study), key=lambda runs: (runs[0].way, runs[0].batch)):
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
        return milliseconds(max(found_ms))
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
        Columns(("rate/s", name, "images/s"), lambda it, notes: _met(it, bound, notes)),
        Columns(("not met at", f"its {name}, or why"), lambda it, notes: _missed(it, bound, notes)),
        text("runs made", lambda it: str(it.made)),
    )
    return study_table(
        study,
        f"Highest rate that meets {bound}",
        "At this rate nothing failed, was dropped or was invalidated; beside it, the next rate that missed "
        "the bound.",
        columns,
        searches(study, bound),
    )


def _met(search: SearchResult, bound: RateBound, notes: Footnotes) -> tuple[TableCell, ...]:
    if not search.met:
        return (TableCell(NONE_MET if search.missed else NOT_KNOWN),)
    lower = [f"at the lower {rate:g}/s it was not met" for rate in search.below]
    rate = TableCell(f"{search.met[0].level:g}", notes.marks(lower))
    return rate, percentile_cell(search.met, bound.percentile, notes), number(search.met, images_per_s, notes)


def _missed(search: SearchResult, bound: RateBound, notes: Footnotes) -> tuple[TableCell, ...]:
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
    said = [_said(study.named(search.way), search, bound) for search in found]
    met = [search.met for search in found if search.met]
    return f"With {bound}: {'; '.join([*said, *_hedges(met, 'meet it', bound.percentile)])}."


def _said(name: str, search: SearchResult, bound: RateBound) -> str:
    higher = "; ".join(_higher(search, bound))
    batch = f"at batch {search.batch}"
    if not search.met:
        return f"{name} {'none' if search.missed else NOT_KNOWN} {batch} ({higher})"
    found_ms = typical(search.met, lambda run: percentile_ms(run, bound.percentile)) or 0.0
    return f"{name} {search.met[0].level:g}/s {batch} ({milliseconds(found_ms)} ms; {higher})"


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


RATE_SEARCH = Question(
    "rate-search", "Results", (highest_rates,), answered("Highest rate", rate_finding), Theme.SPEED, place=5
)
OPEN_LOAD = Question(
    "open-load",
    "Results",
    (open_load,),
    answered("Rates kept", open_finding),
    Theme.SPEED,
    unless=("rate-search",),
    place=6,
)
