"""How sure the figures of a study are, and what would make them surer: with which command, in which time."""

from collections import Counter
from collections.abc import Mapping, Sequence

from reports.format import digits, duration, plural
from reports.histogram.percentiles import ENOUGH, LEAST_RESULTS
from reports.page.answer import AnswerRow, repeated
from reports.page.question import Question, Theme
from reports.page.study_table import FEW
from reports.stats.figures import p95_ms
from reports.stats.paired import ADVISED_REPEATS, LEAST_REPEATS
from reports.stats.percentiles import behind
from reports.stats.repeats import Runs, by_cell, ranked
from reports.study.study import Study
from reports.summary.summary import tainting
from reports.topics.answer.contenders import contenders

WIDE = 0.1
"""A share of the rate: with a wider interval the figures say little."""


def confidence(study: Study) -> AnswerRow | None:
    """The row; None where nothing was begun, and of a search for a rate, which says how sure that is."""
    runs = [run for run in study.started if not run.is_floor]
    if not runs or (study.header.get("options") or {}).get("find_rate"):
        return None
    counts = [sum(not run.tainted for run in of) for of in by_cell(runs).values()]
    said = [_graded(study, counts), _invalidated(runs)]
    detail = [_settled_by(study, counts), _few(runs)]
    return AnswerRow(
        "Confidence",
        f"{'; '.join(text for text in said if text)}.",
        " ".join(text for text in detail if text),
        again(study, counts),
    )


def _graded(study: Study, counts: Sequence[int]) -> str:
    """The grade, by the cell with the fewest valid runs, and by how wide the CIs are."""
    valid = [count for count in counts if count]
    if study.status != "complete":
        return f"Incomplete: the study ended as {study.status}"
    if not valid:
        return "None: no run is valid"
    fewest, even = min(valid), len(set(valid)) == 1
    each = f"{'' if even else 'as few as '}{plural(fewest, 'run')} per cell"
    if spoilt := len(counts) - len(valid):
        have = "has" if spoilt == 1 else "have"
        return f"Partial: {spoilt} of {len(counts)} cells {have} no valid run, others {each}"
    if fewest == 1:
        return f"Unconfirmed: {each}, so {'' if even else 'some '}images/s have no 95 % CI"
    wide = _widest(study)
    sure = "Good" if fewest >= ADVISED_REPEATS else "Moderate"
    grade = "Low" if fewest < LEAST_REPEATS or wide > WIDE else sure
    return f"{grade}: {each}{_wide_said(wide)}"


def _wide_said(wide: float) -> str:
    if wide > 1:
        return ", 95 % CIs of images/s wider than ±100 %"
    return f", 95 % CIs of images/s up to ±{digits(100 * wide)} %" if wide else ""


def _widest(study: Study) -> float:
    """How far the widest 95 % CI of the fastest cells reaches above its mean, as a share; 0 without any."""
    rates = [one.rate for one in contenders(study) if not one.tainted]
    return max((rate.high / rate.value - 1 for rate in rates if rate.high is not None), default=0.0)


def _invalidated(runs: Runs) -> str:
    counts = Counter(code for run in runs for code in tainting(run))
    spoilt = sum(run.tainted for run in runs)
    told = ", ".join(f"{code} {count}" for code, count in ranked(counts))
    return f"{spoilt} of {plural(len(runs), 'run')} invalidated ({told})" if spoilt else ""


def repeats_advised(counts: Sequence[int]) -> int:
    """Runs of each cell that would tell more: five, or twice as many as there are."""
    fewest = min((count for count in counts if count), default=0)
    return ADVISED_REPEATS if fewest < ADVISED_REPEATS else 2 * fewest


def _settled_by(study: Study, counts: Sequence[int]) -> str:
    if study.status != "complete":
        return "Rerun it."
    if not any(counts):
        return "Repeats would not help before that is fixed."
    advised = repeats_advised(counts)
    told = f" (about {duration(60 * max(1, round(again_s(study, advised) / 60)))})" if study.timeline else ""
    what = "to confirm" if advised == ADVISED_REPEATS else "for narrower CIs"
    return f"Rerun with --repeats {advised} {what}{told}."


def again_s(study: Study, repeats: int) -> float:
    """How long a study of some seconds would take with so many repeats, by how long it took; in seconds.

    What came before the first second, the set-up, comes once.
    """
    made = max((run.repeat for run in study.started), default=1)
    begin, last = study.timeline[0].t_s, study.timeline[-1]
    return begin + repeats * (last.t_s + last.width_s - begin) / made


def again(study: Study, counts: Sequence[int]) -> str:
    """The study's own command, with more repeats where it was whole; empty where those would not help."""
    command = str((study.header.get("options") or {}).get("command") or "")
    if study.status != "complete":
        return command
    return repeated(command, repeats_advised(counts)) if any(counts) else ""


def _few(runs: Runs) -> str:
    """What the mark behind a percentile means, and a dash in its place, each where there is one."""
    shown = ("p95", "p99")
    rested = [behind(of, p95_ms) for of in by_cell(runs).values()]
    results = [sum(run.succeeded for run in of) for of in rested]
    marked = [name for name in shown if any(LEAST_RESULTS[name] <= n < ENOUGH[name] for n in results)]
    lacking = [name for name in ("p50", *shown) if any(0 < n < LEAST_RESULTS[name] for n in results)]
    mark = f"A {FEW}: few requests ({_needs(marked, ENOUGH)})." if marked else ""
    dash = f"A dash: too few requests ({_needs(lacking, LEAST_RESULTS)})." if lacking else ""
    return " ".join(filter(None, (mark, dash)))


def _needs(names: Sequence[str], results: Mapping[str, int]) -> str:
    """p95 needs 200, p99 1,000."""
    first, *others = names
    return ", ".join([f"{first} needs {results[first]:,}", *(f"{name} {results[name]:,}" for name in others)])


CONFIDENCE = Question("confidence", "", finds=confidence, theme=Theme.CONFIDENCE)
