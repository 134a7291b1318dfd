"""What others published before: figures to stand beside a study's own, each with its source, never ours."""

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any

from reports.cells_csv.rows import published_files
from reports.summary.summary import CellFields, Summary

STANDS_FOR = {"openvino": "trt"}
"""A backend of ours that stands in for one of theirs."""
TEXTS = ("study", "source", "endpoint", "backend", "protocol", "payload", "load")


@dataclass(frozen=True, kw_only=True)
class Published(CellFields):
    """One figure of a published study; None where it was not published.

    The server's compute and total are means per request; `timed_out` says that a timeout was published.
    """

    study: str
    source: str
    timed_out: bool
    images_per_s: float | None
    latency_mean_ms: float | None
    latency_p50_ms: float | None
    latency_p95_ms: float | None
    latency_p99_ms: float | None
    server_ms: float | None
    server_compute_ms: float | None
    gpu_memory_bytes: float | None
    encode_ms: float | None
    request_bytes: float | None


def read_published(name: str) -> tuple[Published, ...]:
    """The figures of one published study, in its file's order; none where no file of ours has that name."""
    known = published_files()
    if name not in known:
        return ()
    with known[name].open(encoding="utf-8", newline="") as lines:
        return tuple(_figure(row) for row in csv.DictReader(lines))


def _figure(row: dict[str, str]) -> Published:
    """A field that is no text is a number, which may be lacking."""
    texts = {name: row[name] for name in TEXTS}
    numbers = [one.name for one in fields(Published) if one.name not in {*TEXTS, "timed_out"}]
    told: dict[str, Any] = texts | {name: float(row[name]) if row[name] else None for name in numbers}
    told["batch"] = int(row["batch"])
    return Published(**told, timed_out="failures" in row["caveats"].split(";"))


def beside(run: Summary, figures: Sequence[Published]) -> Published | None:
    """The published figure of a run's batch and level that is most like it: of its own endpoint, of the one
    that it stands in for, or of the first with the same protocol and payload; None where there is none.
    """
    there = [figure for figure in figures if figure.endpoint == their_endpoint(run, figures)]
    here = (run.batch, run.load, run.level)
    return next((it for it in there if (it.batch, it.load, it.level) == here), None)


def their_endpoint(run: Summary, figures: Iterable[Published]) -> str:
    """The published endpoint that a run's is put beside; empty where none carries the same the same way."""
    carried = (run.protocol, run.payload)
    alike = [(it.backend, it.endpoint) for it in figures if (it.protocol, it.payload) == carried]
    for backend in (run.backend, STANDS_FOR.get(run.backend)):
        if found := [endpoint for theirs, endpoint in alike if theirs == backend]:
            return found[0]
    return alike[0][1] if alike else ""
