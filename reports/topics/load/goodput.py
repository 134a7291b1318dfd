"""Goodput: which share of requests was good by --slo, at which rate, and where the objective was kept."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from reports.caveats.rate_bound import BY_SLO
from reports.format import counted
from reports.page.answer import answered
from reports.page.question import Question, Theme
from reports.page.study_table import Columns, StudyNotes, cell, figure_cell, study_table, text
from reports.page.table import Table, TableCell
from reports.slo import Slo
from reports.stats.percentiles import mean_over
from reports.stats.repeats import Runs, by_cell, grouped
from reports.stats.shares import LEAST_BLOCKS, share_of
from reports.study.study import Study
from reports.summary.goodput import COUNTED, share_said
from reports.summary.summary import Summary, tainting

MET, NOT_MET, NOT_KNOWN = "met", "not met", "not known"
MOST_NAMED = 4


@dataclass(frozen=True)
class GoodShare:
    """The share of good requests of a cell's `runs`, and its interval of 95 %, None of too few seconds."""

    runs: Runs
    share: float
    low: float | None
    high: float | None
    objective: float

    @property
    def per_s(self) -> float:
        """Good requests a second, as tables show it; 0 without any."""
        found = mean_over(self.runs, per_s)
        return found.value if found else 0.0

    @property
    def verdict(self) -> str:
        """Whether the objective was kept: not known where the interval reaches to both sides of it."""
        if self.low is None or self.high is None:
            return NOT_KNOWN
        if self.low >= self.objective:
            return MET
        return NOT_MET if self.high < self.objective else NOT_KNOWN

    @property
    def interval(self) -> str:
        """98.71–99.23, in percent; empty where it is not known."""
        if self.low is None or self.high is None:
            return ""
        return "–".join(share_said(end).removesuffix(" %") for end in (self.low, self.high))

    def __str__(self) -> str:
        return share_said(self.share) + (f" ({self.interval})" if self.interval else "")


def slo_of(study: Study) -> Slo | None:
    """That of the header's options; None without one that can be read."""
    try:
        return Slo.parse(str((study.header.get("options") or {}).get("slo") or ""))
    except ValueError:
        return None


def per_s(run: Summary) -> float | None:
    """Good requests a second of one run."""
    return run.goodput.per_s


def good_shares(study: Study) -> Iterator[GoodShare]:
    """That of each cell which tells of good requests, by endpoint, then by load; floors left out."""
    ordered = study.ordered(study.started, lambda run: (run.load, run.level))
    for runs in by_cell(
        run for run in ordered if run.goodput.share is not None and not run.is_floor
    ).values():
        rested = [run for run in runs if not tainting(run) - COUNTED] or runs
        yield good_share(study, rested)


def good_share(study: Study, runs: Runs) -> GoodShare:
    """Of some repeats of a cell that had requests, all pooled; by how their seconds and they vary."""
    seconds = study.seconds_of(runs)
    bad = share_of(*seconds.bad(), seconds.runs)
    objective, share = runs[0].goodput.objective or 0.0, 1 - bad.share
    if len(seconds.blocks) < LEAST_BLOCKS:
        return GoodShare(runs, share, None, None, objective)
    least, most = bad.interval
    return GoodShare(runs, share, 1 - most, 1 - least, objective)


COLUMNS: Sequence[Columns[GoodShare]] = (
    cell("cell", lambda it, notes: TableCell(it.runs[0].cell, _notes(it, notes)), numeric=False),
    text("good (95 % CI)", str),
    text("objective", lambda it: share_said(it.objective)),
    text("kept", lambda it: it.verdict, numeric=False),
    cell("goodput/s", lambda it, notes: figure_cell(it.runs, per_s, notes)),
    text("requests due", lambda it: counted(sum(run.goodput.due or 0 for run in it.runs))),
    text("failed", lambda it: counted(sum(run.counts.failures or 0 for run in it.runs))),
    text("dropped", lambda it: counted(sum(run.sent.dropped or 0 for run in it.runs))),
)


def _notes(found: GoodShare, notes: StudyNotes) -> tuple[int, ...]:
    codes = dict.fromkeys(code for run in found.runs for code in sorted(tainting(run) - COUNTED))
    return notes.marks(f"invalidated: {code}" for code in codes)


def goodput(study: Study) -> Table | None:
    """One row for each cell; None without --slo."""
    slo, rows = slo_of(study), list(good_shares(study))
    if slo is None or not rows:
        return None
    return study_table(
        study,
        f"Goodput: {slo}",
        "A request is good that succeeded within the limit, counted from the intended start; failed requests "
        "and dropped arrivals are not. The objective is kept, or not, where the whole interval says so.",
        COLUMNS,
        rows,
    )


def goodput_finding(study: Study) -> str:
    """Of each way the cell with the most good requests a second that kept the objective, or why none did.

    Empty where a search was for the highest rate that keeps it: the answer is that of the search.
    """
    slo = slo_of(study)
    if (study.header.get("options") or {}).get("find_rate") == BY_SLO:
        return ""
    ways = grouped(good_shares(study), lambda it: it.runs[0].way)
    if slo is None or not ways:
        return ""
    best = {way: max(found, key=_rank) for way, found in ways.items()}
    ranked = sorted(best.items(), key=lambda item: _rank(item[1]), reverse=True)
    said = [_said(study.named(way), found) for way, found in ranked[:MOST_NAMED]]
    said += [f"{len(ranked) - MOST_NAMED} more are in the table"] if ranked[MOST_NAMED:] else []
    return " ".join([f"{slo}: {'; '.join(said)}.", *_advice([found.verdict for found in best.values()])])


def _rank(found: GoodShare) -> tuple[bool, bool, float]:
    """By the rate where the objective was kept, else by the share."""
    met = found.verdict == MET
    return met, found.verdict != NOT_MET, found.per_s if met else found.share


def _said(name: str, found: GoodShare) -> str:
    run = found.runs[0]
    load = f"{run.level:g}/s" if run.load == "open" else f"{run.level:g} user{'s' if run.level > 1 else ''}"
    share = f"{share_said(found.share)} good" + (f", 95 % CI {found.interval}" if found.interval else "")
    if found.verdict == MET:
        return f"met by {name} at {load} ({share}, {found.per_s:.3g}/s)"
    if found.verdict == NOT_MET:
        return f"met by {name} at no load that was run ({share} at {load})"
    return f"not known of {name} ({share} at {load})"


def _advice(verdicts: Sequence[str]) -> Iterator[str]:
    if NOT_KNOWN in verdicts:
        yield "Not known: measure for longer (--seconds)."
    if NOT_MET in verdicts:
        yield "Not met: --find-rate slo finds the highest rate at which it is."


GOODPUT = Question(
    "goodput",
    "Results",
    (goodput,),
    answered("Goodput", goodput_finding),
    Theme.SPEED,
    place=7,
    applies=lambda study: slo_of(study) is not None,
)
