"""How sure the figures of a study are, and what would make them surer: with which command, in which time."""

import re
from collections import Counter
from collections.abc import Sequence

from reports.caveats.run import ENOUGH
from reports.format import duration, plural
from reports.page.answer import AnswerRow
from reports.page.question import Question, Theme
from reports.page.study_table import FEW
from reports.stats.repeats import COMPARABLE_RUNS, ENOUGH_RUNS, Runs, by_cell
from reports.study.study import Study
from reports.summary.summary import tainting

_REPEATS = re.compile(r" --repeats[ =]\d+")
MANY = 5
"""Runs of a cell that are advised."""


def confidence(study: Study) -> AnswerRow | None:
    """The row; None where nothing was begun."""
    runs = [run for run in study.started if not run.is_floor]
    if not runs:
        return None
    sound = [run for run in runs if not run.tainted]
    counts = [len(of) for of in by_cell(sound).values()]
    fewest = min(counts, default=0)
    detail = [_settled_by(study, fewest), _few(runs)]
    said = [_graded(study, counts), _invalidated(runs)]
    return AnswerRow(
        "Confidence",
        f"{'; '.join(text for text in said if text)}.",
        " ".join(text for text in detail if text),
        again(study, fewest),
    )


def _graded(study: Study, counts: Sequence[int]) -> str:
    """The grade, by the cell that has the fewest of these runs that count."""
    if study.status != "complete":
        return f"Incomplete: the study ended as {study.status}"
    if not counts:
        return "None: no run is free of invalidating caveats"
    fewest, even = min(counts), len(set(counts)) == 1
    each = f"{'' if even else 'as few as '}{plural(fewest, 'run')} per cell"
    if fewest < COMPARABLE_RUNS:
        return f"Unconfirmed: {each}, so {'there is' if even else 'some have'} no 95 % CI"
    if fewest < ENOUGH_RUNS:
        return f"Low: {each}"
    return f"{'Moderate' if fewest < MANY else 'Good'}: {each}"


def _invalidated(runs: Runs) -> str:
    counts = Counter(code for run in runs for code in tainting(run))
    spoilt = sum(run.tainted for run in runs)
    told = ", ".join(f"{code} {count}" for code, count in counts.most_common())
    return f"{spoilt} of {plural(len(runs), 'run')} invalidated ({told})" if spoilt else ""


def repeats_advised(fewest: int) -> int:
    """Runs of each cell that would tell more: five, or twice as many as there are."""
    return MANY if fewest < MANY else 2 * fewest


def _settled_by(study: Study, fewest: int) -> str:
    if study.status != "complete":
        return "Rerun it."
    advised = repeats_advised(fewest)
    took = again_s(study, advised)
    told = f" (about {duration(60 * max(1, round(took / 60)))})" if took else ""
    if fewest < MANY:
        return f"Rerun with --repeats {advised} to confirm{told}."
    return f"--repeats {advised} would narrow intervals by about a third{told}."


def again_s(study: Study, repeats: int) -> float:
    """How long the runs of a study would take with so many repeats, by how long they took; in seconds."""
    made = max((run.repeat for run in study.started), default=1)
    return repeats * sum(second.width_s for second in study.timeline) / made


def again(study: Study, fewest: int) -> str:
    """The study's own command, with more repeats where it was whole; empty where no option states it."""
    command = str((study.header.get("options") or {}).get("command") or "")
    if not command or study.status != "complete":
        return command
    return f"{_REPEATS.sub('', command)} --repeats {repeats_advised(fewest)}"


def _few(runs: Runs) -> str:
    """What the mark behind a percentile means, where there is one."""
    lacking = [name for name, least in ENOUGH.items() if any(0 < run.succeeded < least for run in runs)]
    named = [f"{name} needs {ENOUGH[name]:,}" for name in ("p95", "p99") if name in lacking]
    if not named:
        return ""
    return f"{FEW}: too few requests behind a percentile ({', '.join(named)}; few-samples)."


CONFIDENCE = Question("confidence", "", finds=confidence, theme=Theme.CONFIDENCE)
