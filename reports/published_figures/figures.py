"""What others published before: figures to stand beside a study's own, each with its source, never ours."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from reports.cells_csv.rows import Row, published_files, read_published
from reports.format import MISSING
from reports.page.table import Footnotes, TableCell
from reports.study.study import Study
from reports.summary.summary import Summary

AS_PUBLISHED = {"http": ("", "per-user"), "grpc": ("shared", "same-args")}
"""Channels by protocol, as the published clients had them; older ledgers do not tell HTTP's."""
EQUAL_CHANNELS = "same-args"
"""One connection where grpcio sends, which joins channels of equal arguments; our own wire does not."""
THREE_BACKENDS = "step6a"
Figure = Callable[[Row], float | None]
Figures = Mapping[str, Sequence[Row]]


def of_column(name: str) -> Figure:
    """What was published in one column of cells.csv; None where it was not."""
    return lambda it: it.numbers.get(name)


RATE, P50, MEAN = map(of_column, ("images_per_s", "latency_p50_ms", "latency_mean_ms"))


def beside(run: Summary, figures: Sequence[Row]) -> Row | None:
    """The published figure of a run's batch and level that is most like it: of its own endpoint, of the one
    that it stands in for, or of the first with the same protocol and payload; None where there is none.
    """
    there = [figure for figure in figures if figure.endpoint == their_endpoint(run, figures)]
    here = (run.batch, run.load, run.level)
    return next((it for it in there if (it.batch, it.load, it.level) == here), None)


def their_endpoint(run: Summary, figures: Iterable[Row]) -> str:
    """The published endpoint that a run's is put beside; empty where none carries the same the same way."""
    carried = (run.protocol, run.payload)
    alike = [(it.backend, it.endpoint) for it in figures if (it.protocol, it.payload) == carried]
    for backend in (run.backend, run.facts.stands_for):
        if found := [endpoint for theirs, endpoint in alike if theirs == backend]:
            return found[0]
    return alike[0][1] if alike else ""


def published_figures(study: Study) -> Figures:
    """The published figures beside those over each link that models such a study's, by the link's name.

    None for a study of anything else than theirs.
    """
    if not study.of_published_study:
        return {}
    named = {str(link.get("name")): str(link.get("published") or "") for link in study.links}
    used = {run.link for run in study.runs}
    found = {link: read_published(name) for link, name in named.items() if link in used}
    return {link: figures for link, figures in found.items() if figures}


def as_published(run: Summary) -> bool:
    """Whether a run used connections as theirs did: HTTP one for each user, gRPC one for all.

    A single user has one connection in any case.
    """
    if run.congestion or (run.workers or 1) > 1:
        return False
    if run.channels == EQUAL_CHANNELS and by_own_wire(run):
        return run.serial
    return run.serial or run.channels in AS_PUBLISHED.get(run.protocol, ())


def by_own_wire(run: Summary) -> bool:
    """Whether our own HTTP/2 sent a run's gRPC requests: grpcio does not tell when one was sent.

    False, too, where no request was answered, which would tell.
    """
    return run.protocol == "grpc" and run.phases.send_ns is not None


def sourced(value: float | None, it: Row, notes: Footnotes) -> TableCell:
    """A published number with the digits that it was published with, marked with where that was."""
    if value is None:
        return TableCell(MISSING)
    return TableCell(f"{value:,.6g}", notes.marks([f"published: {it.source}"]))


def of_three_backends(study: Study) -> Figures:
    """The published studies of the three backends by name; none for a study of something else."""
    if study.header["study"] != THREE_BACKENDS or not study.of_published_study:
        return {}
    return {name: read_published(name) for name in published_files() if name.startswith(f"{THREE_BACKENDS}-")}
