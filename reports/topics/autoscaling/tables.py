"""What an autoscaler did under a load with a course, and whether it helped."""

from collections.abc import Iterable, Iterator

from reports.format import MISSING, digits, known, listed, plural, sentence
from reports.page.answer import AnswerRow
from reports.page.question import Question, Theme
from reports.page.table import Footnotes, Table, TableCell, table_of
from reports.stats.paired import LEAST_REPEATS
from reports.stats.repeats import taints
from reports.study.course import Change, CourseRun, Moment
from reports.study.study import Study
from reports.topics.autoscaling.effect import BLOCK_S, SAME_RATE, WINDOW_S, Effect, effects
from reports.topics.autoscaling.profile import UNITS, p95_said, run_of, spoilt
from reports.topics.runs.runs import run_name

EVENTS = ("run", "at", "stage", "load", "CPU %", "asked for", "ready", "took s")
EFFECTS = (
    *("run", "at", "ready replicas", "load", "p95 after / before", "served after / before"),
    "verdict",
)
LONGEST = 160
"""Characters of Kubernetes' own words."""


def events_table(study: Study) -> Table:
    """One row for each time that other numbers of replicas were asked for."""
    return table_of(
        "Autoscaler events",
        EVENTS,
        (_event(one, change) for one in study.courses for change in one.desired),
        caption="Seconds count from the load's beginning, to the second; load is what its course asks for. "
        "The autoscaler's look at CPU is up to half a minute old: metrics come every 15 s, and it decides "
        "every 15 s, unless it was set up otherwise.",
        numeric=(1, *range(3, len(EVENTS))),
    )


def _event(scaling: CourseRun, change: Change) -> tuple[str, ...]:
    at = next(one for one in scaling.moments if one.end_s >= change.at_s)
    reached = change.reached_s
    return (
        *(run_name(scaling), clock(change.at_s), scaling.stage_at(change.at_s).name, digits(at.asked)),
        known(at.stated.get("cpu_pct_of_request")),
        f"{change.before} → {change.after}",
        MISSING if reached is None else clock(reached),
        MISSING if reached is None else f"{round(reached - change.at_s)}",
    )


def effects_table(study: Study) -> Table:
    """One row for each step of ready replicas."""
    notes = Footnotes()
    return table_of(
        "Did more or fewer replicas help?",
        EFFECTS,
        (
            _effect(study, one, effect, notes)
            for one in study.courses
            for effect in effects(one, study.courses)
        ),
        caption=f"Blocks of {BLOCK_S} s or more before and after the step, in which the load was "
        f"within {100 * SAME_RATE:g} % of that after it; ratios of their means with 95 % CIs. The "
        f"{WINDOW_S} s before more or fewer were asked for are left out, since they triggered it. What had "
        "piled up before a step counts against it. If noise lasts longer than a block, the verdict is "
        f"inconclusive. Repeats of a step beside {LEAST_REPEATS} runs or more of the same course without one "
        "are compared with those instead. Verdicts are at 5 % for both figures of a step together (Holm).",
        notes=notes,
        numeric=(1, 3, 4, 5),
    )


def _effect(
    study: Study, scaling: CourseRun, effect: Effect, notes: Footnotes
) -> tuple[TableCell | str, ...]:
    step, (before, after) = effect.step, effect.blocks
    said = [effect.why] if effect.why else []
    if effect.pairs:
        said += [f"{effect.pairs} repeats, over the same seconds of as many runs without a step"]
    elif effect.block_s:
        said += [f"blocks of {effect.block_s} s: {before} before, {after} after"]
    said += ["requests failed in some of these seconds; p95 is of the successes"] if effect.failed else []
    return (
        TableCell(run_name(scaling), notes.marks(taints(run_of(study, scaling)))),
        *(clock(step.to_s), f"{step.before} → {step.after}", digits(effect.asked)),
        *(found.times if found else MISSING for found in (effect.p95, effect.served)),
        TableCell(effect.verdict, notes.marks(said)),
    )


def clock(seconds: float) -> str:
    """1:05 for 65 seconds; what was a moment before the beginning is 0:00."""
    whole = max(0, round(seconds))
    return f"{whole // 60}:{whole % 60:02}"


def highest(moments: Iterable[Moment], name: str) -> float | None:
    """The most of what was stated under a name."""
    return max((found for one in moments if (found := one.stated.get(name)) is not None), default=None)


def autoscaling_answer(study: Study) -> AnswerRow | None:
    """Whether scaling helped in each run with recorded replicas, then what happened; None without any."""
    watched = [one for one in study.courses if one.watched]
    if not watched:
        return None
    of = [f" ({_name(study, one)})" if watched[1:] else "" for one in watched]
    said = "; ".join(f"{_outcome(study, one)}{name}" for one, name in zip(watched, of, strict=True))
    told = (f"{_name(study, one)}: {'; '.join(_said(study, one))}." for one in watched)
    return AnswerRow("Did scaling help", f"{sentence(said)}.", " ".join(told))


def _outcome(study: Study, scaling: CourseRun) -> str:
    """The verdicts on its steps, each once; why there are none."""
    found = dict.fromkeys(effect.verdict for effect in effects(scaling, study.courses))
    return listed(list(found)) if found else "the number of replicas did not change"


def _name(study: Study, scaling: CourseRun) -> str:
    return f"{run_name(scaling)} (invalidated)" if spoilt(study, scaling) else run_name(scaling)


def _said(study: Study, scaling: CourseRun) -> Iterator[str]:
    yield "p95 " + ", ".join(p95_said(seen) for seen in scaling.seen if seen.stage is not scaling.tail)
    yield from _replicas(scaling)
    yield from (_effect_sentence(effect, UNITS[scaling.load]) for effect in effects(scaling, study.courses))
    yield from _hindered(scaling)


def _replicas(scaling: CourseRun) -> Iterator[str]:
    """How many there were, and how long they took to come."""
    counts = [one.stated["ready_replicas"] for one in scaling.moments if "ready_replicas" in one.stated]
    first, most, last = counts[0], max(counts), counts[-1]
    if most == first:
        yield f"{plural(first, 'replica')} at first, and never more"
        return
    reached_s = scaling.first("ready_replicas", most)
    assert reached_s is not None
    said = f"from {first} to {most} ready replicas, reached after {round(reached_s)} s"
    target = highest(scaling.moments, "hpa_target_cpu_pct")
    above_s = scaling.first("cpu_pct_of_request", target + 1) if target else None
    if above_s is not None and above_s <= reached_s:
        said += f", {round(reached_s - above_s)} s after CPU was seen above its target of {target:g} %"
    yield said
    yield f"at the end {last}" + (", as at first" if last == first else "")


def _effect_sentence(effect: Effect, unit: str) -> str:
    step = effect.step
    head = f"{step.before} → {step.after} at {clock(step.to_s)}"
    if effect.why:
        return f"{head} {effect.verdict} ({effect.why})"
    ratios = (("p95", effect.p95), ("served", effect.served))
    shown = ", ".join(f"{name} {found.times}" for name, found in ratios if found)
    failed = "; some requests failed" if effect.failed else ""
    load = f"{digits(effect.asked)} {unit} before and after"
    return f"{head} {effect.verdict} ({shown} at {load}{failed})"


def _hindered(scaling: CourseRun) -> Iterator[str]:
    """What Kubernetes said against more pods."""
    inactive = [one.stated["hpa_inactive"] for one in scaling.moments if "hpa_inactive" in one.stated]
    refused = [one.stated["replica_failure"] for one in scaling.moments if "replica_failure" in one.stated]
    if inactive:
        seconds = plural(len(inactive), "second")
        yield f"the autoscaler had no metric to go by in {seconds} ({inactive[0]}): is metrics-server there?"
    if refused:
        yield f"Kubernetes refused pods: {str(refused[0])[:LONGEST].rstrip('.')}"


AUTOSCALING = Question(
    "autoscaling",
    "Autoscaling",
    (events_table, effects_table),
    autoscaling_answer,
    Theme.SPEED,
    unless=("rate-search", "open-load"),
)
