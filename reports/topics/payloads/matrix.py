"""The five tables of the seed studies, from whatever endpoints, batches and levels a study has."""

from collections.abc import Callable, Iterator, Sequence

from reports.page.grid import Grid, grid_table, number, ratio
from reports.page.table import Table
from reports.stats.figures import Pairs, compute_ms, images_per_s, latency_ms, protocol_pairs
from reports.stats.repeats import Runs, Value
from reports.study.study import Study
from reports.summary.summary import Summary, Way

Pick = Callable[[Way, float], Runs]

LATENCY = Grid("Serial latency, p50", "Milliseconds per request, one user; lower is better.", "batch")
THROUGHPUT = Grid("Serial throughput", "Images per second, one user; higher is better.", "batch")
RATIO = Grid(
    "gRPC over HTTP",
    "Ratio of serial images per second; above 1, gRPC is faster.",
    "batch",
    head="backend",
    bars=False,
)
CONCURRENT = Grid("Concurrent throughput, batch 1", "Images per second; higher is better.", "users")
COMPUTE = Grid("Server compute", "Milliseconds per request by the server's own count, one user.", "batch")


def seed_tables(study: Study) -> Iterator[Table]:
    """Those of the five that the plan has cells for."""
    runs = [run for run in study.runs if not run.is_floor]
    serial = [run for run in runs if run.serial]
    singles = [run for run in runs if run.load == "closed" and run.batch == 1]
    batches, levels = sorted({run.batch for run in serial}), sorted({run.level for run in singles})
    by_batch, by_level = picker(serial, lambda run: run.batch), picker(singles, lambda run: run.level)
    if serial:
        yield by_endpoint(study, LATENCY, batches, by_batch, latency_ms)
        yield by_endpoint(study, THROUGHPUT, batches, by_batch, images_per_s)
    if pairs := protocol_pairs(study, serial):
        yield by_pair(study, batches, by_batch, pairs)
    if levels[1:]:
        yield by_endpoint(study, CONCURRENT, levels, by_level, images_per_s)
    if any(run.server_compute_ns is not None for run in serial):
        yield by_endpoint(study, COMPUTE, batches, by_batch, compute_ms)


def picker(runs: Runs, column: Callable[[Summary], float]) -> Pick:
    """The function that finds one cell's repeats among some runs."""
    return lambda way, at: [run for run in runs if run.way == way and column(run) == at]


def by_endpoint(study: Study, grid: Grid, columns: Sequence[float], pick: Pick, value: Value) -> Table:
    """One row for each way to the model that has a run in some column."""
    ways = {study.named(way): way for way in study.ways if any(pick(way, column) for column in columns)}
    rows = {name: [way.endpoint] for name, way in ways.items()}
    return grid_table(
        study, grid, columns, rows, lambda name, column, notes: number(pick(ways[name], column), value, notes)
    )


def by_pair(study: Study, columns: Sequence[float], pick: Pick, pairs: Pairs) -> Table:
    """One row for each backend that speaks both protocols."""
    rows = {name: [way.endpoint for way in pair] for name, pair in pairs.items()}
    return grid_table(
        study,
        RATIO,
        columns,
        rows,
        lambda name, column, notes: ratio(
            pick(pairs[name][1], column), pick(pairs[name][0], column), images_per_s, notes
        ),
    )
