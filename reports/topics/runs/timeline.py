"""The timelines of a study: every run's seconds on one axis, a panel for each kind of figure."""

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any, TypeVar

from reports.fold.timeline import TimelineSecond
from reports.format import NS_PER_MS
from reports.page.page import Chart, rounded
from reports.page.question import Question
from reports.study.study import Study
from reports.topics.runs.runs import run_name

MOST_POINTS = 4_000
"""In one drawing; more seconds than that are drawn several to a point."""
TITLE = "Second by second"
CAPTION = (
    "Every run of the study on one time axis; what is shaded is warm-up or drain and in no other figure. "
    "Breaks are where nothing was under way. A percentile is of as many neighbouring seconds as have the "
    "results that it takes: p50 20, p95 100, p99 500. timeline.csv beside this file has the numbers of each "
    "second."
)
SPREAD = "A request's images are spread over the seconds that it took."


Moment = TypeVar("Moment")
Line = tuple[str, Callable[[Moment], float | None]]
"""Its label, and its value at a moment."""
Panel = tuple[str, str, tuple[Line[Moment], ...]]
"""Its title, the unit and its lines."""
Panelled = dict[str, Any]
"""The same with its values, as a drawing has it."""


def line(label: str, name: str, unit: float = 1.0) -> Line[TimelineSecond]:
    """Of an attribute of a TimelineSecond, and what its values are divided by."""

    def value(second: TimelineSecond) -> float | None:
        found: float | None = getattr(second, name)
        return None if found is None else found / unit

    return label, value


PANELS: tuple[Panel[TimelineSecond], ...] = (
    (
        *("Latency", "ms"),
        tuple(line(f"p{percent}", f"drawn_p{percent}_ns", NS_PER_MS) for percent in (50, 95, 99)),
    ),
    ("Throughput", "images/s", (line("images/s", "images_per_s"),)),
    ("Failures", "requests/s", (line("failures/s", "failures_per_s"),)),
    ("In flight", "requests and users", (line("requests", "in_flight"), line("users", "users"))),
    (
        *("Server", "ms per request"),
        (line("queue", "server_queue_ns", NS_PER_MS), line("compute", "server_compute_ns", NS_PER_MS)),
    ),
    ("Mean executed batch", "images", (line("mean executed batch", "executed_batch"),)),
    ("GPU utilisation", "%", (line("GPU", "gpu_util_pct"),)),
    ("GPU memory", "GB", (line("memory", "gpu_memory_bytes", 1e9),)),
    ("GPU power", "W", (line("power", "gpu_power_w"),)),
    ("GPU clock", "MHz", (line("SM clock", "gpu_sm_clock_mhz"),)),
    ("CPU", "%", (line("busiest worker, of a core", "worker_cpu_pct"), line("host, of all", "host_cpu_pct"))),
    (
        *("Master's network", "Mbit/s"),
        (line("sent", "tx_bytes_per_s", 1e6 / 8), line("received", "rx_bytes_per_s", 1e6 / 8)),
    ),
)
LOGARITHMIC = frozenset({"Latency"})
_RUN = attrgetter("cell", "repeat")


def timeline_chart(study: Study) -> Chart | None:
    """The chart; None where no run has a second."""
    if not study.timeline:
        return None
    width = -(-len(study.timeline) // MOST_POINTS)
    points = list(_points(study.timeline, width))
    found = [drawn_panel(points, *panel) for panel in PANELS]
    panels = [panel for panel in found if panel["lines"] and not _is_zero(panel)]
    runs = list(_runs(study.timeline))
    data = {"t_s": [point[0].t_s if point else None for point in points], "panels": panels, "runs": runs}
    said = (
        CAPTION,
        SPREAD if study.is_spread else "",
        _behind_a_point(width, study.coarse),
        *_not_drawn(found),
    )
    return Chart(TITLE, " ".join(filter(None, said)), "timeline", data)


def _not_drawn(panels: Sequence[Panelled]) -> Iterator[str]:
    """A sentence on those that nothing is known of, and one on those that have nothing but zeros to show."""
    unknown = [panel["title"] for panel in panels if not panel["lines"]]
    zero = [panel["title"] for panel in panels if panel["lines"] and _is_zero(panel)]
    yield f"Not known here: {', '.join(unknown)}." if unknown else ""
    yield f"Zero throughout: {', '.join(zero)}." if zero else ""


def _is_zero(panel: Panelled) -> bool:
    return not any(value for line in panel["lines"] for value in line["values"])


def _behind_a_point(width: int, coarse_s: int) -> str:
    """How many of the timeline's rows, and so seconds, are behind a point; empty where it is one."""
    spans = "seconds" if coarse_s == 1 else f"spans of {coarse_s} seconds"
    return f"Each point is the highest of {width} {spans}." if width > 1 else ""


def _points(seconds: Sequence[TimelineSecond], width: int) -> Iterator[Sequence[TimelineSecond]]:
    """Seconds of one run, `width` at a time, with an empty point after each run, which breaks the lines."""
    for _, run in groupby(seconds, key=_RUN):
        here = list(run)
        yield from (here[start : start + width] for start in range(0, len(here), width))
        yield ()


def _end(second: TimelineSecond) -> int:
    return second.t_s + second.width_s


def drawn_panel(
    points: Sequence[Sequence[Moment]], title: str, unit: str, lines: Sequence[Line[Moment]]
) -> dict[str, Any]:
    """A panel with those of its lines that are known somewhere; a point of several moments is the highest."""
    drawn = [
        {"label": label, "values": [_highest(point, value) for point in points]} for label, value in lines
    ]
    known = [line for line in drawn if any(value is not None for value in line["values"])]
    return {"title": title, "unit": unit, "log": title in LOGARITHMIC, "lines": known}


def _highest(point: Sequence[Moment], value: Callable[[Moment], float | None]) -> float | None:
    return rounded(max((found for one in point if (found := value(one)) is not None), default=None))


def _runs(seconds: Sequence[TimelineSecond]) -> Iterator[dict[str, Any]]:
    """Each run's name, its first and last second, and the spans of it that are no measure phase."""
    before = seconds[0].t_s
    for _, run in groupby(seconds, key=_RUN):
        here = list(run)
        phases = ((phase, list(part)) for phase, part in groupby(here, key=lambda it: it.phase))
        spans = [(phase, max(before, part[0].t_s), _end(part[-1])) for phase, part in phases]
        aside = [span for span in spans if span[0] != "measure"]
        yield {"name": run_name(here[0]), "from": here[0].t_s, "to": _end(here[-1]), "aside": aside}
        before = _end(here[-1])


TIMELINE = Question("timeline", "Timeline", (timeline_chart,))
