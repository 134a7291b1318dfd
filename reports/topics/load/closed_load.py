"""What latency under closed-loop load leaves out, the open-loop run that would show it, and think times.

A user who waits for a slow reply sends nothing meanwhile, so that a stall meets each user once, however many
arrivals it would have met. Sources: G. Tene, How not to measure latency (2015), who calls this coordinated
omission; B. Schroeder, A. Wierman and M. Harchol-Balter, Open versus closed: a cautionary tale (NSDI 2006).
"""

from dataclasses import dataclass
from math import floor, log10

from reports.format import digits, milliseconds, plural
from reports.histogram.percentiles import ENOUGH
from reports.ledger.axes import UNSET, Topology
from reports.page.answer import AnswerRow, with_options
from reports.page.question import Question, Theme
from reports.stats.figures import images_per_s
from reports.stats.percentiles import CellFigure, estimated, mean_over, pooled
from reports.stats.repeats import Runs, alone, by_cell, grouped, repeats_differ
from reports.study.study import Study
from reports.summary.summary import LatencyAt, Summary

SAID = "Closed-loop: what would arrive while users wait is not counted (coordinated omission)"
UNEVEN = 2.0
"""Times p50: where p99 is above it, some replies take much longer than most, and arrivals would queue."""
LOAD_SHARE = 0.8
"""Of the cell's requests per second: at all that a server can do, arrivals queue without end."""
OF_CLOSED = (
    *("--together", "--levels", "--think", "--load-profile", "--compression", "--shared-memory"),
    *("--cells", "--repeats", "--repeat-until-decided", "--gate", "--baseline"),
)
"""Options of the study that would leave out or end the open-loop run, or add others."""
OF_AXES = (
    *("channels", "client", "topology", "link", "queue_delay_us", "instances"),
    *("compression", "shared_memory"),
)
"""Axes that have an option of their name."""


@dataclass(frozen=True)
class Uneven:
    """A cell some of whose replies take much longer than most, and the repeats that count."""

    runs: Runs
    p50_ms: CellFigure
    p99_ms: CellFigure

    @property
    def said(self) -> str:
        """onnx-grpc/b1/c8: p99 812 ms, p50 41.0 ms."""
        p99, p50 = (one.alone(milliseconds) for one in (self.p99_ms, self.p50_ms))
        return f"{self.runs[0].cell}: p99 {p99} ms, p50 {p50} ms"

    @property
    def times(self) -> float:
        """How many times p50 the p99 is."""
        return self.p99_ms.value / self.p50_ms.value


def requests_per_s(runs: Runs) -> float:
    """Of successes, over the repeats of a cell."""
    found = mean_over(runs, lambda run: run.counts.requests_per_s)
    return found.value if found else 0.0


def rounded_down(value: float) -> float:
    """To two significant digits: 18.7 → 18; 0.0239 → 0.023."""
    step = floor(log10(value)) - 1
    return float(f"{floor(value * 10.0**-step + 1e-9) * 10.0**step:.2g}")


def _closed(study: Study) -> list[Summary]:
    """Those under closed-loop load that have a latency, floors left out, and those beside other loads."""
    return alone(run for run in study.started if run.closed and run.succeeded and not run.is_floor)


def _valid_cells(study: Study) -> list[Runs]:
    return list(by_cell(run for run in _closed(study) if not run.tainted).values())


def uneven(study: Study) -> list[Uneven]:
    """The cells with a valid run whose p99 is above twice their p50, the most uneven first.

    Where repeats differ, so do their percentiles.
    """
    found = []
    for runs in _valid_cells(study):
        p50, p99 = (pooled(study, runs, name) for name in ("p50", "p99"))
        if p50 and p99 and 0 < UNEVEN * p50.value < p99.value and not repeats_differ(runs):
            found.append(Uneven(runs, p50, p99))
    return sorted(found, key=lambda one: -one.times)


def find_stalled(study: Study) -> tuple[Runs, str] | None:
    """The first cell whose service stalled in a valid run, and how."""
    doubts = ((runs, doubt) for runs in _valid_cells(study) for run in runs for doubt in run.caveats)
    return next(((runs, doubt.text) for runs, doubt in doubts if doubt.code == "stalls"), None)


def latency_kind(study: Study) -> AnswerRow | None:
    """The row that says whose latency it is; None without closed-loop load."""
    if not _closed(study):
        return None
    if stalled := find_stalled(study):
        runs, how = stalled
        told = f"{runs[0].cell}: {how}."
    elif cells := uneven(study):
        runs = cells[0].runs
        told = f"In {plural(len(cells), 'cell')} p99 is above twice p50 ({cells[0].said})."
    else:
        return AnswerRow("Latency", f"{SAID}.")
    command = open_load(str((study.header.get("options") or {}).get("command") or ""), runs)
    share = f"{100 * LOAD_SHARE:g} % of its {digits(requests_per_s(runs))} requests/s"
    detail = f"{told} What arrivals would wait at {share}:" if command else told
    return AnswerRow("Latency", f"{SAID}.", detail, command)


def open_load(command: str, runs: Runs) -> str:
    """The study's command with open-loop load for one cell; empty where no option can ask for that cell."""
    run, per_s = runs[0], requests_per_s(runs)
    if not per_s or run.congestion:
        return ""
    options = {
        **dict.fromkeys(OF_CLOSED, ""),
        **(axis_options(run) if run.variant else {}),
        "--endpoints": run.endpoint,
        "--batches": "" if run.batch_mix else str(run.batch),
        "--rates": f"{rounded_down(LOAD_SHARE * per_s):g}",
        "--arrivals": "poisson",
        "--iterations": str(ENOUGH["p99"]),
    }
    return with_options(command, options)


def axis_options(run: Summary) -> dict[str, str]:
    """What a variant's own axes are called on the command line."""
    told = {name: getattr(run, name) for name in OF_AXES if getattr(run, name) != UNSET[name]}
    return {f"--{name.replace('_', '-')}": _typed(value) for name, value in told.items()}


def _typed(value: object) -> str:
    if isinstance(value, Topology):
        return f"{value.workers}@{value.hosts}" if value.hosts else str(value.workers)
    return str(value)


def think_times(study: Study) -> AnswerRow | None:
    """What users send with each think time, at the most users of each endpoint; None where one is run."""
    closed = sorted(_closed(study), key=lambda run: (run.level, run.batch))
    alike = grouped(closed, lambda run: (run.endpoint, run.batch, run.level, *run.others("think"))).values()
    most = {runs[0].endpoint: runs for runs in alike if len({run.think for run in runs}) > 1}
    said = [
        f"{name}, {plural(round(runs[0].level), 'user')}: {_by_think(study, runs)}"
        for name, runs in most.items()
    ]
    same = "Users who think send less often: raise --levels as the rate fell to offer the same load."
    return AnswerRow("Think time", f"{'; '.join(said)}.", same) if said else None


def _by_think(study: Study, runs: Runs) -> str:
    """280 images/s (95 % CI 271–289) and p95 18.0 ms without, 61.0 images/s with 0.05 s."""
    ordered = sorted(by_cell(runs).values(), key=lambda of: of[0].think_s)
    return ", ".join(filter(None, (_thought(study, of) for of in ordered)))


def _thought(study: Study, runs: Runs) -> str:
    rate, p95 = estimated(study, runs, images_per_s), estimated(study, runs, LatencyAt("p95"))
    if rate is None:
        return ""
    think = f"with {runs[0].think.replace(':', ' ')} s" if runs[0].think_s else "without"
    late = f" and p95 {p95.said(milliseconds, ' ms')}" if p95 else ""
    invalid = "" if any(not run.tainted for run in runs) else " (invalidated)"
    return f"{rate.said(digits, ' images/s', '95 % CI ')}{late} {think}{invalid}"


THINK_TIMES = Question("think-times", "Results", finds=think_times, theme=Theme.SPEED, place=-4)
CLOSED_LOAD = Question("closed-load", "", finds=latency_kind, theme=Theme.SPEED)
