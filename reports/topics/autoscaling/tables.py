"""Loads with a course: what came of each stage, what the autoscaler did, whether it helped; and a drawing."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from reports.fold.timeline import grouped_percentiles
from reports.format import MISSING, NS_PER_MS, counted, digits, known, listed, ms, plural, sentence
from reports.histogram.percentiles import ENOUGH
from reports.page.answer import AnswerRow
from reports.page.page import Chart
from reports.page.question import Question, Theme
from reports.page.study_table import few_samples
from reports.page.table import Footnotes, Table, TableCell, table_of
from reports.stats.paired import LEAST_REPEATS
from reports.stats.repeats import taints
from reports.study.autoscaling import AutoscaledRun, Change, Moment, StageSeen
from reports.study.study import Study
from reports.summary.summary import Summary
from reports.topics.autoscaling.effect import BLOCK_S, SAME_RATE, WINDOW_S, Effect, effects
from reports.topics.runs.runs import run_name
from reports.topics.runs.timeline import MOST_POINTS, Panel, drawn_panel

STAGES = (
    *("run", "stage", "seconds", "asked/s", "served/s", "p50 ms", "p95 ms", "failures", "dropped"),
    *("ready replicas", "CPU %"),
)
EVENTS = ("run", "at", "stage", "asked/s", "CPU %", "asked for", "ready", "took s")
EFFECTS = (
    *("run", "at", "ready replicas", "asked/s", "p95 after / before", "served after / before"),
    "verdict",
)
PUBLISHED = (
    "Published for step 8 (kind, CPU, one run, undated): under 600 requests 2 → 4 → 6 replicas in two steps "
    "30 s apart, p50 1,020 ms, 3.5 requests/s."
)
UNWATCHED = "No replicas were recorded: give --kube-url, the address that `kubectl proxy` serves at."
LONGEST = 160
"""Characters of Kubernetes' own words."""


def stages_table(study: Study) -> Table:
    """One row for each stage of each run."""
    notes = Footnotes()
    rows = [_stage(study, scaling, seen, notes) for scaling in study.scalings for seen in scaling.seen]
    unwatched = [one for one in study.scalings if not one.watched]
    said = [
        "A request counts where it ended, some after the load did, and a dropped one where it was due; "
        "percentiles are of the stage's requests. Replicas: fewest to most that were ready; CPU: the highest "
        "that the autoscaler saw, of a pod's request.",
        f"Seconds are taken {study.coarse} at a time, at a stage's edges too." if study.coarse > 1 else "",
        UNWATCHED if unwatched else "",
        PUBLISHED if study.header["study"] == "step8" and study.of_published_study else "",
    ]
    return table_of(
        "Stages of the load",
        STAGES,
        rows,
        caption=" ".join(filter(None, said)),
        notes=notes,
        numeric=range(2, len(STAGES)),
    )


def _stage(
    study: Study, scaling: AutoscaledRun, seen: StageSeen, notes: Footnotes
) -> tuple[TableCell | str, ...]:
    stage = seen.stage
    return (
        TableCell(run_name(scaling), notes.marks(taints(run_of(study, scaling)))),
        *(stage.name, f"{round(stage.seconds, 1):g}", _range(stage.first_per_s, stage.last_per_s)),
        digits(seen.ok / stage.seconds),
        _percentile("p50", seen.p50_ns, seen.ok),
        _percentile("p95", seen.p95_ns, seen.ok),
        *(
            counted(seen.failures),
            counted(seen.dropped),
            _range(*seen.replicas) if seen.replicas else MISSING,
            known(seen.cpu_pct),
        ),
    )


def _percentile(name: str, value_ns: float | None, behind: int) -> TableCell:
    return TableCell(ms(value_ns) + (few_samples(name, behind) if value_ns is not None else ""))


def events_table(study: Study) -> Table:
    """One row for each time that other numbers of replicas were asked for."""
    return table_of(
        "Autoscaler events",
        EVENTS,
        (_event(one, change) for one in study.scalings for change in one.desired),
        caption="Seconds count from the load's beginning, to the second. Its own look at CPU is up to half a "
        "minute old: metrics come every 15 s, and it decides every 15 s, unless it was set up otherwise.",
        numeric=(1, *range(3, len(EVENTS))),
    )


def _event(scaling: AutoscaledRun, change: Change) -> tuple[str, ...]:
    at = next(one for one in scaling.moments if one.end_s >= change.at_s)
    reached = change.reached_s
    return (
        *(run_name(scaling), clock(change.at_s), scaling.stage_at(change.at_s).name, digits(at.asked_per_s)),
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
            for one in study.scalings
            for effect in effects(one, study.scalings)
        ),
        caption=f"Blocks of {BLOCK_S} s or more before and after the step, in which the asked rate was "
        f"within {100 * SAME_RATE:g} % of that after it; ratios of their means with 95 % CIs. The "
        f"{WINDOW_S} s before more or fewer were asked for are left out, since they triggered it. What had "
        "piled up before a step counts against it. If noise lasts longer than a block, the verdict is "
        f"inconclusive. Repeats of a step beside {LEAST_REPEATS} runs or more of the same course without one "
        "are compared with those instead. Verdicts are at 5 % for both figures of a step together (Holm).",
        notes=notes,
        numeric=(1, 3, 4, 5),
    )


def _effect(
    study: Study, scaling: AutoscaledRun, effect: Effect, notes: Footnotes
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
        *(clock(step.to_s), f"{step.before} → {step.after}", digits(effect.rate_per_s)),
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


def run_of(study: Study, scaling: AutoscaledRun) -> list[Summary]:
    """The summary of the same run."""
    return [run for run in study.runs if (run.cell, run.repeat) == (scaling.cell, scaling.repeat)]


def _range(first: float, last: float) -> str:
    return f"{first:g}" if first == last else f"{first:g} to {last:g}"


def autoscaling_answer(study: Study) -> AnswerRow | None:
    """Whether scaling helped in each run, then what happened; None without any."""
    if not study.scalings:
        return None
    said = "; ".join(f"{_outcome(study, one)}{_of(study, one)}" for one in study.scalings)
    told = (f"{_name(study, one)}: {'; '.join(_said(study, one))}." for one in study.scalings)
    return AnswerRow("Did scaling help", f"{sentence(said)}.", " ".join(told))


def _outcome(study: Study, scaling: AutoscaledRun) -> str:
    """The verdicts on its steps, each once; why there are none."""
    found = dict.fromkeys(effect.verdict for effect in effects(scaling, study.scalings))
    if found:
        return listed(list(found))
    return "the number of replicas did not change" if scaling.watched else "replicas were not recorded"


def _of(study: Study, scaling: AutoscaledRun) -> str:
    return f" ({_name(study, scaling)})" if study.scalings[1:] else ""


def _name(study: Study, scaling: AutoscaledRun) -> str:
    spoilt = any(run.tainted for run in run_of(study, scaling))
    return f"{run_name(scaling)} (invalidated)" if spoilt else run_name(scaling)


def _said(study: Study, scaling: AutoscaledRun) -> Iterator[str]:
    yield "p95 " + ", ".join(_p95(seen) for seen in scaling.seen[: len(scaling.stages)])
    if not scaling.watched:
        yield "no replicas were recorded (--kube-url)"
        return
    yield from _replicas(scaling)
    yield from map(_effect_sentence, effects(scaling, study.scalings))
    yield from _hindered(scaling)


def _p95(seen: StageSeen) -> str:
    """286 ms in ramp (51 results), the number where it is too small for a p95."""
    if seen.p95_ns is None:
        few = f"{plural(seen.ok, 'result')} are too few" if seen.ok else "nothing succeeded"
        return f"none in {seen.stage.name}, where {few}"
    few = f" ({plural(seen.ok, 'result')})" if seen.ok < ENOUGH["p95"] else ""
    return f"{ms(seen.p95_ns)} ms in {seen.stage.name}{few}"


def _replicas(scaling: AutoscaledRun) -> Iterator[str]:
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


def _effect_sentence(effect: Effect) -> str:
    step = effect.step
    head = f"{step.before} → {step.after} at {clock(step.to_s)}"
    if effect.why:
        return f"{head} {effect.verdict} ({effect.why})"
    ratios = (("p95", effect.p95), ("served", effect.served))
    shown = ", ".join(f"{name} {found.times}" for name, found in ratios if found)
    failed = "; some requests failed" if effect.failed else ""
    rate = f"{digits(effect.rate_per_s)} requests/s before and after"
    return f"{head} {effect.verdict} ({shown} at {rate}{failed})"


def _hindered(scaling: AutoscaledRun) -> Iterator[str]:
    """What Kubernetes said against more pods."""
    inactive = [one.stated["hpa_inactive"] for one in scaling.moments if "hpa_inactive" in one.stated]
    refused = [one.stated["replica_failure"] for one in scaling.moments if "replica_failure" in one.stated]
    if inactive:
        seconds = plural(len(inactive), "second")
        yield f"the autoscaler had no metric to go by in {seconds} ({inactive[0]}): is metrics-server there?"
    if refused:
        yield f"Kubernetes refused pods: {str(refused[0])[:LONGEST].rstrip('.')}"


Value = Callable[[Moment], float | None]
MOST_RUNS = 6
CHART_CAPTION = (
    "Time counts from the load's beginning; ramp and cool-down are shaded. Asked is what the course says, "
    "served what ended right in the second up to each point; CPU is what the autoscaler sees. Percentiles "
    "are of as many neighbouring seconds as have the results that they take."
)


def stated(name: str) -> Value:
    """What Kubernetes said under a name."""
    return lambda one: one.stated.get(name)


def latency_ms(moments: Sequence[Moment], percent: float) -> Value:
    """A percentile of the requests that ended in a moment, with its neighbours where those are too few."""
    found = grouped_percentiles([("", one.latency) for one in moments], percent)
    told_ms = {one.s: ns / NS_PER_MS for one, ns in zip(moments, found, strict=True) if ns is not None}
    return lambda one: told_ms.get(one.s)


def latencies(moments: Sequence[Moment]) -> Panel[Moment]:
    """The panel of p50 and p95."""
    return "Latency", "ms", (("p50", latency_ms(moments, 50.0)), ("p95", latency_ms(moments, 95.0)))


PANELS: tuple[Panel[Moment], ...] = (
    (
        *("Rate", "requests/s"),
        (
            ("asked", lambda one: one.asked_per_s),
            ("served", lambda one: one.served_per_s),
            ("failed", lambda one: one.failures_per_s),
        ),
    ),
    (
        *("Replicas", ""),
        (
            ("ready", stated("ready_replicas")),
            ("asked for", stated("desired_replicas")),
            ("there", stated("replicas")),
        ),
    ),
    (
        *("CPU", "% of a pod's request"),
        (
            ("seen", stated("cpu_pct_of_request")),
            ("target", stated("hpa_target_cpu_pct")),
        ),
    ),
)


def autoscaling_charts(study: Study) -> Iterator[Chart]:
    """The first runs' drawings."""
    left_out = len(study.scalings) - MOST_RUNS
    notes = (f"{left_out} more runs are not drawn.",) if left_out > 0 else ()
    for scaling in study.scalings[:MOST_RUNS]:
        if scaling.moments:
            title = f"Load profile: {scaling.cell}, run {scaling.repeat}"
            yield Chart(title, CHART_CAPTION, "timeline", _data(scaling), notes)


def _data(scaling: AutoscaledRun) -> dict[str, Any]:
    moments = scaling.moments
    width = -(-len(moments) // MOST_POINTS)
    points = [moments[begin : begin + width] for begin in range(0, len(moments), width)]
    rate, *others = PANELS
    panels = (drawn_panel(points, *panel) for panel in (rate, latencies(moments), *others))
    end_s = max(scaling.stages[-1].end_s, moments[-1].end_s)
    aside = [(one.name, one.begin_s, one.end_s) for one in scaling.stages if one.name != "hold"]
    return {
        "t_s": [round(point[-1].end_s, 1) for point in points],
        "panels": [panel for panel in panels if panel["lines"]],
        "runs": [{"name": scaling.cell, "from": min(0, moments[0].end_s), "to": end_s, "aside": aside}],
    }


AUTOSCALING = Question(
    "autoscaling",
    "Autoscaling",
    (stages_table, events_table, effects_table, autoscaling_charts),
    autoscaling_answer,
    Theme.SPEED,
    unless=("rate-search", "open-load"),
)
