"""One schedule split among endpoints: which is faster, by the seconds in which all of them answered."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from reports.format import MISSING, milliseconds, plural
from reports.page.answer import AnswerRow
from reports.page.question import Question, Theme
from reports.page.study_table import Columns, StudyNotes, cell, figure_cell, study_table, text
from reports.page.table import Table, TableCell
from reports.stats.failures import failed_said, say_no_success
from reports.stats.figures import mean_ms, p50_ms, p95_ms
from reports.stats.log_ratio import LogRatio
from reports.stats.paired import LEAST_REPEATS, told_apart
from reports.stats.paired_seconds import LEAST_PAIRS, SecondPairs
from reports.stats.repeats import CONFIRM, Runs, Value, grouped
from reports.study.study import Study
from reports.summary.blocks import RunBlocks
from reports.summary.summary import Summary
from reports.topics.together.interference import SAME, ratio_cell, spoilt

CAPTION = (
    "Requests of one open-loop schedule, split at random. Mean latencies are compared within the seconds in "
    "which both endpoints answered, so that what slows both cancels out; the 95 % CI is by how these seconds "
    "and the repeats differ."
)


@dataclass(frozen=True)
class SplitPart:
    """An endpoint's part of a schedule: its runs, and how many times as fast as the first endpoint it is.

    `sent` is its share of all requests. `faster` is None of the first, whose `first` is empty, and where
    nothing can be told, which `why` says. `apart`: whether it is shown not to be 1, all parts of the study
    considered.
    """

    runs: Runs
    first: str
    sent: float
    pairs: SecondPairs | None = None
    why: str = ""
    faster: LogRatio | None = None
    apart: bool = False

    @property
    def name(self) -> str:
        """The endpoint."""
        return self.runs[0].endpoint

    @property
    def requests(self) -> int:
        """Of all its runs."""
        return _requests(self.runs)

    @property
    def rate(self) -> float:
        """Requests a second of the whole schedule."""
        return self.runs[0].level / self.runs[0].split

    @property
    def seconds(self) -> str:
        """180 paired seconds."""
        width_s, count = (self.pairs.width_s, len(self.pairs)) if self.pairs else (1, 0)
        return plural(count, "paired second") if width_s == 1 else f"{count} pairs of {width_s} s"

    def to_record(self) -> dict[str, object]:
        """As study.json has it."""
        told = {"endpoint": self.name, "against": self.first, "rate": self.rate, "sent_share": self.sent}
        ratio = self.faster.to_record() if self.faster else None
        return told | {"times_as_fast": ratio, "shown": self.apart, "why": self.why}

    @property
    def said(self) -> str:
        """new is 1.12 times as fast as old (95 % CI 1.08–1.16), from 180 paired seconds."""
        ratio = self.faster
        if ratio is None:
            return f"{self.name} against {self.first} is not known: {self.why}"
        within = f"(95 % CI {{}}), from {self.seconds}".format
        if ratio.within(SAME):
            same = f"{self.name} is as fast as {self.first}, within ±{100 * (SAME - 1):.0f} %"
            return f"{same} {within(ratio.interval)}"
        if not self.apart:
            told = f"no difference is shown between {self.name} and {self.first}"
            return f"{told} {within(ratio.interval)}"
        times, how = (ratio, "fast") if ratio.ratio > 1 else (ratio.inverse, "slow")
        return f"{self.name} is {times.figure} times as {how} as {self.first} {within(times.interval)}"


def is_split(study: Study) -> bool:
    """Whether endpoints shared the arrivals of one schedule."""
    return any(run.split for run in study.runs)


def schedules(study: Study) -> list[list[SplitPart]]:
    """The parts of each schedule that was begun, that of the endpoint given first first."""
    began = grouped((run for run in study.started if run.split), lambda run: run.together).values()
    found = [_parts(study, [*grouped(runs, lambda run: run.endpoint).values()]) for runs in began]
    apart = iter(told_apart([one.faster for parts in found for one in parts if one.faster]))
    return [[replace(one, apart=next(apart)) if one.faster else one for one in parts] for parts in found]


def _parts(study: Study, sides: Sequence[Runs]) -> list[SplitPart]:
    whole = sum(map(_requests, sides)) or 1
    first = sides[0]
    return [
        SplitPart(first, "", _requests(first) / whole),
        *(_compared(study, runs, first, _requests(runs) / whole) for runs in sides[1:]),
    ]


def _compared(study: Study, runs: Runs, first: Runs, sent: float) -> SplitPart:
    """A part against the first, in the repeats that nothing invalidates."""
    part = SplitPart(runs, first[0].endpoint, sent)
    whys = (spoilt(side, f"of {side[0].endpoint}") for side in (runs, first))
    if why := next(filter(None, whys), ""):
        return replace(part, why=why)
    over, under = (_blocks(study, side) for side in (first, runs))
    pairs = SecondPairs.of([(over[repeat], under[repeat]) for repeat in over if repeat in under])
    if len(pairs) < LEAST_PAIRS:
        few = f"{plural(len(pairs), 'paired second')}, {LEAST_PAIRS} are needed"
        return replace(part, pairs=pairs, why=few)
    return replace(part, pairs=pairs, faster=pairs.ratio)


def _blocks(study: Study, side: Runs) -> dict[int, RunBlocks]:
    """The seconds of those that nothing invalidates, by repeat."""
    return {run.repeat: study.blocks[run.cell, run.repeat] for run in side if not run.tainted}


def _requests(runs: Runs) -> int:
    return sum(run.counts.requests or 0 for run in runs)


def _failures(run: Summary) -> int:
    return run.counts.failures or 0


def _figure(head: str, value: Value) -> Columns[SplitPart]:
    return cell(head, lambda one, notes: figure_cell(one.runs, value, notes, milliseconds))


def _failed(part: SplitPart, notes: StudyNotes) -> TableCell:
    count = sum(map(_failures, part.runs))
    return TableCell(f"{count:,}", notes.marks(failed_said(part.runs)), count)


def _ratio(part: SplitPart, notes: StudyNotes) -> TableCell:
    return ratio_cell(part.faster, filter(None, [part.why]), notes) if part.first else TableCell("1×")


COLUMNS: Sequence[Columns[SplitPart]] = (
    text("endpoint", lambda one: one.name, numeric=False),
    text("requests/s", lambda one: f"{one.rate:g}"),
    text("asked %", lambda one: f"{100 * one.runs[0].split:.4g}"),
    text("sent %", lambda one: f"{100 * one.sent:.4g}"),
    text("requests", lambda one: f"{one.requests:,}"),
    cell("failed", _failed),
    _figure("mean ms", mean_ms),
    _figure("p50 ms", p50_ms),
    _figure("p95 ms", p95_ms),
    cell("times as fast", _ratio),
    text("paired seconds", lambda one: str(len(one.pairs)) if one.pairs else MISSING if one.first else ""),
)


def split_table(study: Study) -> Table:
    """One row for each endpoint of each schedule."""
    every = [part for parts in schedules(study) for part in parts]
    return study_table(study, "Traffic split", CAPTION, COLUMNS, every)


def split(study: Study) -> AnswerRow | None:
    """Which endpoint is faster, and what failed of each."""
    if not any(run.succeeded for run in study.started):
        return AnswerRow("Traffic split", f"{say_no_success(study.started)}.") if study.started else None
    found = schedules(study)
    compared = [one for parts in found for one in parts if one.first]
    rates = len({one.rate for one in compared}) > 1
    told = [f"{f'at {one.rate:g}/s ' if rates else ''}{one.said}" for one in compared]
    return AnswerRow("Traffic split", f"{'; '.join(told)}.", " ".join(_detail(study, found)))


def _detail(study: Study, found: Sequence[Sequence[SplitPart]]) -> Iterator[str]:
    ends_of = grouped((one for parts in found for one in parts), lambda one: one.name)
    runs = {name: [run for one in parts for run in one.runs] for name, parts in ends_of.items()}
    failed = [f"{name} {sum(map(_failures, of)):,} of {_requests(of):,}" for name, of in runs.items()]
    yield f"Failures: {', '.join(failed)}."
    repeats = max(run.repeat for run in study.started)
    if repeats < LEAST_REPEATS:
        one = "This is within one run, and leaves out how runs differ"
        yield f"{one if repeats == 1 else 'Two runs are too few to say how runs differ'}; {CONFIRM}."


SPLIT = Question("split", "Results", (split_table,), split, Theme.CAUSE, place=-2, applies=is_split)
