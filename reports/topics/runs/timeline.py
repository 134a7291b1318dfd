"""The timelines of a study: every run's seconds on one axis, a panel for each kind of figure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from reports.fold.timeline import TimelineSecond
from reports.format import NS_PER_MS
from reports.page.chart import Chart, rounded
from reports.page.disclosures import disclosures
from reports.study.study import Study

MOST_POINTS = 4_000
"""In one drawing; more seconds than that are drawn several to a point."""
TITLE = "Second by second"
CAPTION = (
    "Every run of the study on one time axis; what is shaded is warm-up or drain and in no other figure. "
    "Breaks are where nothing was under way. timeline.csv beside this file has the numbers."
)


@dataclass(frozen=True)
class Line:
    """One line of a panel: the attribute of a TimelineSecond, and what its values are divided by."""

    label: str
    name: str
    unit: float = 1.0


PANELS: tuple[tuple[str, str, tuple[Line, ...]], ...] = (
    (
        *("Latency", "ms"),
        tuple(Line(f"p{percent}", f"latency_p{percent}_ns", NS_PER_MS) for percent in (50, 95, 99)),
    ),
    ("Throughput", "images/s", (Line("images/s", "images_per_s"),)),
    ("Failures", "requests/s", (Line("failures/s", "failures_per_s"),)),
    ("Requests in flight", "", (Line("in flight", "in_flight"), Line("users", "users"))),
    (
        *("Server", "ms a request"),
        (Line("queue", "server_queue_ns", NS_PER_MS), Line("compute", "server_compute_ns", NS_PER_MS)),
    ),
    ("Executed batch", "images", (Line("executed batch", "executed_batch"),)),
    ("GPU utilisation", "%", (Line("GPU", "gpu_util_pct"),)),
    ("GPU memory", "GB", (Line("memory", "gpu_memory_bytes", 1e9),)),
    ("GPU power", "W", (Line("power", "gpu_power_w"),)),
    ("CPU", "%", (Line("busiest worker, of a core", "worker_cpu_pct"), Line("host, of all", "host_cpu_pct"))),
    (
        *("Master's network", "Mbit/s"),
        (Line("sent", "tx_bytes_per_s", 1e6 / 8), Line("received", "rx_bytes_per_s", 1e6 / 8)),
    ),
)
LOGARITHMIC = frozenset({"Latency"})


def timeline_chart(study: Study) -> Chart | None:
    """The chart; None where no run has a second."""
    if not study.timeline:
        return None
    width = -(-len(study.timeline) // MOST_POINTS)
    points = list(_points(study.timeline, width))
    found = [_panel(points, *panel) for panel in PANELS]
    panels = [panel for panel in found if panel["lines"]]
    lacking = [panel["title"] for panel in found if not panel["lines"]]
    runs = list(_runs(study.timeline))
    data = {"t_s": [_begin(point) for point in points], "panels": panels, "runs": runs}
    said = (_caption(width, study.coarse, lacking), *disclosures(study, study.endpoints))
    return Chart(TITLE, " ".join(said), "timeline", data)


def _caption(width: int, coarse_s: int, lacking: Sequence[str]) -> str:
    """With how many of the timeline's rows, and so seconds, are behind a point."""
    spans = "seconds" if coarse_s == 1 else f"spans of {coarse_s} seconds"
    coarse = f"Each point is the highest of {width} {spans}. " if width > 1 else ""
    unknown = f" Not known here: {', '.join(lacking)}." if lacking else ""
    return f"{CAPTION} {coarse}".rstrip() + unknown


def _points(seconds: Sequence[TimelineSecond], width: int) -> Iterator[Sequence[TimelineSecond]]:
    """Seconds of one run, `width` at a time, with an empty point after each run, which breaks the lines."""
    for _, run in groupby(seconds, key=_run):
        here = list(run)
        yield from (here[start : start + width] for start in range(0, len(here), width))
        yield ()


def _run(second: TimelineSecond) -> tuple[str, int]:
    return second.cell, second.repeat


def _begin(point: Sequence[TimelineSecond]) -> int | None:
    return point[0].t_s if point else None


def _end(second: TimelineSecond) -> int:
    return second.t_s + second.width_s


def _panel(
    points: Sequence[Sequence[TimelineSecond]], title: str, unit: str, lines: Sequence[Line]
) -> dict[str, Any]:
    """A panel with those of its lines that are known somewhere."""
    drawn = [{"label": line.label, "values": [_highest(point, line) for point in points]} for line in lines]
    known = [line for line in drawn if any(value is not None for value in line["values"])]
    return {"title": title, "unit": unit, "log": title in LOGARITHMIC, "lines": known}


def _highest(point: Sequence[TimelineSecond], line: Line) -> float | None:
    found = [value for second in point if (value := getattr(second, line.name)) is not None]
    return rounded(max(found) / line.unit) if found else None


def _runs(seconds: Sequence[TimelineSecond]) -> Iterator[dict[str, Any]]:
    """Each run's name, its first and last second, and the spans of it that are no measure phase."""
    before = seconds[0].t_s
    for (cell, repeat), run in groupby(seconds, key=_run):
        here = list(run)
        name = cell if repeat == 1 else f"{cell} r{repeat}"
        phases = ((phase, list(part)) for phase, part in groupby(here, key=lambda it: it.phase))
        spans = [(phase, max(before, part[0].t_s), _end(part[-1])) for phase, part in phases]
        aside = [span for span in spans if span[0] != "measure"]
        yield {"name": name, "from": here[0].t_s, "to": _end(here[-1]), "aside": aside}
        before = _end(here[-1])
