"""What was found of loads with a course: latency by stage, when replicas came, and when they helped."""

from collections.abc import Iterator

from reports.caveats.run import ENOUGH
from reports.fold.autoscaling import Scaling, StageSeen
from reports.format import digits, ms, plural
from reports.study.study_reports import Study
from reports.topics.autoscaling.effect import Effect, effects
from reports.topics.autoscaling.tables import clock, highest, name_of, run_of

LONGEST = 160
"""Characters of Kubernetes' own words."""


def autoscaling_finding(study: Study) -> str:
    """Each run; empty without any."""
    return " ".join(f"{_name(study, one)}: {'; '.join(_said(one))}." for one in study.scalings)


def _name(study: Study, scaling: Scaling) -> str:
    spoilt = any(run.tainted for run in run_of(study, scaling))
    return f"{name_of(scaling)} (disqualified)" if spoilt else name_of(scaling)


def _said(scaling: Scaling) -> Iterator[str]:
    yield "p95 " + ", ".join(_p95(seen) for seen in scaling.seen[: len(scaling.stages)])
    if not scaling.watched:
        yield "no replicas were recorded (--kube-url)"
        return
    yield from _replicas(scaling)
    yield from map(_effect, effects(scaling))
    yield from _hindered(scaling)


def _p95(seen: StageSeen) -> str:
    """286 ms in ramp (51 results), the number where it is too small for a p95."""
    if seen.p95_ns is None:
        return f"none in {seen.stage.name}, where nothing succeeded"
    few = f" ({plural(seen.ok, 'result')})" if seen.ok < ENOUGH["p95"] else ""
    return f"{ms(seen.p95_ns)} ms in {seen.stage.name}{few}"


def _replicas(scaling: Scaling) -> Iterator[str]:
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


def _effect(effect: Effect) -> str:
    step = effect.step
    head = f"{step.before} → {step.after} at {clock(step.to_s)}"
    if effect.why:
        return f"{head} {effect.verdict} ({effect.why})"
    ratios = (("p95", effect.p95), ("served", effect.served))
    shown = ", ".join(f"{name} {found.times}" for name, found in ratios if found)
    failed = "; some requests failed" if effect.failed else ""
    rate = f"{digits(effect.rate_per_s)} requests/s before and after"
    return f"{head} {effect.verdict} ({shown} at {rate}{failed})"


def _hindered(scaling: Scaling) -> Iterator[str]:
    """What Kubernetes said against more pods."""
    inactive = [one.stated["hpa_inactive"] for one in scaling.moments if "hpa_inactive" in one.stated]
    refused = [one.stated["replica_failure"] for one in scaling.moments if "replica_failure" in one.stated]
    if inactive:
        seconds = plural(len(inactive), "second")
        yield f"the autoscaler had no metric to go by in {seconds} ({inactive[0]}): is metrics-server there?"
    if refused:
        yield f"Kubernetes refused pods: {str(refused[0])[:LONGEST].rstrip('.')}"
