"""The five tables of the seed studies, from whatever a study has, its fastest cell, and the floors."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from reports.backend_facts import FLOOR
from reports.format import MISSING, digits, plural
from reports.page.question import Question, Theme
from reports.page.study_table import Columns, cell, number, study_table
from reports.page.table import Footnotes, Table, TableCell, with_bars
from reports.stats.figures import Pairs, compute_ms, images_per_s, latency_ms, not_told_apart, protocol_pairs
from reports.stats.repeats import (
    COMPARABLE_RUNS,
    ENOUGH_RUNS,
    Runs,
    Value,
    absence,
    by_cell,
    grouped,
    repeats,
    resting_on,
    scarcity,
    taints,
    typical,
)
from reports.study.study import Study
from reports.summary.summary import Summary, Way

ENOUGH_RESULTS = 200
Pick = Callable[[Way, float], Runs]


@dataclass(frozen=True)
class Grid:
    """What one table shows; `axis` says what its columns count, batch or users."""

    title: str
    caption: str
    axis: str

    def heads(self, columns: Sequence[float]) -> tuple[str, ...]:
        """Those of the columns of numbers."""
        return tuple(f"{self.axis} {column:g}" for column in columns)


LATENCY = Grid("Serial latency, p50", "Milliseconds per request, one user; lower is better.", "batch")
THROUGHPUT = Grid("Serial throughput", "Images per second, one user; higher is better.", "batch")
RATIO = Grid("gRPC over HTTP", "Ratio of serial images per second; above 1, gRPC is faster.", "batch")
CONCURRENT = Grid("Concurrent throughput, batch {}", "Images per second; higher is better.", "users")
"""Of each batch that several users sent."""
COMPUTE = Grid("Server compute", "Milliseconds per request by the server's own count, one user.", "batch")


def seed_tables(study: Study) -> Iterator[Table]:
    """Those of the five that the plan has cells for."""
    runs = [run for run in study.runs if not run.is_floor]
    serial = [run for run in runs if run.serial]
    batches, by_batch = sorted({run.batch for run in serial}), picker(serial, lambda run: run.batch)
    if serial:
        yield by_endpoint(study, LATENCY, batches, by_batch, latency_ms)
        yield by_endpoint(study, THROUGHPUT, batches, by_batch, images_per_s)
    if pairs := protocol_pairs(study, serial):
        yield by_pair(study, batches, by_batch, pairs)
    for batch, many in sorted(grouped(runs, lambda run: run.batch).items()):
        yield from concurrent(study, batch, [run for run in many if run.load == "closed"])
    if any(run.server.compute_ns is not None for run in serial):
        yield by_endpoint(study, COMPUTE, batches, by_batch, compute_ms)


def concurrent(study: Study, batch: int, runs: Runs) -> Iterator[Table]:
    """One batch by users, where there are several numbers of them."""
    levels = sorted({run.level for run in runs})
    if levels[1:]:
        grid = replace(CONCURRENT, title=CONCURRENT.title.format(batch))
        yield by_endpoint(study, grid, levels, picker(runs, lambda run: run.level), images_per_s)


def picker(runs: Runs, column: Callable[[Summary], float]) -> Pick:
    """The function that finds one cell's repeats among some runs."""
    return lambda way, at: [run for run in runs if run.way == way and column(run) == at]


def by_endpoint(study: Study, grid: Grid, at: Sequence[float], pick: Pick, value: Value) -> Table:
    """One row for each way to the model that has a run in some column, bars in its cells."""
    columns: Sequence[Columns[Way]] = (
        cell("endpoint", lambda way, notes: notes.head(study.named(way), way.endpoint), numeric=False),
        Columns(grid.heads(at), lambda way, notes: (number(pick(way, one), value, notes) for one in at)),
    )
    ways = [way for way in study.ways if any(pick(way, one) for one in at)]
    table = study_table(study, grid.title, grid.caption, columns, ways, shared=(repeats(study),))
    return replace(table, rows=with_bars(table.rows))


def by_pair(study: Study, at: Sequence[float], pick: Pick, pairs: Pairs) -> Table:
    """One row for each backend that speaks both protocols."""

    def ratios(pair: tuple[str, tuple[Way, Way]], notes: Footnotes) -> Iterator[TableCell]:
        http, grpc = pair[1]
        return (ratio(pick(grpc, one), pick(http, one), images_per_s, notes) for one in at)

    columns: Sequence[Columns[tuple[str, tuple[Way, Way]]]] = (
        cell("backend", lambda it, notes: notes.head(it[0], *(way.endpoint for way in it[1])), numeric=False),
        Columns(RATIO.heads(at), ratios),
    )
    return study_table(study, RATIO.title, RATIO.caption, columns, pairs.items(), shared=(repeats(study),))


def ratio(over: Runs, under: Runs, value: Value, notes: Footnotes) -> TableCell:
    """One median over another, with the marks of both and of their scarcity."""
    top, bottom = typical(over, value), typical(under, value)
    if top is None or not bottom:
        lacking = over if top is None else under
        return TableCell(MISSING, notes.marks([absence(lacking)]))
    sides = [resting_on(runs, value) for runs in (over, under)]
    doubts = [*taints([*sides[0], *sides[1]]), scarcity([len(side) for side in sides])]
    return TableCell(f"{digits(top / bottom)}×", notes.marks(text for text in doubts if text), top / bottom)


def fastest_finding(study: Study) -> str:
    """The sentence on closed load; empty without any: a rate that was asked for is nobody's speed."""
    closed = [run for run in study.started if run.load == "closed" and not run.is_floor]
    clean = [run for run in closed if not run.tainted]
    if not closed:
        return ""
    if not clean:
        return "No cell with closed load is free of disqualifying caveats, so none is called the fastest."
    serial = _best(study, "with one user", [run for run in clean if run.serial])
    concurrent = _best(study, "with more users", [run for run in clean if not run.serial])
    seen = "; ".join(part for part in (serial, concurrent) if part)
    if _fewest(clean) < COMPARABLE_RUNS:
        return f"Highest images per second seen, which is no ranking: {seen} ({hedge(clean)})."
    return f"Most images per second: {seen} ({hedge(clean)})."


def _best(study: Study, where: str, runs: Runs) -> str:
    """The fastest cell of some runs that nothing disqualifies, and those that repeats do not tell from it."""
    cells = by_cell(runs)
    rates = {cell: typical(repeats, images_per_s) or 0.0 for cell, repeats in cells.items()}
    if not rates:
        return ""
    cell, *others = sorted(rates, key=lambda name: -rates[name])
    alike = [_named(study, cells[other][0]) for other in others if not_told_apart(cells[cell], cells[other])]
    more = f" and {len(alike) - 1} more" if alike[1:] else ""
    apart = f", not told apart from {alike[0]}{more}" if alike else ""
    return f"{where} {_named(study, cells[cell][0], digits(rates[cell]))}{apart}"


def _named(study: Study, run: Summary, rate: str = "") -> str:
    """onnx-http, 41.9 at batch 1 and 16 users."""
    users = "" if run.serial else f" and {run.level:g} users"
    return f"{study.named(run.way)}{f', {rate}' if rate else ''} at batch {run.batch}{users}"


def _fewest(runs: Runs) -> int:
    return min(len(repeats) for repeats in by_cell(runs).values())


def hedge(clean: Runs) -> str:
    """How far the numbers of some untainted runs carry: repeats and the smallest sample."""
    fewest, results = _fewest(clean), min(run.succeeded for run in clean)
    size = f"as few as {plural(fewest, 'run')} and {plural(results, 'result')} per cell"
    if fewest < COMPARABLE_RUNS:
        return f"{size}; --repeats 5 would tell"
    few = fewest < ENOUGH_RUNS or results < ENOUGH_RESULTS
    return f"{size}: an indication, not a ranking" if few else size


def _beside(head: str, value: Value) -> Columns[tuple[Runs, Runs]]:
    return Columns((head, "floor's"), lambda pair, notes: (number(runs, value, notes) for runs in pair))


COLUMNS: Sequence[Columns[tuple[Runs, Runs]]] = (
    cell("cell", lambda pair, notes: notes.head(pair[0][0].cell, pair[0][0].endpoint), numeric=False),
    _beside("p50 ms", latency_ms),
    _beside("images/s", images_per_s),
)


def floors(study: Study) -> Table:
    """One row for each cell that has a floor, medians over the repeats of both."""
    ordered = study.ordered(study.runs)
    by_key = grouped(ordered, lambda run: (*run.way, run.batch, run.load, run.arrivals, run.level))
    twins = {key: (study.floors.get(key[0], ""), *key[1:]) for key in by_key}
    pairs = [(runs, by_key[twins[key]]) for key, runs in by_key.items() if twins[key] in by_key]
    caption = "Each cell beside the same requests with no model behind them."
    return study_table(study, "Floor", caption, COLUMNS, pairs, shared=(repeats(study), FLOOR))


SERIAL = Question("serial", "Results", (seed_tables,))
FLOORS = Question("floors", "Results", (floors,), place=9)
FASTEST = Question("fastest", "", finds=fastest_finding, theme=Theme.SPEED)
