"""How long a server should let requests wait for others: what each queue delay did, and which is best."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from reports.caveats.run import ENOUGH
from reports.format import MISSING, digits, plural
from reports.ledger.axes import delay_name
from reports.page.question import Question, Theme
from reports.page.table import (
    Columns,
    StudyNotes,
    Table,
    TableCell,
    Thing,
    cell,
    measured,
    number,
    percentile_cell,
    study_table,
    text,
)
from reports.stats.log_ratio import log_ratio
from reports.stats.repeats import (
    COMPARABLE_RUNS,
    Runs,
    Spread,
    Value,
    grouped,
    hedge,
    images_per_s,
    repeats,
    resting_on,
    spread_of,
)
from reports.study.study import Study
from reports.summary.summary import Summary, percentile_ms

NOTHING_SOUND = "each delay is disqualified or has no success"
ONE_RUN = "one run"
MOST_SAID = 3
"""Loads that the finding names one by one."""


def p95_ms(run: Summary) -> float | None:
    """The p95 latency in milliseconds."""
    return percentile_ms(run, "p95")


@dataclass(frozen=True)
class Setting:
    """One queue delay: all repeats of its cell, and over those that count images per second and p95 in ms."""

    delay_us: int
    runs: Runs
    rate: Spread | None
    p95_ms: Spread | None

    @property
    def sound(self) -> bool:
        """Whether a conclusion may rest on it."""
        behind = resting_on(self.runs, images_per_s)
        return bool(self.rate and self.p95_ms) and not any(run.tainted for run in behind)

    @property
    def name(self) -> str:
        """For people: 0.5 ms."""
        return f"{self.delay_us / 1000:.10g} ms"


@dataclass(frozen=True)
class Best:
    """The setting that is best by some value, and the others that repeats do not tell from it.

    `compared` is whether there are repeats that could, of it and of each other sound one.
    """

    setting: Setting
    alike: tuple[Setting, ...]
    compared: bool


@dataclass(frozen=True)
class Sweep:
    """One load of one endpoint, by queue delay, shortest first; `name` is its way without the delay."""

    name: str
    endpoint: str
    batch: int
    load: str
    level: float
    settings: tuple[Setting, ...]

    @property
    def where(self) -> str:
        """batch 1 and 32 users."""
        many = f"{self.level:g} requests/s" if self.load == "open" else f"{self.level:g} users"
        return f"batch {self.batch} and {'1 user' if many == '1 users' else many}"

    @property
    def unranked(self) -> str:
        """Why no setting has the most images/s: the rate is asked for, or nobody is there to share with."""
        if self.load == "open":
            return "open load: the rate is asked for, and no setting's speed"
        return "one user has nobody to share an execution with" if self.level == 1 else ""

    def fastest(self, bound_ms: float | None = None) -> Best | None:
        """The one with the most images/s, of those with p95 within the bound in each repeat; or None."""
        if self.unranked:
            return None
        kept = [it for it in self._sound() if bound_ms is None or (it.p95_ms and it.p95_ms.high <= bound_ms)]
        return _best(kept, images_per_s, most=True)

    def quickest(self) -> Best | None:
        """The one with the lowest p95; None where none is sound."""
        return _best(self._sound(), p95_ms, most=False)

    def _sound(self) -> list[Setting]:
        return [setting for setting in self.settings if setting.sound]


def _best(settings: Sequence[Setting], value: Value, most: bool) -> Best | None:
    if not settings:
        return None
    sides = {setting.delay_us: _values(setting, value) for setting in settings}
    sign = 1 if most else -1
    best = max(settings, key=lambda setting: sign * median(sides[setting.delay_us]))
    others = [setting for setting in settings if setting is not best]
    compared = all(len(side) >= COMPARABLE_RUNS for side in sides.values())
    alike = [it for it in others if log_ratio(sides[best.delay_us], sides[it.delay_us]).alike]
    return Best(best, tuple(alike), compared)


def _values(setting: Setting, value: Value) -> list[float]:
    return [found for run in resting_on(setting.runs, value) if (found := value(run))]


def sweeps(study: Study) -> tuple[Sweep, ...]:
    """Each load that was run with two queue delays or more, all else being equal; no floors, no search."""
    if (study.header.get("options") or {}).get("find_rate"):
        return ()
    delayed = [run for run in study.runs if run.queue_delay_us is not None and not run.is_floor]
    made = (_sweep(runs) for runs in grouped(study.ordered(delayed), _else).values())
    every = [sweep for sweep in made if len(sweep.settings) > 1]
    place = study.endpoints.index
    return tuple(sorted(every, key=lambda it: (place(it.endpoint), it.name, it.batch, it.level)))


def _sweep(runs: Runs) -> Sweep:
    run = runs[0]
    return Sweep(_name(run), run.endpoint, run.batch, run.load, run.level, tuple(_settings(runs)))


def _settings(runs: Runs) -> Iterator[Setting]:
    for delay_us in sorted({run.queue_delay_us for run in runs if run.queue_delay_us is not None}):
        own = [run for run in runs if run.queue_delay_us == delay_us]
        behind = resting_on(own, images_per_s)
        yield Setting(delay_us, own, spread_of(behind, images_per_s), spread_of(behind, p95_ms))


def _name(run: Summary) -> str:
    parts = (part for part in run.variant.split("/") if part != delay_name(run.queue_delay_us or 0))
    return f"{run.endpoint} {'/'.join(parts)}".rstrip()


def _else(run: Summary) -> tuple[object, ...]:
    """All that must be alike for runs to differ in the queue delay alone."""
    load = (run.endpoint, run.batch, run.load, run.level)
    return (*load, *run.others("queue_delay_us"), _name(run))


def bound_of(study: Study) -> float | None:
    """The p95 in ms that --p95-bound gave, if it did."""
    options: Mapping[str, Any] = study.header.get("options") or {}
    return options.get("p95_bound") or None


def executed_batch(run: Summary) -> float | None:
    """Images in an execution, on average."""
    return run.server.executed_batch


def executions_per_request(run: Summary) -> float | None:
    """Below 1 where requests shared executions."""
    executed = executed_batch(run)
    return run.batch / executed if executed else None


def _heads(sweep_of: Callable[[Thing], Sweep]) -> tuple[Columns[Thing], ...]:
    """The columns that say which load a row is of."""

    def load(thing: Thing) -> str:
        sweep = sweep_of(thing)
        return f"{sweep.level:g}/s" if sweep.load == "open" else f"users {sweep.level:g}"

    def named(thing: Thing, notes: StudyNotes) -> TableCell:
        return notes.head(sweep_of(thing).name, sweep_of(thing).endpoint)

    return (
        cell("endpoint", named, numeric=False),
        text("batch", lambda thing: str(sweep_of(thing).batch)),
        text("load", load, numeric=False),
    )


COLUMNS: Sequence[Columns[tuple[Sweep, Setting]]] = (
    *_heads(lambda row: row[0]),
    text("delay ms", lambda row: f"{row[1].delay_us / 1000:.10g}"),
    cell("images/s", lambda row, notes: measured(row[1].runs, images_per_s, notes)),
    cell("p95 ms", lambda row, notes: percentile_cell(row[1].runs, "p95", notes)),
    cell("executed batch", lambda row, notes: number(row[1].runs, executed_batch, notes)),
    cell("executions / requests", lambda row, notes: number(row[1].runs, executions_per_request, notes)),
)


def queue_delays(study: Study) -> Table:
    """One row for each load and queue delay, where several were set."""
    return study_table(
        study,
        "Queue delay",
        "How long Triton lets a request wait for others to share an execution with, set for each run. "
        "Executed batch and executions are Triton's own count over the measure phase: images in an "
        "execution, and executions for each request, 1 where none was shared.",
        COLUMNS,
        ((sweep, setting) for sweep in sweeps(study) for setting in sweep.settings),
        shared=(repeats(study),),
    )


def best_delays(study: Study) -> Table:
    """One row for each load: the queue delay with the most images/s, and the one with the lowest p95."""
    bound = bound_of(study)
    within = f" The most images/s are of those that kept p95 at {bound:g} ms in each repeat." if bound else ""
    columns: Sequence[Columns[Sweep]] = (
        *_heads(lambda sweep: sweep),
        Columns(("most images/s with", "images/s", "p95 ms"), lambda it, notes: _fastest(it, bound, notes)),
        Columns(
            ("lowest p95 with", "p95 ms", "images/s"),
            lambda it, notes: _named(it.quickest(), (p95_ms, images_per_s), NOTHING_SOUND, notes),
        ),
    )
    return study_table(
        study,
        "Best queue delay",
        "Of those tested; what lies between them is not known. Disqualified runs are left out." + within,
        columns,
        sweeps(study),
        shared=(repeats(study),),
    )


def _fastest(sweep: Sweep, bound: float | None, notes: StudyNotes) -> tuple[TableCell, ...]:
    lacking = NOTHING_SOUND
    if sweep.quickest() is not None:
        kept = f"none kept p95 at {bound:g} ms in each repeat" if bound else ""
        lacking = sweep.unranked or kept
    return _named(sweep.fastest(bound), (images_per_s, p95_ms), lacking, notes)


def _named(
    best: Best | None, values: tuple[Value, Value], lacking: str, notes: StudyNotes
) -> tuple[TableCell, ...]:
    if best is None:
        return TableCell(MISSING, notes.marks([lacking])), TableCell(MISSING), TableCell(MISSING)
    runs, doubt = best.setting.runs, doubt_of(best)
    name = TableCell(best.setting.name, notes.marks([doubt] if doubt else []))
    figures = (
        percentile_cell(runs, "p95", notes, spread=True) if value is p95_ms else measured(runs, value, notes)
        for value in values
    )
    return name, *figures


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


QUEUE_DELAY = Question(
    "queue-delay", "Results", (queue_delays, best_delays), delay_finding, Theme.SETTINGS, place=4
)
