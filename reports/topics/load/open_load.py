"""Open-loop load: what was offered, how long it took, which rate was kept."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from reports.format import MISSING, counted, known, milliseconds
from reports.histogram.percentiles import ENOUGH
from reports.page.answer import answered
from reports.page.question import Question, Theme
from reports.page.study_table import (
    ENDPOINT,
    Columns,
    figure,
    percentile,
    study_table,
    text,
)
from reports.page.table import Table
from reports.stats.figures import images_per_s
from reports.stats.percentiles import pooled
from reports.stats.repeats import Runs, Value, by_cell, typical
from reports.study.study import Study
from reports.summary.batch import Batch, batch_of
from reports.summary.summary import Summary, Way

Rates = Sequence[Runs]
"""The repeats of each rate, lowest rate first."""


def open_cells(study: Study) -> list[Runs]:
    """The repeats of each open-loop cell at one rate but floors, by endpoint, batch, arrivals, rate."""
    runs = [run for run in study.runs if run.load == "open" and not run.is_floor and not run.profile]
    return list(by_cell(study.ordered(runs, lambda run: (*_kind(run), run.level))).values())


def _kind(run: Summary) -> tuple[Way, Batch, str]:
    return run.way, batch_of(run), run.arrivals


def begun_cells(study: Study) -> list[Runs]:
    """The same without runs that were not begun."""
    begun = ([run for run in runs if run.started] for runs in open_cells(study))
    return [runs for runs in begun if runs]


def count(head: str, value: Value) -> Columns[Runs]:
    """A column of what runs count, such as late arrivals."""

    def shown(runs: Runs) -> str:
        found = typical(runs, value)
        return counted(None if found is None else round(found))

    return text(head, shown)


COLUMNS: Sequence[Columns[Runs]] = (
    ENDPOINT,
    text("batch", lambda runs: str(batch_of(runs[0]))),
    text("arrivals", lambda runs: runs[0].arrivals or MISSING, numeric=False),
    text("asked/s", lambda runs: f"{runs[0].level:g}"),
    text("offered/s", lambda runs: known(typical(runs, lambda run: run.sent.offered_per_s))),
    figure("images/s", images_per_s),
    *map(percentile, ("p50", "p95", "p99")),
    count("late", lambda run: run.sent.late),
    count("dropped", lambda run: run.sent.dropped),
)


def open_load(study: Study) -> Table:
    """One row for each cell with open-loop load."""
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
    said = [f"{_name(study, rates[0][0], cells)} {_rates_said(study, rates)}" for rates in ways]
    kept = [runs for rates in ways if (runs := _kept(rates))]
    return f"{'; '.join([*said, *_hedges(kept)])}."


def _name(study: Study, run: Summary, cells: Rates) -> str:
    """The endpoint, with its batch and arrivals where the study has several."""
    batch = f" at batch {batch_of(run)}" if len({batch_of(runs[0]) for runs in cells}) > 1 else ""
    arrivals = f" with {run.arrivals} arrivals" if len({runs[0].arrivals for runs in cells}) > 1 else ""
    return f"{study.named(run.way)}{batch}{arrivals}"


def _rates_said(study: Study, rates: Rates) -> str:
    """What was kept, and what was not for which reason: `kept 60/s (p99 24.1 ms); not 100/s (failed)`."""
    spoilt = [(runs, _reasons(runs)) for runs in rates if any(run.tainted for run in runs)]
    groups = groupby(spoilt, key=lambda found: found[1])
    missed = (f"{' and '.join(_rate(runs) for runs, _ in group)} ({why})" for why, group in groups)
    return "; not ".join(part for part in (_best(study, rates), ", ".join(missed)) if part)


def _best(study: Study, rates: Rates) -> str:
    if not (clean := _kept(rates)):
        return "kept none"
    whole = next(runs for runs in rates if runs[0].cell == clean[0].cell)
    some = "" if len(clean) == len(whole) else f" in {len(clean)} of {len(whole)} runs"
    names = ("p99", "p95", "p50") if sum(run.succeeded for run in clean) >= ENOUGH["p99"] else ("p95", "p50")
    latencies = ((name, pooled(study, clean, name)) for name in names)
    told = (f" ({name} {milliseconds(found.value)} ms)" for name, found in latencies if found)
    return f"kept {clean[0].level:g}/s{some}{next(told, '')}"


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


def _hedges(kept: Rates) -> Iterator[str]:
    """What limits the whole sentence: rates that were run once, percentiles with too little behind them."""
    if any(len(runs) == 1 for runs in kept):
        yield "a rate that was run once may be kept by chance"
    if any(sum(run.succeeded for run in runs) < ENOUGH["p95"] for runs in kept):
        yield f"some have fewer than the {ENOUGH['p95']:,} results that p95 needs"


OPEN_LOAD = Question(
    "open-load",
    "Results",
    (open_load,),
    answered("Rates kept", open_finding),
    Theme.SPEED,
    unless=("rate-search", "interference", "split", "replay"),
    place=6,
)
