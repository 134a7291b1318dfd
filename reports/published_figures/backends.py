"""The tables that put a study of three backends beside the published ones: sourced figures, no ratios."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from reports.format import MISSING
from reports.page.disclosures import disclosures, stand_in
from reports.page.grid import number
from reports.page.table import Footnotes, Table, TableCell
from reports.published_figures.figures import Published, published_files, read_published, their_endpoint
from reports.published_figures.rates import sourced
from reports.stats.figures import images_per_s
from reports.stats.repeats import Runs, Value, repeats, resting_on
from reports.study.study import Study
from reports.summary.summary import Summary

STUDY = "step6a"
OURS = "ours"
HEADS = ("mean ms", "p50 ms", "p95 ms", "p99 ms", "server compute ms", "server total ms")
CAPTION = (
    "Published is what others measured on the GPU that their study is named after, with a client far away "
    "(a ping of 14 ms, elsewhere said to be 20 to 30). Machine, network, client and weights differ from this "
    "study's all at once, so no ratio of the two would mean anything: compare rows of one study."
)
ENOUGH = {"p95 ms": 200, "p99 ms": 1_000}
"""Results that a high percentile needs: with fewer, ten or less lie above it."""
Figure = Callable[[Published], float | None]
Theirs = Mapping[str, Sequence[Published]]


def of_three_backends(study: Study) -> Theirs:
    """The published studies of the three backends by name; none for a study of something else."""
    if study.header["study"] != STUDY:
        return {}
    return {name: read_published(name) for name in published_files() if name.startswith(f"{STUDY}-")}


def single_images_beside(study: Study) -> Table:
    """One image in a request: percentiles and the server's parts, ours and theirs of each backend."""
    notes, theirs = Footnotes(), of_three_backends(study)
    rows = [
        row
        for runs in _by_endpoint(study, theirs)
        for row in _single([run for run in runs if run.batch == 1], study, theirs, notes)
    ]
    title = "Beside step 6A: one image in a request, one user"
    return _table(study, title, HEADS, rows, notes)


def batches_beside(study: Study) -> Table:
    """Images per second by batch, ours and theirs of each backend; a published timeout is shown as one."""
    notes, theirs = Footnotes(), of_three_backends(study)
    groups = _by_endpoint(study, theirs)
    known = {run.batch for runs in groups for run in runs} | {it.batch for of in theirs.values() for it in of}
    batches = sorted(known) if groups else []
    rows = [row for runs in groups for row in _rates(runs, batches, study, theirs, notes)]
    title = "Beside step 6A: images per second by batch, one user"
    return _table(study, title, tuple(f"batch {batch}" for batch in batches), rows, notes)


def _table(
    study: Study, title: str, heads: Sequence[str], rows: Sequence[tuple[TableCell, ...]], notes: Footnotes
) -> Table:
    named = ("endpoint", "whose", *heads)
    said = disclosures(study, study.endpoints)
    shared = (repeats(study), *(text for text in said if text not in notes.texts))
    return Table(title, CAPTION, named, tuple(rows), notes.texts, frozenset(range(2, len(named))), shared)


def _by_endpoint(study: Study, theirs: Theirs) -> list[Runs]:
    """The serial runs of each way that carries what some published one does, the same way."""
    figures = [it for of in theirs.values() for it in of]
    serial = [run for run in study.runs if run.serial and not run.is_floor and their_endpoint(run, figures)]
    found = ([run for run in serial if run.way == way] for way in study.ways)
    return [runs for runs in found if runs]


def _single(runs: Runs, study: Study, theirs: Theirs, notes: Footnotes) -> Iterator[tuple[TableCell, ...]]:
    if not runs:
        return
    values = zip(HEADS, _OURS, strict=True)
    yield (*_head(study, runs[0], notes), *(_ours(runs, head, value, notes) for head, value in values))
    for name, figures in _alike(runs[0], theirs):
        singles = [it for it in figures if it.batch == 1]
        cells = (_told(singles, figure, notes) for figure in _THEIRS)
        yield (TableCell(singles[0].endpoint), TableCell(f"published {name}"), *cells)


def _rates(
    runs: Runs, batches: Sequence[int], study: Study, theirs: Theirs, notes: Footnotes
) -> Iterator[tuple[TableCell, ...]]:
    by_batch = [[run for run in runs if run.batch == batch] for batch in batches]
    ours = (number(of, images_per_s, notes) for of in by_batch)
    yield (*_head(study, runs[0], notes), *ours)
    for name, figures in _alike(runs[0], theirs):
        of_batch = ([it for it in figures if it.batch == batch] for batch in batches)
        cells = (_told(of, lambda it: it.images_per_s, notes) for of in of_batch)
        yield (TableCell(figures[0].endpoint), TableCell(f"published {name}"), *cells)


def _alike(run: Summary, theirs: Theirs) -> Iterator[tuple[str, Sequence[Published]]]:
    """Each published study with the figures of a run's endpoint, or of the one that it stands in for."""
    for name, figures in theirs.items():
        if endpoint := their_endpoint(run, figures):
            yield name, [it for it in figures if it.endpoint == endpoint]


def _head(study: Study, run: Summary, notes: Footnotes) -> tuple[TableCell, TableCell]:
    said = stand_in(study, run.endpoint)
    return TableCell(study.named(run.way), notes.marks([said] if said else [])), TableCell(OURS)


def _ours(runs: Runs, head: str, value: Value, notes: Footnotes) -> TableCell:
    """The median of the repeats, with a mark where so few requests carry no such percentile."""
    cell = number(runs, value, notes)
    fewest = min((run.succeeded for run in resting_on(runs, value)), default=0)
    if cell.value is None or fewest >= ENOUGH.get(head, 0):
        return cell
    few = f"of fewer than {ENOUGH[head]:,} requests: a few of them decide it"
    return TableCell(cell.text, (*cell.marks, *notes.marks([few])), cell.value)


def _told(figures: Sequence[Published], figure: Figure, notes: Footnotes) -> TableCell:
    """The first published figure of its kind with its source, or that a timeout was published instead."""
    for it in figures:
        if it.timed_out:
            return TableCell("timeout", notes.marks([f"published: {it.source}"]))
        if (value := figure(it)) is not None:
            return sourced(value, it, notes)
    return TableCell(MISSING)


def _ms(field: str) -> Value:
    return lambda run: None if (found := getattr(run, field)) is None else found / 1e6


_OURS = tuple(
    _ms(field)
    for field in (
        *("latency_mean_ns", "latency_p50_ns", "latency_p95_ns", "latency_p99_ns"),
        *("server_compute_ns", "server_ns"),
    )
)
_THEIRS: tuple[Figure, ...] = (
    lambda it: it.latency_mean_ms,
    lambda it: it.latency_p50_ms,
    lambda it: it.latency_p95_ms,
    lambda it: it.latency_p99_ms,
    lambda it: it.server_compute_ms,
    lambda it: it.server_ms,
)
