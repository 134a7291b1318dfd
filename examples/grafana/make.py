"""Makes inferswarm.json beside it, the dashboard, from the one description of all metrics.

.venv/bin/python -m examples.grafana.make
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grafana_foundation_sdk.builders import common, dashboard, prometheus, statetimeline, timeseries
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.common import (
    LegendDisplayMode,
    LegendPlacement,
    StackingMode,
    TooltipDisplayMode,
    VisibilityMode,
)
from grafana_foundation_sdk.models.dashboard import (
    DashboardCursorSync,
    DataSourceRef,
    VariableOption,
    VariableRefresh,
    VariableSort,
)

from swarm.exporters import metrics as m

FILE = Path(__file__).with_name("inferswarm.json")
SOURCE = DataSourceRef(type_val="prometheus", uid="${datasource}")
CELL, ENDPOINT = 'endpoint=~"$endpoint",cell=~"$cell"', 'endpoint=~"$endpoint"'
"""What the variables choose."""
PARTS = "decode|preprocess|queue|input|compute|output"
HEIGHT = 8
"""Of a panel, in Grafana's rows; across there are 24 columns, in which two stand side by side."""


@dataclass(frozen=True)
class Panel:
    """A chart: title, unit as Grafana names it, what to read from it, and (PromQL, legend) of its lines."""

    title: str
    unit: str
    about: str
    queries: tuple[tuple[str, str], ...]
    stacked: bool = False


def rate(about: m.DescribedMetric, where: str, by: str) -> str:
    """A counter's growth per second, summed by some labels."""
    return f"sum by ({by}) (rate({about.name}{{{where}}}[$__rate_interval]))"


def quantile(share: float) -> str:
    """Of latency: from classic buckets, or from native ones where Prometheus keeps only these."""
    classic = f"sum by (le, endpoint, cell) (rate({m.LATENCY.name}_bucket{{{CELL}}}[$__rate_interval]))"
    native = rate(m.LATENCY, CELL, "endpoint, cell")
    return f"histogram_quantile({share}, {classic}) or histogram_quantile({share}, {native})"


def per(above: str, below: str) -> str:
    """A quotient of sums by the same labels."""
    return f"{above} / {below}"


def counted(what: str) -> str:
    """What the servers counted, per second."""
    return rate(m.SERVER_COUNT, f'{ENDPOINT},what="{what}"', "endpoint")


def clients() -> Iterator[Panel]:
    """What users see."""
    by = "endpoint, cell"
    images, requests = rate(m.IMAGES, CELL, by), rate(m.REQUESTS, CELL, by)
    good, late = rate(m.GOOD, CELL, by), rate(m.LATE, CELL, by)
    ok, failed = (rate(m.REQUESTS, f'{CELL},outcome="{end}"', by) for end in ("ok", "failed"))
    yield Panel("Images", "cps", "Images embedded per second.", ((images, "{{cell}}"),))
    yield Panel(
        "Requests and goodput", "reqps",
        "Requests that succeeded, and those of them within the limit of --slo; the second needs that option.",
        ((ok, "{{cell}} ok"), (good, "{{cell}} good")),
    )  # fmt: skip
    yield Panel(
        "Latency", "s",
        "From the intended start of a request to its end, of successes. A quantile is exact to its bucket: "
        "4.4 % in native histograms, up to the distance of two bounds in classic ones.",
        tuple((quantile(share), f"{{{{cell}}}} p{share * 100:g}") for share in (0.5, 0.95, 0.99)),
    )  # fmt: skip
    kinds = rate(m.FAILURES, ENDPOINT, "endpoint, kind")
    yield Panel(
        "Failures by kind", "reqps", "Requests that failed, per second.", ((kinds, "{{endpoint}} {{kind}}"),)
    )
    yield Panel(
        "Share of failed requests",
        "percentunit",
        "Of all that came back.",
        ((per(failed, requests), "{{cell}}"),),
    )
    yield Panel(
        "In flight and users", "short", "On all workers: requests that were not yet answered, and users.",
        ((m.IN_FLIGHT.name, "in flight"), (m.USERS.name, "users")),
    )  # fmt: skip
    yield Panel(
        "Late starts", "reqps",
        "Requests that started more than 5 ms after their time: generator or users could not keep up.",
        ((late, "{{cell}}"),),
    )  # fmt: skip
    dropped = f"sum by ({by}) ({m.DROPPED.name}{{{CELL}}})"
    yield Panel(
        "Arrivals never sent", "short", "Until now; told at the end of each open-loop run.",
        ((dropped, "{{cell}}"),),
    )  # fmt: skip


def servers() -> Iterator[Panel]:
    """What the servers tell of themselves."""
    parts = rate(m.SERVER_TIME, f'{ENDPOINT},part=~"{PARTS}"', "endpoint, part")
    yield Panel(
        "Time in the server, per request", "s", "Queue, compute and what is around them; means.",
        ((f"{parts} / on (endpoint) group_left () {counted('requests')}", "{{endpoint}} {{part}}"),),
        stacked=True,
    )  # fmt: skip
    yield Panel(
        "Waiting in the server", "short", "Requests that the server has not begun, by its page of metrics.",
        ((f"{m.PENDING.name}{{{ENDPOINT}}}", "{{endpoint}}"),),
    )  # fmt: skip
    yield Panel(
        "Executed batch", "short", "Images that the server computed at once, mean.",
        ((per(counted("images"), counted("executions")), "{{endpoint}}"),),
    )  # fmt: skip
    yield Panel(
        "Queue delay", "s", "How long the server may let a request wait for others to batch it with.",
        ((f'{m.QUEUE_DELAY.name}{{cell=~"$cell"}}', "{{cell}}"),),
    )  # fmt: skip
    sizes = ((m.INSTANCES, "instances"), (m.MAX_BATCH, "largest batch"))
    yield Panel(
        "Instances and largest batch", "short", "Executions that can run at once, and images in one.",
        tuple((f'{about.name}{{cell=~"$cell"}}', f"{{{{cell}}}} {name}") for about, name in sizes),
    )  # fmt: skip
    yield Panel(
        "Replicas", "short", "As Kubernetes tells of them; needs --kube-url.",
        ((f"{m.REPLICAS.name}{{{ENDPOINT}}}", "{{endpoint}} {{state}}"),),
    )  # fmt: skip


def gpus() -> Iterator[Panel]:
    """What NVML or DCGM tells of each GPU."""

    def lines(*some: tuple[m.DescribedMetric, str]) -> tuple[tuple[str, str], ...]:
        return tuple((about.name, f"{{{{gpu}}}} {legend}".strip()) for about, legend in some)

    yield Panel(
        "GPU utilisation", "percentunit",
        "The share of time with some kernel running, and, where DCGM tells, of multiprocessors with work. A "
        "GPU can be at 100 % of the first and at 10 % of the second.",
        lines((m.GPU_UTIL, "busy"), (m.GPU_SM, "SM active")),
    )  # fmt: skip
    yield Panel(
        "GPU memory",
        "bytes",
        "In use, and there is.",
        lines((m.GPU_MEMORY, "used"), (m.GPU_MEMORY_SIZE, "size")),
    )
    yield Panel(
        "GPU power", "watt", "Drawn, and allowed.", lines((m.GPU_POWER, "draw"), (m.GPU_POWER_LIMIT, "limit"))
    )
    yield Panel(
        "GPU clock", "hertz", "Of the multiprocessors, now and at best.",
        lines((m.GPU_CLOCK, "now"), (m.GPU_MAX_CLOCK, "best")),
    )  # fmt: skip
    yield Panel(
        "GPU clock held down by", "bool", "1 while a limit keeps the clock down although there is work.",
        lines((m.GPU_HELD, "{{reason}}")),
    )  # fmt: skip
    pcie = ((m.PCIE_SENT, "sent"), (m.PCIE_RECEIVED, "received"))
    yield Panel(
        "PCIe", "Bps", "What the GPU sends and receives. NVML is asked about one GPU a second, in turns.",
        tuple((f"last_over_time({about.name}[20s])", f"{{{{gpu}}}} {legend}") for about, legend in pcie),
    )  # fmt: skip
    energy = f"sum(rate({m.GPU_ENERGY.name}[$__rate_interval]))"
    yield Panel(
        "Energy per image", "joule", "What all GPUs shown took, idle ones included, by the images embedded.",
        ((per(energy, f"sum(rate({m.IMAGES.name}[$__rate_interval]))"), "J per image"),),
    )  # fmt: skip


def generators() -> Iterator[Panel]:
    """Whether the load generators keep up: above 90 % of a core their figures are doubtful."""
    yield Panel(
        "CPU of each worker", "percentunit", "Of one core. One that is close to 100 % limits the load.",
        ((m.WORKER_CPU.name, "{{worker}}"),),
    )  # fmt: skip
    yield Panel(
        "Event-loop lag of each worker, p99", "s", "How late the worker gets to what is due.",
        ((m.WORKER_LAG.name, "{{worker}}"),),
    )  # fmt: skip
    yield Panel(
        "CPU of the master's machine", "percentunit", "Of all its cores.", ((m.HOST_CPU.name, "host"),)
    )
    yield Panel(
        "Network of the master's machine", "Bps", "On all its devices.",
        ((m.HOST_SENT.name, "sent"), (m.HOST_RECEIVED.name, "received")),
    )  # fmt: skip


ROWS = {
    "Clients": tuple(clients()),
    "Servers": tuple(servers()),
    "GPUs": tuple(gpus()),
    "Load generators": tuple(generators()),
}
RUNS = f'max by (cell, repeat, phase) ({m.RUN_INFO.name}{{cell=~"$cell"}})'
"""The first panel: one row for each run and phase, filled while it lasts."""


def target(expr: str, legend: str, name: str = "A") -> prometheus.Dataquery:
    """One line of a chart, or several, by the labels of its result; each of a panel has a name of its own."""
    return prometheus.Dataquery().expr(expr).legend_format(legend).ref_id(name).range().datasource(SOURCE)


def chart(panel: Panel) -> timeseries.Panel:
    """A panel as Grafana has it."""
    legend = common.VizLegendOptions().show_legend(True).calcs(["mean", "max"])
    legend = legend.display_mode(LegendDisplayMode.TABLE).placement(LegendPlacement.BOTTOM)
    made = timeseries.Panel().title(panel.title).description(panel.about).unit(panel.unit).min(0)
    made = made.datasource(SOURCE).height(HEIGHT).span(12).legend(legend).show_points(VisibilityMode.NEVER)
    made = made.tooltip(common.VizTooltipOptions().mode(TooltipDisplayMode.MULTI))
    if panel.stacked:
        made = made.stacking(common.StackingConfig().mode(StackingMode.NORMAL)).fill_opacity(30)
    for name, (expr, labels) in zip("ABC", panel.queries, strict=False):
        made = made.with_target(target(expr, labels, name))
    return made


def chosen(name: str, of: str) -> dashboard.QueryVariable:
    """A variable with the values of a label, of which several or all may be chosen."""
    made = (
        dashboard.QueryVariable(name)
        .datasource(SOURCE)
        .query(of)
        .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
    )
    made = made.multi(True).include_all(True).all_value(".*").sort(VariableSort.ALPHABETICAL_ASC)
    return made.current(VariableOption(text="All", value="$__all"))


def made() -> str:
    """The dashboard as JSON."""
    known = f"label_values({m.REQUESTS.name}"
    board = dashboard.Dashboard("inferswarm").uid("inferswarm").tags(["inferswarm", "load-test"])
    board = board.description("A load test of embedding servers, second by second.").time("now-15m", "now")
    board = board.refresh("5s").tooltip(DashboardCursorSync.CROSSHAIR)
    board = board.with_variable(
        dashboard.DatasourceVariable("datasource").label("Prometheus").type("prometheus")
    )
    board = board.with_variable(chosen("endpoint", f"{known}, endpoint)").label("Endpoint"))
    board = board.with_variable(chosen("cell", f"{known}{{{ENDPOINT}}}, cell)").label("Cell"))
    runs = (
        statetimeline.Panel()
        .title("Runs")
        .description("Which cell was run when, repeat by repeat, and its phases.")
    )
    runs = (
        runs.datasource(SOURCE)
        .height(HEIGHT)
        .span(24)
        .with_target(target(RUNS, "{{cell}} #{{repeat}} {{phase}}"))
    )
    board = board.with_panel(runs.legend(common.VizLegendOptions().show_legend(False)))
    for title, panels in ROWS.items():
        board = board.with_row(dashboard.Row(title))
        for panel in panels:
            board = board.with_panel(chart(panel))
    document: Any = board.build()
    return JSONEncoder(sort_keys=True, indent=2).encode(document) + "\n"


def queries() -> list[str]:
    """Every query of the dashboard, its variables not filled in."""
    return [RUNS, *(expr for panels in ROWS.values() for panel in panels for expr, _ in panel.queries)]


if __name__ == "__main__":
    FILE.write_text(made())
    sys.stdout.write(f"{FILE.name}: {len(queries())} queries\n")
