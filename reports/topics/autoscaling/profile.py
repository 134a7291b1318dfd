"""Loads with a course: what came of each stage, where its knee lies, and a drawing."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import fmean
from typing import Any

from reports.fold.timeline import grouped_percentiles
from reports.format import MISSING, NS_PER_MS, counted, digits, known, ms, plural, sentence
from reports.histogram.buckets import mean_ns, percentiles_ns, together
from reports.histogram.percentiles import ENOUGH, LEAST_RESULTS
from reports.page.answer import AnswerRow
from reports.page.page import Chart
from reports.page.question import Question, Theme
from reports.page.study_table import few_samples
from reports.page.table import Footnotes, Table, TableCell, table_of
from reports.stats.knee import Level, knee_of, still_rising
from reports.stats.repeats import grouped, taints
from reports.study.course import CourseRun, Moment, StageSeen
from reports.study.study import Study
from reports.summary.summary import Summary
from reports.topics.runs.runs import run_name
from reports.topics.runs.timeline import MOST_POINTS, Panel, drawn_panel

OF_STAGE = ("served/s", "p50 ms", "p95 ms", "failures", "dropped")
OF_REPLICAS = ("ready replicas", "CPU %")
OF_REPLICAS_SAID = (
    "Replicas: fewest to most that were ready; CPU: the highest that the autoscaler saw, of a pod's request."
)
PUBLISHED = (
    "Published for step 8 (kind, CPU, one run, undated): under 600 requests 2 → 4 → 6 replicas in two steps "
    "30 s apart, p50 1,020 ms, 3.5 requests/s."
)
UNWATCHED = "No replicas were recorded: give --kube-url, the address that `kubectl proxy` serves at."
UNITS = {"open": "requests/s", "closed": "users"}
TENTHS = 10
"""A knee is looked for among as many levels below the peak, and it: a course has any number of them."""
LEAST_LEVELS = 3
MOST_SAID = 3
NEAR_PEAK = 0.9


def stages_table(study: Study) -> Table:
    """One row for each stage of each run."""
    notes, step8 = Footnotes(), study.header["study"] == "step8"
    watched = any(one.watched for one in study.courses)
    heads_by_load = {"open": "asked/s", "closed": "users"}
    asked = ", or ".join(dict.fromkeys(heads_by_load[one.load] for one in study.courses))
    said = [
        "A request counts where it ended, some after the load did, and a dropped one where it was due; "
        "percentiles are of the stage's requests.",
        OF_REPLICAS_SAID if watched else "",
        f"Seconds are taken {study.coarse} at a time, at a stage's edges too." if study.coarse > 1 else "",
        UNWATCHED if step8 and not all(one.watched for one in study.courses) else "",
        PUBLISHED if step8 and study.of_published_study else "",
    ]
    heads = ("run", "stage", "seconds", asked, *OF_STAGE, *(OF_REPLICAS if watched else ()))
    rows = (_stage(study, scaling, seen, notes) for scaling in study.courses for seen in scaling.seen)
    return table_of(
        "Stages of the load",
        heads,
        (row[: len(heads)] for row in rows),
        caption=" ".join(filter(None, said)),
        notes=notes,
        numeric=range(2, len(heads)),
    )


def _stage(
    study: Study, scaling: CourseRun, seen: StageSeen, notes: Footnotes
) -> tuple[TableCell | str, ...]:
    stage = seen.stage
    return (
        TableCell(run_name(scaling), notes.marks(taints(run_of(study, scaling)))),
        *(stage.name, f"{round(stage.seconds, 1):g}", span(stage.first, stage.last)),
        digits(seen.ok / stage.seconds),
        _percentile("p50", seen.p50_ns, seen.ok),
        _percentile("p95", seen.p95_ns, seen.ok),
        *(
            counted(seen.failures),
            counted(seen.dropped),
            span(*seen.replicas) if seen.replicas else MISSING,
            known(seen.cpu_pct),
        ),
    )


def _percentile(name: str, value_ns: float | None, behind: int) -> TableCell:
    return TableCell(ms(value_ns) + (few_samples(name, behind) if value_ns is not None else ""))


def span(first: float, last: float) -> str:
    """`6 to 60`, or one of them where both are the same."""
    return f"{first:.4g}" if first == last else f"{first:.4g} to {last:.4g}"


def run_of(study: Study, scaling: CourseRun) -> list[Summary]:
    """The summary of the same run."""
    return [run for run in study.runs if (run.cell, run.repeat) == (scaling.cell, scaling.repeat)]


def spoilt(study: Study, scaling: CourseRun) -> bool:
    """Whether something invalidates the run."""
    return any(run.tainted for run in run_of(study, scaling))


@dataclass(frozen=True)
class CourseKnee:
    """The level with the greatest throughput by latency, p95 or mean; `rising`: it lies above the peak."""

    asked: float
    served_per_s: float
    latency_ms: float
    by_p95: bool
    rising: bool


def knee(runs: Sequence[CourseRun]) -> CourseKnee | None:
    """By tenths of the peak, until the load first leaves the peak; None of fewer than three levels.

    Later, what had piled up would be counted against lower levels. Each repeat gives a level one rate.
    """
    by_level = dict[int, list[list[Moment]]]()
    for scaling in runs:
        for level, of in _by_tenth(scaling).items():
            by_level.setdefault(level, []).append(of)
    found = {level: of for level, of in by_level.items() if level and all(_served(each) for each in of)}
    latencies = {level: together(one.latency for each in of for one in each) for level, of in found.items()}
    by_p95 = all(one.total >= LEAST_RESULTS["p95"] for one in latencies.values())
    levels = []
    for level in sorted(found):
        (p95_ns,) = percentiles_ns(latencies[level], [95.0])
        latency_ns = (p95_ns if by_p95 else mean_ns(latencies[level])) or 0.0
        rates = tuple(map(_served, found[level]))
        asked = fmean(one.asked for of in found[level] for one in of)
        levels.append(Level(asked, rates, latency_ns / NS_PER_MS))
    if len(levels) < LEAST_LEVELS:
        return None
    best, rising = knee_of(levels), still_rising(levels)
    shown = levels[-1] if rising else best
    return CourseKnee(shown.users, shown.rate, shown.latency_ms, by_p95, rising)


def peak(scaling: CourseRun) -> float:
    """The most that its course asks for."""
    return max(max(stage.first, stage.last) for stage in scaling.stages)


def _climb(scaling: CourseRun) -> list[Moment]:
    """The seconds of its course until it leaves its peak."""
    top, kept = peak(scaling) * (1 - 0.5 / TENTHS), list[Moment]()
    end_s = scaling.stages[-1].end_s
    for one in scaling.moments:
        if one.s < 0 or one.end_s > end_s or (kept and kept[-1].asked >= top > one.asked):
            if kept and one.s >= 0:
                break
            continue
        kept.append(one)
    return kept


def _by_tenth(scaling: CourseRun) -> dict[int, list[Moment]]:
    top = peak(scaling)
    return grouped(_climb(scaling), lambda one: round(TENTHS * one.asked / top))


def _served(moments: Sequence[Moment]) -> float:
    return sum(one.ok for one in moments) / sum(one.width_s for one in moments)


def profile_answer(study: Study) -> AnswerRow | None:
    """The knee of each cell, then what came of its stages; None without a course."""
    cells = list(grouped(study.courses, lambda one: one.cell).items())
    if not cells:
        return None
    knees = [_knee_said(runs) for _, runs in cells[:MOST_SAID]]
    named = (f"{name}: {found}" for (name, _), found in zip(cells, knees, strict=False))
    said = "; ".join(named) if cells[1:] else sentence(knees[0])
    left = len(cells) - MOST_SAID
    told = [_stages_said(study, name, runs) for name, runs in cells[:MOST_SAID]]
    more = [f"{plural(left, 'other cell')} in the table under Load profile."] if left > 0 else []
    return AnswerRow("Load profile", f"{said}.", " ".join([*told, *more]))


def _knee_said(runs: Sequence[CourseRun]) -> str:
    found, unit = knee(runs), UNITS[runs[0].load]
    if found is None:
        return "its levels are too few for a knee"
    latency = "p95" if found.by_p95 else "mean latency"
    told = f"{digits(found.served_per_s)}/s served, {latency} {digits(found.latency_ms)} ms"
    if found.rising:
        return f"no knee up to {found.asked:.4g} {unit} ({told})"
    return f"knee at about {found.asked:.4g} {unit} ({told})"


def _stages_said(study: Study, name: str, runs: Sequence[CourseRun]) -> str:
    """By stage, over the repeats: served, p95 and what did not come back right."""
    invalid = " (invalidated)" if any(spoilt(study, one) for one in runs) else ""
    every = (seen for one in runs for seen in one.seen if seen.stage is not one.tail)
    told = (f"{stage} {_stage_said(of)}" for stage, of in grouped(every, lambda it: it.stage.name).items())
    return f"{name}{invalid}: {'; '.join(told)}."


def _stage_said(seen: Sequence[StageSeen]) -> str:
    ok, seconds = sum(one.ok for one in seen), sum(one.stage.seconds for one in seen)
    p95s = [one.p95_ns for one in seen if one.p95_ns is not None]
    lost = [
        f"{count:,} {what}"
        for what in ("failures", "dropped")
        if (count := sum(getattr(one, what) for one in seen))
    ]
    of_repeats = span(*(float(f"{ns / NS_PER_MS:.3g}") for ns in (min(p95s), max(p95s)))) if p95s else ""
    p95 = [f"p95 {of_repeats} ms"] if p95s else []
    return ", ".join([f"{digits(ok / seconds)}/s", *p95, *lost])


def p95_said(seen: StageSeen) -> str:
    """286 ms in ramp (51 results), the number where it is too small for a p95."""
    if seen.p95_ns is None:
        few = f"{plural(seen.ok, 'result')} are too few" if seen.ok else "nothing succeeded"
        return f"none in {seen.stage.name}, where {few}"
    few = f" ({plural(seen.ok, 'result')})" if seen.ok < ENOUGH["p95"] else ""
    return f"{ms(seen.p95_ns)} ms in {seen.stage.name}{few}"


Value = Callable[[Moment], float | None]
MOST_RUNS = 6
CHART_CAPTION = (
    f"Time counts from the load's beginning; stages below {100 * NEAR_PEAK:g} % of the peak are shaded. "
    "Asked is what the course says, served what ended right in the second up to each point; CPU is what the "
    "autoscaler sees. Percentiles are of as many neighbouring seconds as have the results that they take."
)


def stated(name: str) -> Value:
    """What Kubernetes said under a name."""
    return lambda one: one.stated.get(name)


def latency_ms(moments: Sequence[Moment], percent: float) -> Value:
    """A percentile of the requests that ended in a moment, with its neighbours where those are too few."""
    found = grouped_percentiles([("", one.latency) for one in moments], percent)
    told_ms = {one.s: ns / NS_PER_MS for one, ns in zip(moments, found, strict=True) if ns is not None}
    return lambda one: told_ms.get(one.s)


def panels_of(scaling: CourseRun) -> Iterator[Panel[Moment]]:
    """Load, throughput and latency, then what Kubernetes said."""
    asked: tuple[str, Value] = ("asked", lambda one: one.asked)
    served: tuple[str, Value] = ("served", lambda one: one.served_per_s)
    failed: tuple[str, Value] = ("failed", lambda one: one.failures_per_s)
    if scaling.load == "closed":
        yield "Users", "", (asked,)
        yield "Rate", "requests/s", (served, failed)
    else:
        yield "Rate", "requests/s", (asked, served, failed)
    latencies = (("p50", 50.0), ("p95", 95.0))
    yield "Latency", "ms", tuple((name, latency_ms(scaling.moments, percent)) for name, percent in latencies)
    replicas = (("ready", "ready_replicas"), ("asked for", "desired_replicas"), ("there", "replicas"))
    yield "Replicas", "", tuple((label, stated(name)) for label, name in replicas)
    cpu = (("seen", "cpu_pct_of_request"), ("target", "hpa_target_cpu_pct"))
    yield "CPU", "% of a pod's request", tuple((label, stated(name)) for label, name in cpu)


def profile_charts(study: Study) -> Iterator[Chart]:
    """The first runs' drawings, of which the first says how to read them."""
    left_out = len(study.courses) - MOST_RUNS
    notes = (f"{left_out} more runs are not drawn.",) if left_out > 0 else ()
    caption = CHART_CAPTION
    for scaling in study.courses[:MOST_RUNS]:
        if scaling.moments:
            title = f"Load profile: {scaling.cell}, run {scaling.repeat}"
            yield Chart(title, caption, "timeline", _data(scaling), notes)
            caption = ""


def _data(scaling: CourseRun) -> dict[str, Any]:
    moments = scaling.moments
    width = -(-len(moments) // MOST_POINTS)
    points = [moments[begin : begin + width] for begin in range(0, len(moments), width)]
    panels = (drawn_panel(points, *panel) for panel in panels_of(scaling))
    end_s = max(scaling.stages[-1].end_s, moments[-1].end_s)
    return {
        "t_s": [round(point[-1].end_s, 1) for point in points],
        "panels": [panel for panel in panels if panel["lines"]],
        "since": "the load's beginning",
        "runs": [
            {
                "name": scaling.cell,
                "from": min(0, moments[0].end_s),
                "to": end_s,
                "aside": list(_aside(scaling)),
            }
        ],
    }


def _aside(scaling: CourseRun) -> Iterable[tuple[str, float, float]]:
    """Stages of one name in a row that are not near the peak, from when to when."""
    for name, of in groupby(scaling.stages, key=lambda stage: stage.name):
        here = list(of)
        seconds = sum(stage.seconds for stage in here)
        if sum(stage.asked * stage.seconds for stage in here) < NEAR_PEAK * peak(scaling) * seconds:
            yield name, here[0].begin_s, here[-1].end_s


LOAD_PROFILE = Question(
    "load-profile", "Load profile", (stages_table, profile_charts), profile_answer, Theme.SPEED
)
