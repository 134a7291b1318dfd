"""Open load: what was asked for, what was offered, how long it took, and the highest rate that was kept."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from reports.caveats.run import ENOUGH
from reports.format import MISSING, counted, digits, known, plural
from reports.page.question import Question, Theme
from reports.page.study_table import ENDPOINT, Columns, cell, figure, measured, number, study_table, text
from reports.page.table import Footnotes, Table, TableCell
from reports.stats.figures import images_per_s
from reports.stats.repeats import Runs, Value, by_cell, repeats, resting_on, typical
from reports.study.study import Study
from reports.summary.summary import Summary, Way, percentile_ms

Rates = Sequence[Runs]
"""The repeats of each rate, lowest rate first."""


def open_cells(study: Study) -> list[Runs]:
    """The repeats of each cell with open load at one rate but floors, by endpoint, batch, arrivals, rate."""
    runs = [run for run in study.runs if run.load == "open" and not run.is_floor and not run.profile]
    return sorted(by_cell(runs).values(), key=lambda runs: _place(study, runs[0]))


def _place(study: Study, run: Summary) -> tuple[int, int, str, float]:
    return study.ways.index(run.way), run.batch, run.arrivals, run.level


def latency(runs: Runs, percentile: str, notes: Footnotes, spread: bool = False) -> TableCell:
    """A percentile in milliseconds, with a `spread` its lowest and highest over the repeats too.

    Marked for disqualified runs and for too few results behind it.
    """

    def value(run: Summary) -> float | None:
        return percentile_ms(run, percentile)

    cell = (measured if spread else number)(runs, value, notes)
    behind = [run.succeeded for run in resting_on(runs, value)]
    if min(behind, default=0) >= ENOUGH[percentile] or cell.value is None:
        return cell
    few = f"few-samples: {percentile} needs {plural(ENOUGH[percentile], 'result')}"
    return replace(cell, marks=tuple(sorted({*cell.marks, *notes.marks([few])})))


def _percentile(name: str) -> Columns[Runs]:
    return cell(f"{name} ms", lambda runs, notes: latency(runs, name, notes))


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
    *map(_percentile, ("p50", "p95", "p99")),
    _count("late", lambda run: run.sent.late),
    _count("dropped", lambda run: run.sent.dropped),
)


def open_load(study: Study) -> Table:
    """One row for each cell with open load, medians over its repeats."""
    return study_table(
        study,
        "Open load",
        "Requests are sent at a rate, whatever becomes of them; latency counts from the intended start.",
        COLUMNS,
        open_cells(study),
        shared=(repeats(study),),
    )


def open_finding(study: Study) -> str:
    """What was found of each endpoint, batch and kind of arrivals; empty where no open load was begun."""
    begun = ([run for run in runs if run.started] for runs in open_cells(study))
    cells = [runs for runs in begun if runs]
    ways = [list(group) for _, group in groupby(cells, key=lambda runs: _way(runs[0]))]
    if not ways:
        return ""
    said = [f"{_name(study, rates[0][0], cells)} {_said(rates)}" for rates in ways]
    return f"Open load: {'; '.join([*said, *_hedges([kept for rates in ways if (kept := _kept(rates))])])}."


def _way(run: Summary) -> tuple[Way, int, str]:
    return run.way, run.batch, run.arrivals


def _name(study: Study, run: Summary, cells: Rates) -> str:
    """The endpoint, with its batch and arrivals where the study has several."""
    batch = f" at batch {run.batch}" if len({runs[0].batch for runs in cells}) > 1 else ""
    arrivals = f" with {run.arrivals} arrivals" if len({runs[0].arrivals for runs in cells}) > 1 else ""
    return f"{study.named(run.way)}{batch}{arrivals}"


def _said(rates: Rates) -> str:
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
    name = percentile(clean)
    found_ms = typical(clean, lambda run: percentile_ms(run, name)) or 0.0
    return f"kept {clean[0].level:g}/s{some} ({name} {digits(found_ms)} ms)"


def _kept(rates: Rates) -> Runs:
    """The runs that nothing disqualifies at the highest rate that has one; none where no rate has."""
    clean = [[run for run in runs if not run.tainted] for runs in rates]
    return next((runs for runs in reversed(clean) if runs), [])


def percentile(runs: Runs) -> str:
    """p99, or p95 where a run has too few results for it."""
    return "p99" if min(run.succeeded for run in runs) >= ENOUGH["p99"] else "p95"


def _rate(runs: Runs) -> str:
    spoilt = sum(run.tainted for run in runs)
    return f"{runs[0].level:g}/s" + ("" if spoilt == len(runs) else f" in {spoilt} of {len(runs)} runs")


def _reasons(runs: Runs) -> str:
    """The codes of what disqualifies some runs; for one that did not end well, how it ended says enough."""
    codes = (
        [run.status] if run.status != "done" else [caveat.code for caveat in run.caveats if caveat.tainted]
        for run in runs
    )
    return ", ".join(dict.fromkeys(code for of_run in codes for code in of_run))


def _hedges(kept: Rates) -> Iterator[str]:
    """What limits the whole sentence: rates that were run once, percentiles with too little behind them."""
    if any(len(runs) == 1 for runs in kept):
        yield "a rate that was run once may be kept by chance"
    if any(run.succeeded < ENOUGH["p95"] for runs in kept for run in runs):
        yield f"some have fewer than the {ENOUGH['p95']} results that p95 needs"


OPEN_LOAD = Question(
    name="open-load",
    section="Results",
    place=6,
    shows=lambda study: [open_load(study)],
    finds=open_finding,
    theme=Theme.SPEED,
    unless=("rate-search",),
)
