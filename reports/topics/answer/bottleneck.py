"""What limits the runs of a study, grouped, and what to do about it."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from reports.caveat import KINDS
from reports.format import plural, sentence
from reports.limit import UNKNOWN, Limit
from reports.page.answer import AnswerRow
from reports.page.question import Question, Theme
from reports.page.study_table import Columns, study_table, text
from reports.page.table import Table
from reports.stats.repeats import DIFFER, Runs, grouped, ranked
from reports.study.study import Study
from reports.summary.summary import Summary, tainting
from reports.topics.answer.contenders import contenders
from reports.topics.answer.evidence import in_short, ranged, wording
from reports.topics.runs.runs import RUN, by_name

MOST_NAMED, MOST_CELLS = 3, 4
BROUGHT_BY = {
    "client-bound": ("client-cpu", "client-loop", "throttled", "cpu-stolen"),
    "client-exhausted": ("client-ports",),
    "failures": ("client-ports", "rate-limited", "server-full"),
}
"""By a caveat that invalidates, the limits that are its cause."""
WORDS = {UNKNOWN: "unknown", "nagle": "Nagle's algorithm", "cpu-stolen": "stolen CPU"}
"""Of the codes that are not words of their own."""


@dataclass(frozen=True)
class LimitedRuns:
    """Runs with one limit, of which the same would help."""

    limit: Limit
    runs: Runs

    @property
    def evidence(self) -> str:
        """That of all, numbers as ranges."""
        return ranged([run.limit.evidence for run in self.runs if run.limit])

    @property
    def cells(self) -> str:
        """The names of the cells, the first few of many."""
        names = list(dict.fromkeys(run.cell for run in self.runs))
        more = f" and {len(names) - MOST_CELLS} more" if names[MOST_CELLS:] else ""
        return ", ".join(names[:MOST_CELLS]) + more


def limited(runs: Runs) -> list[LimitedRuns]:
    """By limit and advice, and what is unknown by its reason, the most frequent first."""
    known = [(run, run.limit) for run in runs if run.limit]
    groups = grouped(known, lambda pair: _kind(pair[1])).values()
    found = [LimitedRuns(group[0][1], [run for run, _ in group]) for group in groups]
    return sorted(found, key=lambda one: -len(one.runs))


def _kind(limit: Limit) -> tuple[str, str, str]:
    return limit.code, limit.advice, wording(limit.evidence) if limit.code == UNKNOWN else ""


def words(code: str) -> str:
    """A limit's code as readers have it: server compute."""
    return WORDS.get(code, code.replace("-", " "))


def bottleneck(study: Study) -> AnswerRow | None:
    """The row: each limit with its runs, and the evidence of the most frequent."""
    runs = [run for run in study.started if not run.is_floor]
    counts = Counter(run.limit.code for run in runs if run.limit)
    unknown = counts.pop(UNKNOWN, 0)
    if not counts:
        return _unknown(runs) if unknown else None
    total = counts.total() + unknown
    told = [f"{words(code)} in {count}" for code, count in ranked(counts)[:MOST_NAMED]]
    rest = sum(count for _, count in ranked(counts)[MOST_NAMED:])
    told += [f"others in {rest}"] if rest else []
    told += [f"unknown in {unknown}"] if unknown else []
    (most, _), *_ = ranked(counts)
    evidence = in_short([run.limit.evidence for run in runs if run.limit and run.limit.code == most])
    said = f"{', '.join(told)} of {plural(total, 'run')}."
    return AnswerRow("Bottleneck", sentence(said), f"{sentence(evidence)}.")


def _unknown(runs: Runs) -> AnswerRow:
    """Each reason with how many runs have it."""
    reasons = grouped([run.limit.evidence for run in runs if run.limit], wording).values()
    first, *others = sorted(reasons, key=len, reverse=True)
    told = [f"{ranged(texts)} ({plural(len(texts), 'run')})" for texts in (first, *others)[:MOST_NAMED]]
    rest = sum(map(len, others[MOST_NAMED - 1 :]))
    told += [f"others ({plural(rest, 'run')})"] if rest else []
    why = "; ".join(told) if others else ranged(first)
    return AnswerRow("Bottleneck", "Unknown in all runs.", f"{sentence(why)}.")


def next_step(study: Study) -> AnswerRow | None:
    """What would help the fastest endpoint, or what must be fixed before anything is known."""
    runs = [run for run in study.started if not run.is_floor]
    spoilt = Counter(code for run in runs for code in tainting(run))
    if spoilt and 2 * sum(run.tainted for run in runs) >= len(runs):
        # Of as many runs, the gravest, which stands first.
        code, count = max(((code, spoilt[code]) for code in KINDS), key=lambda pair: pair[1])
        why = f"{code} invalidates {count} of {plural(len(runs), 'run')}."
        return AnswerRow("Next step", sentence(_cure(code, runs)), why)
    sound = [one for one in contenders(study) if not one.tainted]
    if sound and sound[0].varies:
        return AnswerRow("Next step", sentence(KINDS[DIFFER].advice), f"{sound[0].name}: its repeats differ.")
    behind = (sound[0].runs if sound else runs) if runs else ()
    helped = limited(behind)
    if not helped:
        return None
    limit, name = helped[0].limit, sound[0].name if sound else ""
    known = limit.code != UNKNOWN
    why = f"limited by {words(limit.code)}" if known else limit.evidence.partition("; ")[0]
    return AnswerRow("Next step", sentence(limit.advice), f"{name}: {why}." if name else "")


def _cure(code: str, runs: Runs) -> str:
    """What helps against a caveat: what its runs' limit says, where that is what brought it about."""
    found = limited([run for run in runs if code in tainting(run)])
    if found and found[0].limit.code in BROUGHT_BY.get(code, ()):
        return found[0].limit.advice
    return KINDS[code].advice


def bottlenecks(study: Study) -> Table:
    """One row for each limit and what would help."""
    columns: Sequence[Columns[LimitedRuns]] = (
        text("bottleneck", lambda it: it.limit.code, numeric=False),
        text("runs", lambda it: str(len(it.runs))),
        text("cells", lambda it: it.cells, numeric=False),
        text("evidence", lambda it: it.evidence, numeric=False),
        text("what would help", lambda it: it.limit.advice, numeric=False),
    )
    caption = "What keeps each run from going faster; ranges are over its runs."
    runs = [run for run in study.started if not run.is_floor]
    return study_table(study, "Bottlenecks", caption, columns, limited(runs))


def bottlenecks_by_run(study: Study) -> Table:
    """One row for each run that has a limit, with its own evidence."""
    columns: Sequence[Columns[Summary]] = (
        RUN,
        text("bottleneck", lambda run: run.limit.code if run.limit else "", numeric=False),
        text("evidence", lambda run: run.limit.evidence if run.limit else "", numeric=False),
    )
    runs = [run for run in by_name(study) if run.limit]
    return study_table(study, "Bottlenecks, run by run", "", columns, runs, folded=True)


BOTTLENECK = Question(
    "bottleneck", "Latency breakdown", (bottlenecks, bottlenecks_by_run), bottleneck, Theme.LIMITS
)
NEXT = Question("next-step", "", finds=next_step, theme=Theme.NEXT)
