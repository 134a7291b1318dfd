"""Rate, latency, replicas and CPU of a load with a course, second by second: one drawing a run."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from reports.fold.autoscaling import AutoscaledRun, Moment
from reports.format import NS_PER_MS
from reports.histogram.buckets import percentiles_ns
from reports.page.chart import Chart, rounded
from reports.study.study import Study
from reports.topics.runs.timeline import MOST_POINTS

Value = Callable[[Moment], float | None]
MOST_RUNS = 6
CAPTION = (
    "Time counts from the load's beginning; ramp and cool-down are shaded. Asked is what the course says, "
    "served what ended right in the second up to each point; CPU is what the autoscaler sees."
)


def stated(name: str) -> Value:
    """What Kubernetes said under a name."""
    return lambda one: one.stated.get(name)


def latency_ms(percent: float) -> Value:
    """A percentile of the requests that ended in a moment."""

    def value(one: Moment) -> float | None:
        (found,) = percentiles_ns(one.latency, [percent])
        return None if found is None else found / NS_PER_MS

    return value


PANELS: tuple[tuple[str, str, tuple[tuple[str, Value], ...]], ...] = (
    (
        *("Rate", "requests/s"),
        (
            ("asked", lambda one: one.asked_per_s),
            ("served", lambda one: one.served_per_s),
            ("failed", lambda one: one.failures_per_s),
        ),
    ),
    ("Latency", "ms", (("p50", latency_ms(50.0)), ("p95", latency_ms(95.0)))),
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
LOGARITHMIC = frozenset({"Latency"})


def autoscaling_charts(study: Study) -> Iterator[Chart]:
    """The first runs' drawings."""
    left_out = len(study.scalings) - MOST_RUNS
    notes = (f"{left_out} more runs are not drawn.",) if left_out > 0 else ()
    for scaling in study.scalings[:MOST_RUNS]:
        if scaling.moments:
            title = f"Over the load's course: {scaling.cell}, run {scaling.repeat}"
            yield Chart(title, CAPTION, "timeline", _data(scaling), notes)


def _data(scaling: AutoscaledRun) -> dict[str, Any]:
    moments = scaling.moments
    width = -(-len(moments) // MOST_POINTS)
    points = [moments[begin : begin + width] for begin in range(0, len(moments), width)]
    panels = (_panel(points, *panel) for panel in PANELS)
    end_s = max(scaling.stages[-1].end_s, moments[-1].end_s)
    aside = [(one.name, one.begin_s, one.end_s) for one in scaling.stages if one.name != "hold"]
    return {
        "t_s": [round(point[-1].end_s, 1) for point in points],
        "panels": [panel for panel in panels if panel["lines"]],
        "runs": [{"name": scaling.cell, "from": min(0, moments[0].end_s), "to": end_s, "aside": aside}],
    }


def _panel(
    points: Sequence[Sequence[Moment]], title: str, unit: str, lines: Sequence[tuple[str, Value]]
) -> dict[str, Any]:
    """A panel with those of its lines that are known somewhere; a point of several moments is the highest."""
    drawn = [
        {"label": label, "values": [_highest(point, value) for point in points]} for label, value in lines
    ]
    told = [line for line in drawn if any(value is not None for value in line["values"])]
    return {"title": title, "unit": unit, "log": title in LOGARITHMIC, "lines": told}


def _highest(point: Sequence[Moment], value: Value) -> float | None:
    return rounded(max((found for one in point if (found := value(one)) is not None), default=None))
