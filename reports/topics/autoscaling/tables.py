"""Loads with a course: what came of each stage, what the autoscaler did, and whether it helped."""

from collections.abc import Iterable, Iterator

from reports.caveats.run import ENOUGH
from reports.fold.autoscaling import AutoscaledRun, Change, Moment, StageSeen
from reports.format import MISSING, counted, digits, known, ms, plural
from reports.page.disclosures import disclosures
from reports.page.table import Footnotes, Table, TableCell
from reports.stats.log_ratio import LogRatio
from reports.stats.repeats import taints
from reports.study.study import Study
from reports.summary.summary import Summary
from reports.topics.autoscaling.effect import BLOCK_S, SAME_RATE, Effect, effects

STAGES = (
    *("run", "stage", "seconds", "asked/s", "served/s", "p50 ms", "p95 ms", "failures", "dropped"),
    *("ready replicas", "CPU %"),
)
EVENTS = ("run", "at", "stage", "asked/s", "CPU %", "asked for", "ready", "took s")
EFFECTS = (
    "run",
    "at",
    "ready replicas",
    "asked/s",
    "p95 after / before",
    "served after / before",
    "verdict",
)
PUBLISHED = (
    "Published for step 8 (kind, CPU, one run, undated): under 600 requests 2 → 4 → 6 replicas in two steps "
    "30 s apart, p50 1,020 ms, 3.5 requests/s."
)
UNWATCHED = "No replicas were recorded: give --kube-url, the address that `kubectl proxy` serves at."
LONGEST = 160
"""Characters of Kubernetes' own words."""


def autoscaling_tables(study: Study) -> Iterator[Table]:
    """All three; those without a row say nothing."""
    yield stages_table(study)
    yield events_table(study)
    yield effects_table(study)


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
        PUBLISHED if study.header["study"] == "step8" else "",
    ]
    return Table(
        "Stages of the load",
        " ".join(text for text in said if text),
        STAGES,
        tuple(rows),
        notes.texts,
        numeric=frozenset(range(2, len(STAGES))),
        shared=tuple(disclosures(study, (one.endpoint for one in study.scalings))),
    )


def _stage(study: Study, scaling: AutoscaledRun, seen: StageSeen, notes: Footnotes) -> tuple[TableCell, ...]:
    stage = seen.stage
    return (
        TableCell(name_of(scaling), notes.marks(taints(run_of(study, scaling)))),
        TableCell(stage.name),
        TableCell(f"{round(stage.seconds, 1):g}"),
        TableCell(_rates(stage.first_per_s, stage.last_per_s)),
        TableCell(digits(seen.ok / stage.seconds)),
        *(
            _percentile(name, value, seen.ok, notes)
            for name, value in (("p50", seen.p50_ns), ("p95", seen.p95_ns))
        ),
        TableCell(counted(seen.failures)),
        TableCell(counted(seen.dropped)),
        TableCell(_range(seen.replicas)),
        TableCell(known(seen.cpu_pct)),
    )


def _percentile(name: str, value_ns: float | None, behind: int, notes: Footnotes) -> TableCell:
    few = [f"few-samples: {name} needs {plural(ENOUGH[name], 'result')}"] if behind < ENOUGH[name] else []
    return TableCell(ms(value_ns), notes.marks(few) if value_ns is not None else ())


def events_table(study: Study) -> Table:
    """One row for each time that other numbers of replicas were asked for."""
    rows = [_event(one, change) for one in study.scalings for change in one.desired]
    return Table(
        "What the autoscaler did",
        "Seconds count from the load's beginning, to the second. Its own look at CPU is up to half a minute "
        "old: metrics come every 15 s, and it decides every 15 s, unless it was set up otherwise.",
        EVENTS,
        tuple(rows),
        numeric=frozenset({1, *range(3, len(EVENTS))}),
    )


def _event(scaling: AutoscaledRun, change: Change) -> tuple[TableCell, ...]:
    at = next(one for one in scaling.moments if one.end_s >= change.at_s)
    reached = change.reached_s
    return (
        TableCell(name_of(scaling)),
        TableCell(clock(change.at_s)),
        TableCell(scaling.stage_at(change.at_s).name),
        TableCell(digits(at.asked_per_s)),
        TableCell(known(at.stated.get("cpu_pct_of_request"))),
        TableCell(f"{change.before} → {change.after}"),
        TableCell(MISSING if reached is None else clock(reached)),
        TableCell(MISSING if reached is None else f"{round(reached - change.at_s)}"),
    )


def effects_table(study: Study) -> Table:
    """One row for each step of ready replicas."""
    notes = Footnotes()
    rows = [_effect(study, one, effect, notes) for one in study.scalings for effect in effects(one)]
    return Table(
        "Did other numbers of replicas help?",
        f"Blocks of {BLOCK_S} s or more right before and after the step, in which the asked rate was within "
        f"{100 * SAME_RATE:g} % of that after it; ratios of their means with 95 % intervals. What had piled "
        "up before a step counts against it. Blocks are taken as independent: where what varies lasts longer "
        "than a block, an interval is too narrow. Two figures of each step are looked at.",
        EFFECTS,
        tuple(rows),
        notes.texts,
        numeric=frozenset({1, 3, 4, 5}),
    )


def _effect(study: Study, scaling: AutoscaledRun, effect: Effect, notes: Footnotes) -> tuple[TableCell, ...]:
    step, (before, after) = effect.step, effect.blocks
    said = [effect.why or f"blocks of {effect.block_s} s: {before} before, {after} after"]
    said += ["requests failed in some of these seconds; p95 is of the successes"] if effect.failed else []
    return (
        TableCell(name_of(scaling), notes.marks(taints(run_of(study, scaling)))),
        TableCell(clock(step.to_s)),
        TableCell(f"{step.before} → {step.after}"),
        TableCell(digits(effect.rate_per_s)),
        TableCell(_times(effect.p95)),
        TableCell(_times(effect.served)),
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


def name_of(scaling: AutoscaledRun) -> str:
    """Its cell, and its repeat from the second on."""
    return scaling.cell if scaling.repeat == 1 else f"{scaling.cell} r{scaling.repeat}"


def _rates(first: float, last: float) -> str:
    return f"{first:g}" if first == last else f"{first:g} to {last:g}"


def _range(found: tuple[int, int] | None) -> str:
    if found is None:
        return MISSING
    return str(found[0]) if found[0] == found[1] else f"{found[0]} to {found[1]}"


def _times(found: LogRatio | None) -> str:
    return found.times if found else MISSING


def autoscaling_finding(study: Study) -> str:
    """Each run; empty without any."""
    return " ".join(f"{_name(study, one)}: {'; '.join(_said(one))}." for one in study.scalings)


def _name(study: Study, scaling: AutoscaledRun) -> str:
    spoilt = any(run.tainted for run in run_of(study, scaling))
    return f"{name_of(scaling)} (disqualified)" if spoilt else name_of(scaling)


def _said(scaling: AutoscaledRun) -> Iterator[str]:
    yield "p95 " + ", ".join(_p95(seen) for seen in scaling.seen[: len(scaling.stages)])
    if not scaling.watched:
        yield "no replicas were recorded (--kube-url)"
        return
    yield from _replicas(scaling)
    yield from map(_effect_sentence, effects(scaling))
    yield from _hindered(scaling)


def _p95(seen: StageSeen) -> str:
    """286 ms in ramp (51 results), the number where it is too small for a p95."""
    if seen.p95_ns is None:
        return f"none in {seen.stage.name}, where nothing succeeded"
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
