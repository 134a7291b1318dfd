"""How long a server should let requests wait for others: what each queue delay did, and which is best."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import inf

from reports.fold.records import ratio
from reports.format import MISSING, digits, milliseconds, plural
from reports.histogram.percentiles import ENOUGH
from reports.ledger.axes import delay_name
from reports.page.answer import answered
from reports.page.question import Question, Theme
from reports.page.study_table import (
    Columns,
    StudyNotes,
    Thing,
    cell,
    figure,
    lacking,
    measured,
    percentile,
    study_table,
    text,
)
from reports.page.table import Table, TableCell
from reports.stats.failures import ranks
from reports.stats.figures import images_per_s, p95_ms, told_from_best
from reports.stats.paired import LEAST_REPEATS, NOT_SIGNIFICANT
from reports.stats.percentiles import CellFigure, behind, estimated
from reports.stats.repeats import Runs, Value, grouped, hedge, resting_on
from reports.study.study import Study
from reports.summary.batch import batch_of, images_per_request
from reports.summary.summary import Summary

NOTHING_SOUND = "each delay is invalidated or has no success"
UNCOMPARED = f"not compared: fewer than {LEAST_REPEATS} repeats have the figure at both delays"
MOST_SAID = 3
"""Loads that the finding names one by one."""
Sweep = Sequence[Runs]
"""The repeats of each queue delay at one load, the shortest delay first."""


def delay_ms(runs: Runs) -> str:
    """0.5 for 500 µs."""
    return f"{(runs[0].queue_delay_us or 0) / 1000:.10g}"


@dataclass(frozen=True)
class Best:
    """The repeats of the delay that is best by some value, and other delays that they do not tell from it.

    `fewest` are the repeats of it or another that could; `compared` is whether they suffice. `figure` is the
    value by which it is best.
    """

    runs: Runs
    figure: CellFigure
    alike: tuple[str, ...]
    compared: bool
    fewest: int

    @property
    def name(self) -> str:
        """For people: 0.5 ms."""
        return f"{delay_ms(self.runs)} ms"

    @property
    def doubt(self) -> str:
        """What repeats leave open; empty where they tell it from every other."""
        if not self.compared:
            return hedge(self.fewest) or UNCOMPARED
        return f"{NOT_SIGNIFICANT} from {', '.join(self.alike)}" if self.alike else ""


def fastest(study: Study, sweep: Sweep, bound_ms: float | None = None) -> Best | None:
    """The one with the most images/s, of those with p95 within the bound in each repeat; or None."""
    if unranked(sweep[0][0]):
        return None
    kept = [runs for runs in sound(sweep) if bound_ms is None or max(_p95s(runs), default=inf) <= bound_ms]
    return best(study, kept, images_per_s, 1)


def quickest(study: Study, sweep: Sweep) -> Best | None:
    """The one with the lowest p95; None where none is sound, or all requests of each are too few for one."""
    return best(study, sound(sweep), p95_ms, -1)


def sound(sweep: Sweep) -> list[Runs]:
    """The delays on which a conclusion may rest."""
    behind = ((runs, resting_on(runs, images_per_s)) for runs in sweep)
    return [runs for runs, own in behind if own and ranks(runs) and not any(run.tainted for run in own)]


def _p95s(runs: Runs) -> list[float]:
    return [found for run in resting_on(runs, images_per_s) if (found := p95_ms(run)) is not None]


def best(study: Study, delays: Sequence[Runs], value: Value, sign: int) -> Best | None:
    """The delay with the most of a value, or with a sign of -1 the least; None where none has it."""
    found = [(runs, figure) for runs in delays if (figure := estimated(study, runs, value))]
    if not found:
        return None
    runs, figure = max(found, key=lambda one: sign * one[1].value)
    others = [other for other, _ in found if other is not runs]
    told = told_from_best(runs, others, value)
    alike = (f"{delay_ms(other)} ms" for other, apart in zip(others, told, strict=True) if apart is False)
    fewest = min(len(behind(of, value)) for of, _ in found)
    return Best(runs, figure, tuple(alike), None not in told, fewest)


def unranked(run: Summary) -> str:
    """Why no delay has the most images/s: the rate is asked for, or nobody is there to share with."""
    if run.load == "open":
        return "open-loop load: the rate is given, so it ranks no setting"
    return "one user shares no execution" if run.level == 1 else ""


def sweeps(study: Study) -> list[Sweep]:
    """Each load that was run with two queue delays or more, all else being equal; no floors, no search."""
    if (study.header.get("options") or {}).get("find_rate"):
        return []
    delayed = [run for run in study.runs if run.queue_delay_us is not None and not run.is_floor]
    delayed.sort(key=lambda run: (study.endpoints.index(run.endpoint), _name(run), run.batch, run.level))
    loads = grouped(delayed, _else).values()
    found = (grouped(sorted(runs, key=_delay_us), _delay_us) for runs in loads)
    return [list(delays.values()) for delays in found if len(delays) > 1]


def _delay_us(run: Summary) -> int:
    return run.queue_delay_us or 0


def _name(run: Summary) -> str:
    parts = (part for part in run.variant.split("/") if part != delay_name(run.queue_delay_us or 0))
    return f"{run.endpoint} {'/'.join(parts)}".rstrip()


def _else(run: Summary) -> tuple[object, ...]:
    """All that must be alike for runs to differ in the queue delay alone."""
    load = (run.endpoint, run.batch, run.load, run.level)
    return (*load, *run.others("queue_delay_us"), _name(run))


def bound_of(study: Study) -> float | None:
    """The p95 in ms that --p95-bound gave, if it did."""
    return (study.header.get("options") or {}).get("p95_bound") or None


def _heads(of: Callable[[Thing], Summary]) -> tuple[Columns[Thing], ...]:
    """The columns that say which load a row is of."""

    def load(thing: Thing) -> str:
        run = of(thing)
        return f"{run.level:g}/s" if run.load == "open" else f"users {run.level:g}"

    return (
        cell("endpoint", lambda it, _: TableCell(_name(of(it))), numeric=False),
        text("batch", lambda thing: str(batch_of(of(thing)))),
        text("load", load, numeric=False),
    )


COLUMNS: Sequence[Columns[Runs]] = (
    *_heads(lambda runs: runs[0]),
    text("delay ms", delay_ms),
    cell("images/s", lambda runs, notes: measured(runs, images_per_s, notes)),
    percentile("p95"),
    figure("mean executed batch", lambda run: run.server.executed_batch),
    figure("executions / requests", lambda run: ratio(images_per_request(run), run.server.executed_batch)),
)


def queue_delays(study: Study) -> Table:
    """One row for each load and queue delay, where several were set."""
    return study_table(
        study,
        "Queue delay",
        "How long Triton lets a request wait for others to share an execution with "
        "(max_queue_delay_microseconds), set for each run. Executed batch and executions are Triton's own "
        "count over the measure phase: images in an execution, and executions for each request, 1 where "
        "none was shared.",
        COLUMNS,
        (runs for sweep in sweeps(study) for runs in sweep),
    )


def best_delays(study: Study) -> Table:
    """One row for each load: the queue delay with the most images/s, and the one with the lowest p95."""
    bound = bound_of(study)
    within = f" The most images/s are of those that kept p95 at {bound:g} ms in each repeat." if bound else ""
    columns: Sequence[Columns[Sweep]] = (
        *_heads(lambda sweep: sweep[0][0]),
        Columns(("most images/s with", "images/s", "p95 ms"), lambda it, notes: _fastest(it, bound, notes)),
        Columns(
            ("lowest p95 with", "p95 ms", "images/s"),
            lambda it, notes: _named(quickest(notes.study, it), (p95_ms, images_per_s), _no_p95(it), notes),
        ),
    )
    return study_table(
        study,
        "Best queue delay",
        "Of the delays tested. Invalidated runs are left out." + within,
        columns,
        sweeps(study),
    )


def _fastest(sweep: Sweep, bound: float | None, notes: StudyNotes) -> tuple[TableCell, ...]:
    kept = f"none kept p95 at {bound:g} ms in each repeat" if bound else ""
    lacking = (unranked(sweep[0][0]) or kept) if sound(sweep) else NOTHING_SOUND
    return _named(fastest(notes.study, sweep, bound), (images_per_s, p95_ms), lacking, notes)


def _no_p95(sweep: Sweep) -> str:
    """Why no delay has the lowest p95."""
    return lacking(sweep[0], p95_ms) if sound(sweep) else NOTHING_SOUND


def _named(
    best: Best | None, values: tuple[Value, Value], lacking: str, notes: StudyNotes
) -> tuple[TableCell, ...]:
    if best is None:
        return (TableCell(MISSING, notes.marks([lacking])),)
    name = TableCell(best.name, notes.marks(filter(None, [best.doubt])))
    figures = (
        measured(best.runs, value, notes, milliseconds if value is p95_ms else digits) for value in values
    )
    return name, *figures


def delay_finding(study: Study) -> str:
    """Which queue delay is best at which load; empty where only one was run."""
    found, bound = sweeps(study), bound_of(study)
    if not found:
        return ""
    busiest = sorted(found, key=lambda sweep: -sweep[0][0].level)[:MOST_SAID]
    named = [sweep for sweep in found if sweep in busiest]
    bests = [best for it in named for best in (fastest(study, it, bound), quickest(study, it)) if best]
    mixed = any(best.compared for best in bests)
    said = [_said(study, sweep, bound, mixed) for sweep in named]
    left = len(found) - len(said)
    more = f"; {plural(left, 'more load')} in the table" if left else ""
    return " ".join([f"Of those tested, {'; '.join(said)}{more}.", *_hedges(bests)])


def _hedges(bests: Sequence[Best]) -> Iterator[str]:
    """What holds for many of the figures, said once."""
    if few := [best.doubt for best in bests if not best.compared]:
        yield f"{few[0][0].upper()}{few[0][1:]}."
    fewest = min((best.figure.results for best in bests), default=0)
    if bests and fewest < ENOUGH["p95"]:
        yield f"p95 is of as few as {plural(fewest, 'result')}; it needs {ENOUGH['p95']}."


def _said(study: Study, sweep: Sweep, bound: float | None, mixed: bool) -> str:
    run = sweep[0][0]
    many = f"{run.level:g} requests/s" if run.load == "open" else plural(round(run.level), "user")
    where = f"{_name(run)} at batch {batch_of(run)} and {many}:"
    most, low = fastest(study, sweep, bound), quickest(study, sweep)
    if low is None:
        return f"{where} not known ({_no_p95(sweep)})"
    lowest = f"{low.name} ({_figure(low, f'{low.figure.alone(milliseconds)} ms', mixed)})"
    if unranked(run):
        return f"{where} lowest p95 with {lowest}"
    if most is None:
        return f"{where} none keeps p95 at {bound:g} ms, the lowest is with {lowest}"
    within = f"of those with p95 at most {bound:g} ms, " if bound else ""
    said = f"{where} {within}most images/s with {most.name} ({_figure(most, most.figure.alone(), mixed)})"
    return said if bound else f"{said}, lowest p95 with {lowest}"


def _figure(best: Best, figure: str, mixed: bool) -> str:
    """412, and what it is not significantly different from; where others have repeats (`mixed`), one run."""
    few = "not compared" if best.fewest >= LEAST_REPEATS else plural(best.fewest, "run")
    doubt = best.doubt if best.compared else few if mixed else ""
    return ", ".join(filter(None, (figure, doubt)))


QUEUE_DELAY = Question(
    "queue-delay",
    "Results",
    (queue_delays, best_delays),
    answered("Best queue delay", delay_finding),
    Theme.SETTINGS,
    place=4,
)
