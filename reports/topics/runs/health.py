"""The table of the generator's own health: whether the client was fit to measure."""

from reports.format import MISSING, counted, known, ms
from reports.page.table import Cell, Notes, Table
from reports.study.study_reports import Study
from reports.summary.summary import Summary
from reports.topics.runs.runs import run_name

HEADS = (
    *("run", "client", "workers", "CPU a request, µs", "busiest CPU %", "no core %", "loop lag p99 ms"),
    *("longest GC ms", "send delay p99 ms", "late", "abandoned"),
)
NS_PER_US = 1e3


def generator_health(study: Study) -> Table:
    """One row for each run that was begun; none where no worker told of its health."""
    notes = Notes()
    told = any(run.worker_cpu_pct is not None or run.late is not None for run in study.started)
    rows = tuple((*_head(run, notes), *_numbers(run)) for run in study.started) if told else ()
    return Table(
        "Generator health",
        "The worst worker in the measure phase; CPU in percent of one core; no core is the time in which it "
        "was ready to run and had none; GC is Python's own. CPU a request is of all workers with all their "
        "threads, over the requests that came back, right or wrong; the fixed work of each second (probes, "
        "shipping) is in it, so it is high at few requests a second, and in phases of a second or two it is "
        "coarse. Client: prepared sent what was made before the load, library made each request anew.",
        HEADS,
        rows,
        notes.texts,
        numeric=frozenset(range(2, len(HEADS))),
    )


def _head(run: Summary, notes: Notes) -> tuple[Cell, ...]:
    bound = (doubt.text for doubt in run.caveats if doubt.code == "client-bound")
    name = Cell(run_name(run), notes.marks(f"client-bound: {text}" for text in bound))
    cost = Cell(known(run.client_cpu_ns, NS_PER_US), notes.marks(run.client_cpu_doubts))
    return name, Cell(run.client or MISSING), Cell(f"{run.workers or 0}"), cost


def _numbers(run: Summary) -> list[Cell]:
    shares = (run.worker_cpu_pct, run.cpu_wait_pct)
    times = (run.loop_lag_p99_ns, run.gc_max_ns, run.send_delay_p99_ns)
    counts = (run.late, run.abandoned)
    found = (*map(known, shares), *map(ms, times), *map(counted, counts))
    return [Cell(text) for text in found]
