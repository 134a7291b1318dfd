"""How much slower an endpoint is while others are loaded, too, than alone."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from reports.format import MISSING, digits, listed, milliseconds, sentence
from reports.limit import UNKNOWN as UNLIMITED
from reports.page.answer import AnswerRow
from reports.page.question import Question, Theme
from reports.page.study_table import Columns, StudyNotes, cell, figure_cell, study_table, text
from reports.page.table import Table, TableCell
from reports.stats.failures import failed_said, failed_share, ranks, say_no_success
from reports.stats.figures import images_per_s, p50_ms, p95_ms
from reports.stats.log_ratio import LogRatio
from reports.stats.paired import ALPHA, LEAST_REPEATS, paired_ratio, told_apart
from reports.stats.repeats import CONFIRM, Runs, Value, by_repeat, grouped, taints
from reports.study.study import Study
from reports.summary.summary import Summary

SLOWED, FASTER, NONE, OPEN, UNKNOWN = "slowed", "faster", "no interference", "not shown", "not known"
SAME = 1.05
"""A ratio whose interval lies within that, to both sides, is no difference."""
MOST_NAMED = 4
CAPTION = (
    "Times slower than alone, with the 95 % CI of the repeats in pairs: by p50 where requests come at a "
    "rate, by images/s where users wait for replies."
)
PAIRS_CAPTION = (
    f"Ratios are together over alone. An endpoint is called slowed where its repeats show it, by Holm over "
    f"all rows; no interference is a 95 % CI within ±{100 * (SAME - 1):.0f} %. {LEAST_REPEATS} repeats are "
    "needed for either."
)


@dataclass(frozen=True)
class Interference:
    """An endpoint's load beside others: its runs with them and without, and how much slower it is, if known.

    `slower` is of p50 under open-loop load and of images per second under closed-loop load, above 1 where it
    is slower than alone. `apart`: whether its repeats show that it is not 1, all effects of the study
    considered.
    """

    part: Runs
    alone: Runs
    others: str
    slower: LogRatio | None
    apart: bool = False

    @property
    def name(self) -> str:
        """siglip@r50."""
        return load_name(self.part[0])

    @property
    def measure(self) -> str:
        """What it is slower by."""
        return _measure(self.part[0])

    @property
    def spoilt(self) -> str:
        """Why nothing is concluded from its runs; empty where something may be."""
        return spoilt(self.part, "together") or spoilt(self.alone, "alone")

    @property
    def is_sure(self) -> bool:
        """Whether its repeats say how sure the ratio is."""
        return self.slower is not None and self.slower.error is not None and not self.spoilt

    @property
    def verdict(self) -> str:
        """SLOWED, FASTER, NONE, OPEN or UNKNOWN."""
        if self.slower is None or not self.is_sure:
            return UNKNOWN
        if self.slower.within(SAME):
            return NONE
        if self.apart:
            return SLOWED if self.slower.ratio > 1 else FASTER
        return OPEN

    @property
    def why(self) -> str:
        """Why it is not known."""
        if self.spoilt:
            return self.spoilt
        if not self.alone:
            return "no run alone"
        if self.slower is None:
            return f"no {self.measure}"
        few = f"fewer than {LEAST_REPEATS} repeats"
        if doubt := next(taints([*self.part, *self.alone]), ""):
            return f"{few}, others are {doubt}"
        return few if self.slower.runs > 1 else "inconclusive without repeats"

    def to_record(self) -> dict[str, object]:
        """As study.json has it."""
        told = {"load": self.name, "beside": self.others, "verdict": self.verdict, "of": self.measure}
        return told | {"times_slower": self.slower.to_record() if self.slower else None}

    @property
    def said(self) -> str:
        """clip-text@c8 makes siglip@r50 1.80 times slower (95 % CI 1.70–1.90, p50)."""
        several = " and " in self.others
        ratio, verdict = self.slower, self.verdict
        if verdict == UNKNOWN or ratio is None:
            seen = f"; {_times(ratio)} by {self.measure}" if ratio and not self.spoilt else ""
            return f"{self.others} on {self.name}: not known, {self.why}{seen}"
        faster, is_seen = ratio.ratio < 1, ratio.p_even <= ALPHA
        sure = ratio.inverse if faster and is_seen and verdict != NONE else ratio
        within = f"(95 % CI {sure.interval}, {self.measure})"
        if verdict == NONE:
            return f"{self.others} {'do' if several else 'does'} not slow {self.name} {within}"
        if verdict == OPEN and is_seen:
            return f"{self.others} may make {self.name} {_times(ratio)} {within}, unconfirmed among all pairs"
        if verdict == OPEN:
            return f"{self.others} {'are' if several else 'is'} not shown to slow {self.name} {within}"
        return f"{self.others} {'make' if several else 'makes'} {self.name} {_times(ratio)} {within}"


def _times(ratio: LogRatio) -> str:
    """1.80 times slower; 1.10 times faster."""
    slow = ratio.ratio >= 1
    return f"{(ratio if slow else ratio.inverse).figure} times {'slower' if slow else 'faster'}"


def spoilt(runs: Runs, which: str) -> str:
    """Why nothing is concluded from some runs; empty where something may be."""
    if runs and all(run.tainted for run in runs):
        return f"each run {which} is {next(taints(runs))}"
    return "" if ranks(runs) else f"{digits(100 * failed_share(runs))} % of the requests {which} failed"


def load_name(run: Summary) -> str:
    """siglip@r50, clip-text@b4/c8: as --together has it."""
    batch = f"b{run.batch}/" if run.batch > 1 else ""
    return f"{run.endpoint}@{batch}{'r' if run.load == 'open' else 'c'}{run.level:g}"


def is_of_groups(study: Study) -> bool:
    """Whether cells of it ran at the same time, each with a load of its own."""
    return any(run.together and not run.split for run in study.runs)


def effects(study: Study) -> list[Interference]:
    """One for each part of each group that was begun, as the groups were given."""
    began = [run for run in study.started if not run.split]
    alone = grouped((run for run in began if not run.together), _load)
    found = []
    for of_group in grouped((run for run in began if run.together), lambda run: run.together).values():
        parts = grouped(of_group, load_name)
        for name, runs in parts.items():
            others = listed([other for other in parts if other != name])
            own = alone.get(_load(runs[0]), [])
            found.append(Interference(runs, own, others, slower(runs, own)))
    apart = iter(told_apart([one.slower for one in found if one.slower and one.is_sure]))
    return [replace(one, apart=next(apart)) if one.is_sure else one for one in found]


def _load(run: Summary) -> tuple[object, ...]:
    return run.endpoint, run.batch, run.load, run.level, *run.others("together", "split")


def slower(part: Runs, alone: Runs) -> LogRatio | None:
    """How many times slower the part is than alone; None where one of them has no such figure."""
    if part[0].load == "open":
        return over_alone(part, alone, p50_ms)
    found = over_alone(part, alone, images_per_s)
    return found.inverse if found else None


def over_alone(part: Runs, alone: Runs, value: Value) -> LogRatio | None:
    """A figure together over that alone, of repeats in pairs."""
    sides = by_repeat(part, value), by_repeat(alone, value)
    return paired_ratio(*sides) if all(sides) else None


def _measure(run: Summary) -> str:
    return "p50" if run.load == "open" else "images/s"


def interference_matrix(study: Study) -> Table:
    """One row for each load, one column for what it ran beside."""
    found = effects(study)
    beside = list(dict.fromkeys(one.others for one in found))
    columns: list[Columns[Sequence[Interference]]] = [
        text("load", lambda row: row[0].name, numeric=False),
        cell("alone", lambda row, notes: _alone(row[0], notes)),
        *map(_of_neighbour, beside),
    ]
    rows = grouped(found, lambda one: (one.name, _load(one.part[0]))).values()
    return study_table(study, "Interference", CAPTION, columns, rows)


def _alone(one: Interference, notes: StudyNotes) -> TableCell:
    value, form = (p50_ms, milliseconds) if one.measure == "p50" else (images_per_s, digits)
    found = figure_cell(one.alone, value, notes, form)
    if found.value is None:
        return found
    return replace(found, text=f"p50 {found.text} ms" if one.measure == "p50" else f"{found.text} images/s")


def _of_neighbour(others: str) -> Columns[Sequence[Interference]]:
    def shown(row: Sequence[Interference], notes: StudyNotes) -> TableCell:
        one = next((one for one in row if one.others == others), None)
        return ratio_cell(one.slower, filter(None, [one.spoilt]), notes) if one else TableCell("")

    return cell(f"with {others}", shown)


def ratio_cell(ratio: LogRatio | None, doubts: Iterable[str], notes: StudyNotes) -> TableCell:
    """A ratio with its interval, or a dash, and what there is to doubt about it."""
    marks = notes.marks(doubts)
    return TableCell(ratio.times, marks, ratio.ratio) if ratio else TableCell(MISSING, marks)


def _over(head: str, value: Value) -> Columns[Interference]:
    def shown(one: Interference, notes: StudyNotes) -> TableCell:
        return ratio_cell(over_alone(one.part, one.alone, value), failed_said(one.part), notes)

    return cell(head, shown)


PAIRS: Sequence[Columns[Interference]] = (
    text("load", lambda one: one.name, numeric=False),
    text("with", lambda one: one.others, numeric=False),
    cell("p50 ms", lambda one, notes: figure_cell(one.part, p50_ms, notes, milliseconds)),
    cell("images/s", lambda one, notes: figure_cell(one.part, images_per_s, notes)),
    _over("p50 ratio", p50_ms),
    _over("p95 ratio", p95_ms),
    _over("images/s ratio", images_per_s),
    text("verdict", lambda one: _verdict_said(one), numeric=False),
    text("bottleneck alone", lambda one: limits(one.alone), numeric=False),
    text("bottleneck together", lambda one: limits(one.part), numeric=False),
)


def _verdict_said(one: Interference) -> str:
    if one.verdict == UNKNOWN:
        return f"{UNKNOWN}: {one.why}"
    if one.verdict == NONE:
        return f"{NONE}: within ±{100 * (SAME - 1):.0f} %"
    return f"{_times(one.slower)}" if one.verdict in (SLOWED, FASTER) and one.slower else OPEN


def limits(runs: Runs) -> str:
    """The limits of some runs, the most frequent first; a dash without any."""
    codes = grouped((run.limit.code for run in runs if run.limit), lambda code: code)
    return ", ".join(sorted(codes, key=lambda code: -len(codes[code]))) or MISSING


def interference_pairs(study: Study) -> Table:
    """One row for each load and what it ran beside."""
    return study_table(study, "Interference by pair", PAIRS_CAPTION, PAIRS, effects(study))


def interference(study: Study) -> AnswerRow | None:
    """Who slows whom, the most first, and what limits those that are slowed."""
    if not any(run.succeeded for run in study.started):
        return AnswerRow("Interference", f"{say_no_success(study.started)}.") if study.started else None
    order = (SLOWED, FASTER, NONE, OPEN, UNKNOWN)
    found = sorted(effects(study), key=lambda one: (order.index(one.verdict), -_slowed(one)))
    if not found:
        return None
    told = [one.said for one in found[:MOST_NAMED]]
    more = len(found) - len(told)
    told += [f"{more} more are in the table"] if more else []
    return AnswerRow("Interference", f"{'; '.join(told)}.", " ".join(_detail(found)))


def _slowed(one: Interference) -> float:
    return one.slower.ratio if one.slower and one.verdict == SLOWED else 0.0


def _detail(found: Sequence[Interference]) -> Iterator[str]:
    for one in found[:MOST_NAMED]:
        if one.verdict == SLOWED and any(run.limit and run.limit.code != UNLIMITED for run in one.part):
            yield f"Bottleneck of {one.name}: {limits(one.alone)} alone, {limits(one.part)} together."
    if any(one.verdict == UNKNOWN and not one.spoilt and one.alone and one.slower for one in found):
        yield f"{sentence(CONFIRM)}."


INTERFERENCE = Question(
    "interference",
    "Results",
    (interference_matrix, interference_pairs),
    interference,
    Theme.CAUSE,
    place=-1,
    applies=is_of_groups,
)
