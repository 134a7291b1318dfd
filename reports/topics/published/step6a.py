"""Step 6A: three backends beside the published ones; sourced figures, no ratios of two machines."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from reports.cells_csv.rows import Row
from reports.format import MISSING, digits, milliseconds
from reports.page.answer import answered
from reports.page.question import Question, Theme
from reports.page.study_table import Columns, StudyNotes, cell, figure_cell, study_table
from reports.page.table import Footnotes, Table, TableCell
from reports.published_figures.figures import (
    MEAN,
    P50,
    RATE,
    Figure,
    Figures,
    of_column,
    of_three_backends,
    sourced,
    their_endpoint,
)
from reports.stats.failures import rankable
from reports.stats.figures import compute_ms, images_per_s, in_ms, mean_ms, p50_ms, p95_ms, told_from_best
from reports.stats.paired import LEAST_REPEATS, NOT_SIGNIFICANT
from reports.stats.percentiles import mean_over
from reports.stats.repeats import Runs, Value, by_way
from reports.study.study import Study
from reports.summary.summary import LatencyAt
from reports.topics.servers.memory import by_server, most_resident

BACKENDS_CAPTION = (
    "Published is what others measured on the GPU that their study is named after, with a client far away "
    "(a ping of 14 ms, elsewhere said to be 20 to 30). Machine, network, client and weights differ from this "
    "study's all at once, so no ratio of the two would mean anything: compare rows of one study."
)
Shown = tuple[Runs, str, Sequence[Row]]
"""The runs of one of our endpoints; and in a published row its study's name and what that has beside them."""
SINGLES: tuple[tuple[str, Value, Figure], ...] = (
    ("mean ms", mean_ms, MEAN),
    ("p50 ms", p50_ms, P50),
    ("p95 ms", p95_ms, of_column("latency_p95_ms")),
    ("p99 ms", LatencyAt("p99"), of_column("latency_p99_ms")),
    ("server compute ms", compute_ms, of_column("server_compute_ms")),
    ("server total ms", in_ms("server.total_ns"), of_column("server_ms")),
)
"""What is shown of single images: head, ours, theirs."""


def single_images_beside(study: Study) -> Table:
    """One image in a request: percentiles and the server's parts, ours and theirs of each backend."""
    columns = [_column(head, 1, value, figure) for head, value, figure in SINGLES]
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
    return study_table(study, title, BACKENDS_CAPTION, [*heads, *columns], rows)


def _endpoint(row: Shown, notes: StudyNotes) -> TableCell:
    runs, name, theirs = row
    return TableCell(theirs[0].endpoint) if name else notes.way(runs[0])


def _by_endpoint(study: Study, theirs: Figures) -> list[Runs]:
    """The serial runs of each way that carries what some published one does, the same way."""
    figures = [it for of in theirs.values() for it in of]
    serial = [run for run in study.runs if run.serial and not run.is_floor and their_endpoint(run, figures)]
    return list(by_way(study, serial).values())


def _alike(runs: Runs, theirs: Figures) -> Iterator[Shown]:
    """Each published study with the figures of the runs' endpoint, or of the one that it stands in for."""
    for name, figures in theirs.items():
        if endpoint := their_endpoint(runs[0], figures):
            yield runs, name, [it for it in figures if it.endpoint == endpoint]


def _column(head: str, batch: int, value: Value, figure: Figure) -> Columns[Shown]:
    """A figure of one batch, ours or theirs."""

    def shown(row: Shown, notes: StudyNotes) -> TableCell:
        runs, name, theirs = row
        if name:
            return _told([it for it in theirs if it.batch == batch], figure, notes)
        form = milliseconds if head.endswith(" ms") else digits
        return figure_cell([run for run in runs if run.batch == batch], value, notes, form)

    return cell(head, shown)


def _told(figures: Sequence[Row], figure: Figure, notes: Footnotes) -> TableCell:
    """The first published figure of its kind with its source, or that a timeout was published instead."""
    for it in figures:
        if "failures" in it.codes:
            return TableCell("timeout", notes.marks([f"published: {it.source}"]))
        if (value := figure(it)) is not None:
            return sourced(value, it, notes)
    return TableCell(MISSING)


def backends_finding(study: Study) -> str:
    """The most images/s with one user by batch, and each server's memory; empty for other studies."""
    if not of_three_backends(study):
        return ""
    held = {name: most_resident(runs) for name, runs in by_server(study).items()}
    told = [f"{name} {digits(most / 1e9)} GB" for name, most in sorted(held.items(), key=lambda it: it[1])]
    memory = f"Most resident memory read, with all a server's processes: {', '.join(told)}."
    return " ".join(filter(None, (_ahead(study), memory if told else "")))


def _ahead(study: Study) -> str:
    runs = [run for run in rankable(study.started) if run.serial and not run.is_floor and not run.tainted]
    batches = sorted({run.batch for run in runs})
    told = [said for batch in batches if (said := _best([run for run in runs if run.batch == batch], study))]
    alone = min(Counter(run.cell for run in runs).values(), default=0) < LEAST_REPEATS
    most = "Highest images per second seen, which is no ranking," if alone else "Most images per second"
    return f"{most} with one user: {'; '.join(told)}." if told else ""


def _best(runs: Runs, study: Study) -> str:
    """openvino-http 24.1 at batch 4; empty where fewer than two backends have a figure."""
    ways = by_way(study, runs)
    rates = {way: rate for way, of in ways.items() if (rate := mean_over(of, images_per_s))}
    if len(rates) < 2:
        return ""
    best = max(rates, key=lambda way: rates[way].value)
    others = [way for way in rates if way != best]
    told = told_from_best(ways[best], [ways[way] for way in others])
    alike = [study.named(way) for way, apart in zip(others, told, strict=True) if apart is False]
    apart = f" ({NOT_SIGNIFICANT} from {' and '.join(alike)})" if alike else ""
    return f"{study.named(best)} {rates[best].alone()} at batch {runs[0].batch}{apart}"


STEP6A = Question(
    "step6a",
    "Results",
    (single_images_beside, batches_beside),
    answered("Backends", backends_finding),
    Theme.PROTOCOLS,
    unless=("contention", "protocols"),
    place=2,
)
