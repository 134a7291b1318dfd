"""Compression and shared memory: each against requests without, in rate, bytes on the wire and client CPU."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from reports.format import MISSING, known, with_interval
from reports.page.answer import AnswerRow
from reports.page.question import Question, Theme
from reports.page.study_table import (
    ENDPOINT,
    Columns,
    StudyNotes,
    cell,
    figure,
    percentile,
    study_table,
    text,
)
from reports.page.table import Table, TableCell
from reports.stats.failures import ranks
from reports.stats.figures import images_per_s
from reports.stats.log_ratio import LogRatio
from reports.stats.paired import LEAST_REPEATS, paired_ratio, told_apart, with_least_error
from reports.stats.repeats import Runs, by_cell, grouped, typical
from reports.study.study import Study
from reports.summary.batch import batch_of
from reports.summary.summary import Summary, tainting

NOT_SHOWN = "no difference shown"
CLIENT_BOUND = "client-bound"
BUSY = "the client itself was at its limit"
FEW = f"fewer than {LEAST_REPEATS} repeats of both, so there is no 95 % CI"
MOST_NAMED = 4


@dataclass(frozen=True)
class Form:
    """A way of sending that a study may vary: its axis, and what people call it and its one value."""

    axis: str
    question: str
    word: str

    def of(self, run: Summary) -> str:
        """Its value in a run: empty without."""
        return str(getattr(run, self.axis))

    def name(self, run: Summary) -> str:
        """What a sentence calls it."""
        return self.word or self.of(run)

    def rest(self, run: Summary) -> tuple[Any, ...]:
        """What two runs must have alike to be compared."""
        return run.endpoint, batch_of(run), run.load, run.level, *run.others(self.axis)


COMPRESSION = Form("compression", "Compression", "")
SHARED_MEMORY = Form("shared_memory", "Shared memory", "shared memory")


@dataclass(frozen=True)
class FormPair:
    """The repeats of two cells that differ in a form alone; `told`: their images/s differ significantly."""

    form: Form
    without: Runs
    having: Runs
    ratio: LogRatio | None
    told: bool = False

    @property
    def saved(self) -> float | None:
        """The share of the bytes on the wire that it saves, both directions; below 0 where it costs some."""
        before, after = (typical(side, wire_bytes) for side in (self.without, self.having))
        return 1 - after / before if before and after is not None else None

    @property
    def doubts(self) -> set[str]:
        """The codes of what invalidates runs that it rests on."""
        return {
            code for side in (self.without, self.having) for run in counted(side) for code in tainting(run)
        }

    @property
    def sound(self) -> bool:
        """Whether a conclusion may rest on it."""
        return self.ratio is not None and all(map(ranks, (self.without, self.having)))


def counted(runs: Runs) -> Runs:
    """Those that a ratio rests on. Runs of a busy client do: it is part of what a form of requests costs."""
    known = (run for run in runs if run.succeeded and run.counts.images_per_s)
    return [run for run in known if tainting(run) <= {CLIENT_BOUND}]


def wire_bytes(run: Summary) -> float | None:
    """The bytes of a request and its answer, without headers."""
    sent, received = run.counts.request_bytes, run.counts.response_bytes
    return None if sent is None or received is None else sent + received


def sent_kb(run: Summary) -> float | None:
    """A request's body in units of 1,000 bytes."""
    return None if run.counts.request_bytes is None else run.counts.request_bytes / 1e3


def received_kb(run: Summary) -> float | None:
    """An answer's, likewise."""
    return None if run.counts.response_bytes is None else run.counts.response_bytes / 1e3


def cpu_ms(run: Summary) -> float | None:
    """The client's processor time for a request."""
    return None if run.client_cpu.ns is None else run.client_cpu.ns / 1e6


def form_pairs(study: Study, form: Form) -> list[FormPair]:
    """Every cell with the form beside the same without, in the study's order; judged all together."""
    runs = study.ordered(run for run in study.started if not run.is_floor)
    found = [pair for alike in grouped(runs, form.rest).values() for pair in _pairs(form, alike)]
    sound = [pair.ratio for pair in found if pair.sound and pair.ratio]
    told = iter(told_apart(with_least_error(sound)))
    return [replace(pair, told=next(told)) if pair.sound else pair for pair in found]


def _pairs(form: Form, runs: Runs) -> Iterator[FormPair]:
    sides = grouped(runs, form.of)
    without = sides.pop("", [])
    for having in sides.values() if without else ():
        over, under = (
            {run.repeat: run.counts.images_per_s or 0.0 for run in counted(side)}
            for side in (having, without)
        )
        yield FormPair(form, without, having, paired_ratio(over, under) if over and under else None)


def all_pairs(study: Study) -> list[FormPair]:
    """Of both forms."""
    return [pair for form in (COMPRESSION, SHARED_MEMORY) for pair in form_pairs(study, form)]


def forms_table(study: Study) -> Table:
    """One row for each cell without a form, and below it each that has one."""
    pairs = all_pairs(study)
    by_having = {pair.having[0].cell: pair for pair in pairs}
    rows = by_cell(run for pair in pairs for side in (pair.without, pair.having) for run in side)
    distinct = [list({run.repeat: run for run in runs}.values()) for runs in rows.values()]

    def ratio(runs: Runs, notes: StudyNotes) -> TableCell:
        pair = by_having.get(runs[0].cell)
        if pair is None:
            return TableCell("")
        if pair.ratio is None:
            return TableCell(MISSING)
        doubts = [*([FEW] if pair.ratio.low is None else []), *([BUSY] if pair.doubts else [])]
        return TableCell(pair.ratio.times, notes.marks(doubts), pair.ratio.ratio)

    columns: Sequence[Columns[Runs]] = (
        ENDPOINT,
        text("batch", lambda runs: str(batch_of(runs[0]))),
        text("load", lambda runs: f"{runs[0].level:g}{' users' if runs[0].load == 'closed' else '/s'}"),
        figure("images/s", images_per_s),
        cell("× without", ratio),
        percentile("p50"),
        percentile("p95"),
        _of("KB sent", sent_kb),
        _of("KB received", received_kb),
        _of("client CPU ms", cpu_ms),
    )
    caption = (
        "Bodies as they are on the wire, by request; 1 KB is 1,000 bytes. Ratios are of images/s over the"
        " same cell without, with their 95 % CI: Student's t of the logs of the repeats' ratios, in pairs."
    )
    return study_table(study, "Compression and shared memory", caption, columns, distinct)


def _of(head: str, value: Callable[[Summary], float | None]) -> Columns[Runs]:
    return text(head, lambda runs: known(typical(runs, value)))


def answer_of(form: Form) -> Callable[[Study], AnswerRow | None]:
    """The first screen's row of a form: for each endpoint and value what its most loaded cell says."""

    def answer(study: Study) -> AnswerRow | None:
        pairs = [pair for pair in form_pairs(study, form) if pair.sound and pair.having[0].load == "closed"]
        if not pairs:
            return None
        most = grouped(
            pairs, lambda pair: (pair.having[0].endpoint, pair.having[0].client, form.of(pair.having[0]))
        )
        shown = {id(pair): said for some in most.values() if (said := _said(pair := max(some, key=_load)))}
        told = [*shown.values()][:MOST_NAMED]
        told += [f"{len(shown) - MOST_NAMED} more are in the table"] if len(shown) > MOST_NAMED else []
        said = "; ".join(told) or f"Not settled: {FEW}"
        others = [pair for pair in pairs if id(pair) not in shown]
        ratios = "; ".join(f"{pair.having[0].cell} {pair.ratio.times}" for pair in others if pair.ratio)
        detail = [f"images/s over the same cell without: {ratios}."] if ratios else []
        detail += [f"In some runs {BUSY}."] if any(pair.doubts for pair in pairs) else []
        return AnswerRow(form.question, f"{said}.", " ".join(detail))

    return answer


def _load(pair: FormPair) -> tuple[float, float]:
    run = pair.having[0]
    return run.level, run.batch


def _said(pair: FormPair) -> str:
    """deflate makes onnx-grpc 2.4 times slower (95 % CI 2.3–2.5): leave it off on this path.

    Nothing where few repeats do not tell. On a slower path, fewer bytes may pay.
    """
    run, ratio = pair.having[0], pair.ratio
    assert ratio is not None, "as of a sound pair"
    name = f"{run.endpoint} ({run.client} client)" if run.client == "library" else run.endpoint
    saved = _saved(pair.saved)
    if ratio.low is None:
        return ""
    if not pair.told:
        alike = f"{NOT_SHOWN} (95 % CI {ratio.interval})"
        return f"{pair.form.name(run)} on {name}: {alike}{f', and it {saved}' if saved else ''}"
    shown = ratio if ratio.ratio > 1 else ratio.inverse
    which, advice = ("faster", "use it") if ratio.ratio > 1 else ("slower", "leave it off")
    advice += " on this path" if run.compression else ""
    low, high = sorted((shown.low or 0.0, shown.high or 0.0))
    times = with_interval(shown.ratio, low, high, unit=f" times {which}", what="95 % CI ")
    return f"{pair.form.name(run)} makes {name} {times}{f' and {saved}' if saved else ''}: {advice}"


def _saved(share: float | None) -> str:
    """What it does to the bytes on the wire; empty where that is nothing, or unknown."""
    if share is None or abs(share) < 0.005:
        return ""
    if share < 0:
        return f"sends {-100 * share:.0f} % more bytes"
    return f"saves {'over 99' if share > 0.99 else f'{100 * share:.0f}'} % of the bytes"


def varies_forms(study: Study) -> bool:
    """Whether a cell has one of them."""
    return any(run.compression or run.shared_memory for run in study.runs)


FORMS = Question(
    "request-forms",
    "Payloads",
    (forms_table,),
    answer_of(COMPRESSION),
    Theme.SPEED,
    place=1,
    applies=varies_forms,
)
SHARED = Question(
    "shared-memory", "Payloads", (), answer_of(SHARED_MEMORY), Theme.SPEED, place=2, applies=varies_forms
)
