"""What a search for the highest rate found: its table, and its sentence among the findings."""

from collections.abc import Iterator, Sequence

from reports.caveats.run import ENOUGH
from reports.format import MISSING, digits
from reports.page.disclosures import disclosures, stand_in
from reports.page.grid import Runs, number, taints, typical
from reports.page.table import Cell, Notes, Table
from reports.study.study_reports import Study
from reports.topics.load.highest_rate import CAPPED, Search, searches, shortfall
from reports.topics.load.open_load import latency, latency_ms
from reports.topics.load.rate_search import Bound, find_bound, obstacle
from reports.topics.payloads.matrix import images_per_s

NONE_MET, NOT_KNOWN = "none met it", "not known"


def highest_rates(study: Study, bound: Bound) -> Table:
    """One row for each endpoint and batch that a rate was searched for."""
    notes = Notes()
    found = list(searches(study, bound))
    rows = tuple(_row(study, search, bound, notes) for search in found)
    name = f"{bound.percentile} ms"
    said = disclosures(study, (search.way.endpoint for search in found))
    return Table(
        f"Highest rate that meets {bound}",
        "Nothing failed, was dropped or is disqualified there; beside it the next rate that missed it.",
        ("endpoint", "batch", "rate/s", name, "images/s", "not met at", f"its {name}, or why", "runs made"),
        rows,
        notes.texts,
        numeric=frozenset({1, 2, 3, 4, 5, 6, 7}),
        shared=tuple(text for text in said if text not in notes.texts),
    )


def _row(study: Study, search: Search, bound: Bound, notes: Notes) -> tuple[Cell, ...]:
    said = stand_in(study, search.way.endpoint)
    head = (Cell(study.named(search.way), notes.marks([said] if said else [])), Cell(str(search.batch)))
    return (*head, *_met(search, bound, notes), *_missed(search, bound, notes), Cell(str(search.made)))


def _met(search: Search, bound: Bound, notes: Notes) -> tuple[Cell, ...]:
    if not search.met:
        return Cell(NONE_MET if search.missed else NOT_KNOWN), Cell(MISSING), Cell(MISSING)
    lower = [f"at the lower {rate:g}/s it was not met" for rate in search.below]
    rate = Cell(f"{search.met[0].level:g}", notes.marks(lower))
    return rate, latency(search.met, bound.percentile, notes), number(search.met, images_per_s, notes)


def _missed(search: Search, bound: Bound, notes: Notes) -> tuple[Cell, ...]:
    if search.missed:
        lower = [f"{NOT_KNOWN} below: {obstacle(search.unknown)}"] if search.unknown else []
        rate = Cell(f"{search.missed[0].level:g}", notes.marks(lower))
        return rate, Cell(shortfall(search.missed, bound), notes.marks(taints(search.missed)))
    if search.unknown:
        return Cell(NOT_KNOWN), Cell(obstacle(search.unknown), notes.marks(taints(search.unknown)))
    return Cell(MISSING, notes.marks(["no higher rate was tried"])), Cell(MISSING)


def rate_finding(study: Study) -> str:
    """The sentence of what a search found; empty where none was made."""
    bound = find_bound(study)
    found = list(searches(study, bound)) if bound else []
    if not bound or not found:
        return ""
    said = [_said(study.named(search.way), search, bound) for search in found]
    return f"Highest rate that meets {bound}: {'; '.join([*said, *_hedges(found, bound)])}."


def _said(name: str, search: Search, bound: Bound) -> str:
    higher = "; ".join(_higher(search, bound))
    batch = f"at batch {search.batch}"
    if not search.met:
        return f"{name} {'none' if search.missed else NOT_KNOWN} {batch} ({higher})"
    found_ms = typical(search.met, lambda run: latency_ms(run, bound.percentile)) or 0.0
    return f"{name} {search.met[0].level:g}/s {batch} ({digits(found_ms)} ms; {higher})"


def _higher(search: Search, bound: Bound) -> Iterator[str]:
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


def _hedges(found: Sequence[Search], bound: Bound) -> Iterator[str]:
    """What limits the whole sentence: rates that were run once, percentiles with too little behind them."""
    met: list[Runs] = [search.met for search in found if search.met]
    if any(len(runs) == 1 for runs in met):
        yield "a rate that was run once may meet it by chance"
    if any(run.succeeded < ENOUGH[bound.percentile] for runs in met for run in runs):
        yield f"some have fewer than the {ENOUGH[bound.percentile]:,} results that {bound.percentile} needs"
