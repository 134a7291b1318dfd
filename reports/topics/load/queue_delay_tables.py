"""The tables of a sweep of queue delays: what each did, which is best, and the sentence that says so."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from reports.caveats.run import ENOUGH
from reports.format import MISSING, digits, plural
from reports.page.disclosures import disclosures, stand_in
from reports.page.grid import Runs, Value, number, repeats, resting_on, taints
from reports.page.table import Cell, Notes, Table
from reports.stats.spread import hedge, spread_of
from reports.study.study_reports import Study
from reports.summary.summary import Summary
from reports.topics.load.open_load import latency
from reports.topics.load.queue_delay import Best, Setting, Sweep, p95_ms, sweeps
from reports.topics.payloads.matrix import images_per_s

HEADS = (
    *("endpoint", "batch", "load", "delay ms", "images/s", "p95 ms"),
    *("executed batch", "executions / requests"),
)
BEST_HEADS = (
    *("endpoint", "batch", "load", "most images/s with", "images/s", "p95 ms"),
    *("lowest p95 with", "p95 ms", "images/s"),
)
NOTHING_SOUND = "each delay is disqualified or has no success"
ONE_RUN = "one run"
MOST_SAID = 3
"""Loads that the finding names one by one."""


def bound_of(study: Study) -> float | None:
    """The p95 in ms that --p95-bound gave, if it did."""
    options: Mapping[str, Any] = study.header.get("options") or {}
    return options.get("p95_bound") or None


def queue_delays(study: Study) -> Table:
    """One row for each load and queue delay, where several were set."""
    notes = Notes()
    found = sweeps(study)
    rows = tuple(_row(study, sweep, setting, notes) for sweep in found for setting in sweep.settings)
    return Table(
        "Queue delay",
        "How long Triton lets a request wait for others to share an execution with, set for each run. "
        "Executed batch and executions are Triton's own count over the measure phase: images in an "
        "execution, and executions for each request, 1 where none was shared.",
        HEADS,
        rows,
        notes.texts,
        numeric=frozenset(range(1, len(HEADS))) - {2},
        shared=_shared(study, found, notes),
    )


def _row(study: Study, sweep: Sweep, setting: Setting, notes: Notes) -> tuple[Cell, ...]:
    return (
        *_head(study, sweep, notes),
        Cell(f"{setting.delay_us / 1000:.10g}"),
        _spread(setting.runs, images_per_s, notes),
        latency(setting.runs, "p95", notes),
        number(setting.runs, lambda run: run.executed_batch, notes),
        number(setting.runs, executions_per_request, notes),
    )


def executions_per_request(run: Summary) -> float | None:
    """Below 1 where requests shared executions."""
    return run.batch / run.executed_batch if run.executed_batch else None


def _spread(runs: Runs, value: Value, notes: Notes) -> Cell:
    """The median with the lowest and highest of the repeats."""
    behind = resting_on(runs, value)
    found = spread_of(behind, value)
    if found is None:
        return number(runs, value, notes)
    few = [f"few-samples: p95 needs {plural(ENOUGH['p95'], 'result')}"] if _scarce(value, behind) else []
    return Cell(str(found), notes.marks([*taints(behind), *few]), found.median)


def _scarce(value: Value, runs: Runs) -> bool:
    """Whether it is a p95 of too few results."""
    return value is p95_ms and min(run.succeeded for run in runs) < ENOUGH["p95"]


def _head(study: Study, sweep: Sweep, notes: Notes) -> tuple[Cell, ...]:
    said = stand_in(study, sweep.endpoint)
    load = f"{sweep.level:g}/s" if sweep.load == "open" else f"users {sweep.level:g}"
    return Cell(sweep.name, notes.marks([said] if said else [])), Cell(str(sweep.batch)), Cell(load)


def _shared(study: Study, found: tuple[Sweep, ...], notes: Notes) -> tuple[str, ...]:
    said = disclosures(study, (sweep.endpoint for sweep in found))
    return (repeats(study), *(text for text in said if text not in notes.texts))


def best_delays(study: Study) -> Table:
    """One row for each load: the queue delay with the most images/s, and the one with the lowest p95."""
    notes = Notes()
    found, bound = sweeps(study), bound_of(study)
    rows = tuple(_best_row(study, sweep, bound, notes) for sweep in found)
    within = f" The most images/s are of those that kept p95 at {bound:g} ms in each repeat." if bound else ""
    return Table(
        "Best queue delay",
        "Of those tested; what lies between them is not known. Disqualified runs are left out." + within,
        BEST_HEADS,
        rows,
        notes.texts,
        numeric=frozenset(range(1, len(BEST_HEADS))) - {2},
        shared=_shared(study, found, notes),
    )


def _best_row(study: Study, sweep: Sweep, bound: float | None, notes: Notes) -> tuple[Cell, ...]:
    fastest, quickest = sweep.fastest(bound), sweep.quickest()
    lacking = NOTHING_SOUND
    if quickest is not None:
        kept = f"none kept p95 at {bound:g} ms in each repeat" if bound else ""
        lacking = sweep.unranked or kept
    return (
        *_head(study, sweep, notes),
        *_named(fastest, (images_per_s, p95_ms), lacking, notes),
        *_named(quickest, (p95_ms, images_per_s), NOTHING_SOUND, notes),
    )


def _named(best: Best | None, values: tuple[Value, Value], lacking: str, notes: Notes) -> tuple[Cell, ...]:
    if best is None:
        return Cell(MISSING, notes.marks([lacking])), Cell(MISSING), Cell(MISSING)
    figures = (_spread(best.setting.runs, value, notes) for value in values)
    return Cell(best.setting.name, notes.marks([doubt] if (doubt := doubt_of(best)) else [])), *figures


def doubt_of(best: Best) -> str:
    """What repeats leave open; empty where they tell it from every other."""
    if not best.compared:
        return hedge(1)
    others = ", ".join(setting.name for setting in best.alike)
    return f"not told apart from {others}" if others else ""


def delay_finding(study: Study) -> str:
    """Which queue delay is best at which load; empty where only one was run."""
    found, bound = sweeps(study), bound_of(study)
    if not found:
        return ""
    busiest = sorted(found, key=lambda sweep: -sweep.level)[:MOST_SAID]
    named = [sweep for sweep in found if sweep in busiest]
    bests = [best for it in named for best in (it.fastest(bound), it.quickest()) if best]
    mixed = any(best.compared for best in bests)
    said = [_said(sweep, bound, mixed) for sweep in named]
    left = len(found) - len(said)
    more = f"; {plural(left, 'more load')} in the table" if left else ""
    return " ".join([f"Best queue delay of those tested: {'; '.join(said)}{more}.", *_hedges(bests)])


def _hedges(bests: Sequence[Best]) -> Iterator[str]:
    """What holds for many of the figures, said once."""
    if any(not best.compared for best in bests):
        yield f"{hedge(1).capitalize()}."
    fewest = min((run.succeeded for best in bests for run in best.setting.runs if run.started), default=0)
    if bests and fewest < ENOUGH["p95"]:
        yield f"p95 is of as few as {plural(fewest, 'result')}; it needs {ENOUGH['p95']}."


def _said(sweep: Sweep, bound: float | None, mixed: bool) -> str:
    where = f"{sweep.name} at {sweep.where}"
    fastest, quickest = sweep.fastest(bound), sweep.quickest()
    if quickest is None:
        return f"{where} not known ({NOTHING_SOUND})"
    lowest = f"{quickest.setting.name} ({_figure(quickest, p95_ms, 'ms', mixed)})"
    if sweep.unranked:
        return f"{where} lowest p95 with {lowest}"
    if fastest is None:
        return f"{where} none keeps p95 at {bound:g} ms, the lowest is with {lowest}"
    within = f"of those with p95 at most {bound:g} ms, " if bound else ""
    rate = _figure(fastest, images_per_s, "", mixed)
    most = f"{where} {within}most images/s with {fastest.setting.name} ({rate})"
    return most if bound else f"{most}, lowest p95 with {lowest}"


def _figure(best: Best, value: Value, unit: str, mixed: bool) -> str:
    """412, not told apart from 1 ms; where others have repeats (`mixed`), one run is said of each."""
    found = spread_of(resting_on(best.setting.runs, value), value)
    figure = f"{digits(found.median) if found else MISSING} {unit}".rstrip()
    doubt = doubt_of(best) if best.compared else ONE_RUN if mixed else ""
    return ", ".join(text for text in (figure, doubt) if text)
