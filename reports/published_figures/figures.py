"""What others published before: figures to stand beside a study's own, each with its source, never ours."""

from collections.abc import Callable, Iterable, Sequence

from reports.cells_csv.rows import Row
from reports.summary.summary import Summary

STANDS_FOR = {"openvino": "trt"}
"""A backend of ours that stands in for one of theirs."""
Figure = Callable[[Row], float | None]


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
    for backend in (run.backend, STANDS_FOR.get(run.backend)):
        if found := [endpoint for theirs, endpoint in alike if theirs == backend]:
            return found[0]
    return alike[0][1] if alike else ""
