"""The tables that put a study like steps 6A or 6B beside the published one: sourced figures, no ratios."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from reports.caveats.run import ENOUGH
from reports.cells_csv.rows import Row, published_files, read_published
from reports.format import MISSING
from reports.page.study_table import Columns, StudyNotes, cell, figure, number, study_table, text
from reports.page.table import Footnotes, Table, TableCell, table_of
from reports.published_figures.figures import MEAN, P50, RATE, Figure, of_column, their_endpoint
from reports.published_figures.rates import sourced
from reports.stats.figures import compute_ms, images_per_s, in_ms, latency_ms
from reports.stats.repeats import Runs, Value, repeats, resting_on
from reports.study.study import Study
from reports.summary.summary import Summary

BACKENDS, GROWTH = "step6a", "step6b"
BACKENDS_CAPTION = (
    "Published is what others measured on the GPU that their study is named after, with a client far away "
    "(a ping of 14 ms, elsewhere said to be 20 to 30). Machine, network, client and weights differ from this "
    "study's all at once, so no ratio of the two would mean anything: compare rows of one study."
)
GROWTH_CAPTION = (
    "Batch 1. Queue and compute are the server's own, means per request; the last column is the share of "
    "requests that shared another's execution: 1 − executions ÷ requests. Published is what others measured "
    "on four RTX 4080 behind one Triton, with a client far away: machine, network and client differ from "
    "this study's all at once, so no ratio of the two would mean anything. Over all users they state 17.9 ms "
    "a request on the server, of which 8.8 queue and 8.4 compute, and 560 executions for 721 requests: 22 %."
)
SCALING = (
    "Published: four RTX 4080 made 1.8 times the images/s of one, which is 45 %. That is 43.2 with 32 users "
    "at batch 1 over 24.3 with one user at batch 32, from single runs over the internet: two loads, not one, "
    "and what limited either is not known."
)
COSTS = (
    ("1 × RTX 4080", "0.092", "24.3", "0.001"),
    ("1 × A100", "0.85", "64.3", "0.004"),
    ("4 × RTX 4080", "0.30–2.00", "43.2", "0.002–0.013"),
)
"""As they were published with step 6B: hardware, $ an hour, images/s, $ for 1,000 images."""
Theirs = Mapping[str, Sequence[Row]]
Shown = tuple[Runs, str, Sequence[Row]]
"""The runs of one of our endpoints; and in a published row its study's name and what that has beside them."""
SINGLES: tuple[tuple[str, str, Figure, int], ...] = (
    ("mean ms", "latency_mean_ns", MEAN, 0),
    ("p50 ms", "latency_p50_ns", P50, 0),
    ("p95 ms", "latency_p95_ns", of_column("latency_p95_ms"), ENOUGH["p95"]),
    ("p99 ms", "latency_p99_ns", of_column("latency_p99_ms"), ENOUGH["p99"]),
    ("server compute ms", "server_compute_ns", of_column("server_compute_ms"), 0),
    ("server total ms", "server_ns", of_column("server_ms"), 0),
)
"""What is shown of single images: head, ours, theirs, and results that a high percentile needs."""


def of_three_backends(study: Study) -> Theirs:
    """The published studies of the three backends by name; none for a study of something else."""
    if study.header["study"] != BACKENDS:
        return {}
    return {name: read_published(name) for name in published_files() if name.startswith(f"{BACKENDS}-")}


def single_images_beside(study: Study) -> Table:
    """One image in a request: percentiles and the server's parts, ours and theirs of each backend."""
    columns = [_column(head, 1, in_ms(field), figure, enough) for head, field, figure, enough in SINGLES]
    groups = _by_endpoint(study, of_three_backends(study))
    alone = filter(None, ([run for run in runs if run.batch == 1] for runs in groups))
    return _table(study, "Beside step 6A: one image in a request, one user", columns, alone)


def batches_beside(study: Study) -> Table:
    """Images per second by batch, ours and theirs of each backend; a published timeout is shown as one."""
    theirs = of_three_backends(study)
    groups = _by_endpoint(study, theirs)
    known = {run.batch for runs in groups for run in runs} | {it.batch for of in theirs.values() for it in of}
    batches = sorted(known) if groups else []
    columns = [_column(f"batch {at}", at, images_per_s, RATE) for at in batches]
    return _table(study, "Beside step 6A: images per second by batch, one user", columns, groups)


def _table(study: Study, title: str, columns: Sequence[Columns[Shown]], groups: Iterable[Runs]) -> Table:
    """Each of our endpoints with a row of its own, and below it one for each published study of its like."""
    theirs = of_three_backends(study)
    rows = [row for runs in groups for row in ((runs, "", ()), *_alike(runs, theirs))]
    heads: Sequence[Columns[Shown]] = (
        cell("endpoint", _endpoint, numeric=False),
        cell("whose", lambda row, _: TableCell(f"published {row[1]}" if row[1] else "ours"), numeric=False),
    )
    shared, said = (repeats(study),), study.endpoints
    return study_table(
        study, title, BACKENDS_CAPTION, [*heads, *columns], rows, shared=shared, endpoints=said
    )


def _endpoint(row: Shown, notes: StudyNotes) -> TableCell:
    runs, name, theirs = row
    return TableCell(theirs[0].endpoint) if name else notes.way(runs[0])


def _by_endpoint(study: Study, theirs: Theirs) -> list[Runs]:
    """The serial runs of each way that carries what some published one does, the same way."""
    figures = [it for of in theirs.values() for it in of]
    serial = [run for run in study.runs if run.serial and not run.is_floor and their_endpoint(run, figures)]
    found = ([run for run in serial if run.way == way] for way in study.ways)
    return [runs for runs in found if runs]


def _alike(runs: Runs, theirs: Theirs) -> Iterator[Shown]:
    """Each published study with the figures of the runs' endpoint, or of the one that it stands in for."""
    for name, figures in theirs.items():
        if endpoint := their_endpoint(runs[0], figures):
            yield runs, name, [it for it in figures if it.endpoint == endpoint]


def _column(head: str, batch: int, value: Value, figure: Figure, enough: int = 0) -> Columns[Shown]:
    """A figure of one batch, ours or theirs."""

    def shown(row: Shown, notes: Footnotes) -> TableCell:
        runs, name, theirs = row
        if name:
            return _told([it for it in theirs if it.batch == batch], figure, notes)
        return _ours([run for run in runs if run.batch == batch], value, enough, notes)

    return cell(head, shown)


def _ours(runs: Runs, value: Value, enough: int, notes: Footnotes) -> TableCell:
    """The median of the repeats, with a mark where so few requests carry no such percentile."""
    cell = number(runs, value, notes)
    fewest = min((run.succeeded for run in resting_on(runs, value)), default=0)
    if cell.value is None or fewest >= enough:
        return cell
    few = f"of fewer than {enough:,} requests: a few of them decide it"
    return TableCell(cell.text, (*cell.marks, *notes.marks([few])), cell.value)


def _told(figures: Sequence[Row], figure: Figure, notes: Footnotes) -> TableCell:
    """The first published figure of its kind with its source, or that a timeout was published instead."""
    for it in figures:
        if "failures" in it.codes:
            return TableCell("timeout", notes.marks([f"published: {it.source}"]))
        if (value := figure(it)) is not None:
            return sourced(value, it, notes)
    return TableCell(MISSING)


def of_growth(study: Study) -> bool:
    """Whether it is the study that has this published twin."""
    return str(study.header["study"]) == GROWTH


def shared_pct(run: Summary) -> float | None:
    """The share of requests without an execution of their own, in percent."""
    return None if run.shared_share is None else 100 * run.shared_share


def _theirs(runs: Runs, value: Figure, notes: Footnotes) -> TableCell:
    """What was published of as many users and the same payload."""
    it = {it.level: it for it in read_published(GROWTH)}.get(runs[0].level)
    return sourced(value(it), it, notes) if it and it.payload == runs[0].payload else TableCell(MISSING)


def _growing(runs: Runs, notes: StudyNotes) -> TableCell:
    for value in (RATE, P50):
        _theirs(runs, value, notes)  # their source is the first of a row's notes
    return notes.way(runs[0])


COLUMNS: Sequence[Columns[Runs]] = (
    cell("endpoint", _growing, numeric=False),
    text("users", lambda runs: f"{runs[0].level:g}"),
    figure("images/s", images_per_s),
    cell("published", lambda runs, notes: _theirs(runs, RATE, notes)),
    figure("p50 ms", latency_ms),
    cell("published", lambda runs, notes: _theirs(runs, P50, notes)),
    figure("queue ms", in_ms("server_queue_ns")),
    figure("compute ms", compute_ms),
    figure("no execution of their own %", shared_pct),
)


def growth_beside(study: Study) -> Table:
    """One row for each way and number of users, medians over its repeats, beside theirs of as many users."""
    cells = _cells(study) if of_growth(study) else ()
    return study_table(
        study, "Beside step 6B: users", GROWTH_CAPTION, COLUMNS, cells, shared=(repeats(study),)
    )


def _cells(study: Study) -> Iterator[Runs]:
    for way in study.ways:
        own = [run for run in study.runs if run.way == way and run.load == "closed" and run.batch == 1]
        for level in sorted({run.level for run in own if not run.is_floor}):
            yield [run for run in own if run.level == level]


def costs_beside(study: Study) -> Table:
    """What was published of costs, beside the costs by a declared price; none for another study."""
    heads = ("published hardware", "$ an hour", "images/s", "$ per 1,000 images")
    rows = COSTS if of_growth(study) else ()
    return table_of("Beside step 6B: costs as published", heads, rows, numeric=(1, 2, 3))
