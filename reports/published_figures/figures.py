"""What others published before: figures to stand beside a study's own, each with its source, never ours."""

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reports.summary.summary import Summary

FOLDER = Path(__file__).parent.parent / "published"
STANDS_FOR = {"openvino": "trt"}
"""A backend of ours that stands in for one of theirs."""
TEXTS = ("study", "endpoint", "backend", "protocol", "payload", "load", "source")
NUMBERS = (
    *("images_per_s", "latency_mean_ms", "latency_p50_ms", "latency_p95_ms", "latency_p99_ms"),
    *("server_ms", "server_compute_ms", "gpu_memory_bytes", "encode_ms", "request_bytes"),
)


@dataclass(frozen=True, kw_only=True)
class Published:
    """One figure of a published study; None where it was not published.

    The server's compute and total are means per request; `timed_out` says that a timeout was published.
    """

    study: str
    endpoint: str
    backend: str
    protocol: str
    payload: str
    batch: int
    load: str
    level: float
    images_per_s: float | None
    latency_p50_ms: float | None
    source: str
    latency_mean_ms: float | None = None
    latency_p95_ms: float | None = None
    latency_p99_ms: float | None = None
    server_ms: float | None = None
    server_compute_ms: float | None = None
    gpu_memory_bytes: float | None = None
    encode_ms: float | None = None
    request_bytes: float | None = None
    timed_out: bool = False


def published_files() -> dict[str, Path]:
    """The file of each published study, by the study's name, in the order of names."""
    return {path.stem: path for path in sorted(FOLDER.glob("*.csv"), key=lambda path: path.stem)}


def read_published(name: str) -> tuple[Published, ...]:
    """The figures of one published study, in its file's order; none where no file of ours has that name."""
    known = published_files()
    if name not in known:
        return ()
    with known[name].open(encoding="utf-8", newline="") as lines:
        return tuple(_figure(row) for row in csv.DictReader(lines))


def _figure(row: dict[str, str]) -> Published:
    told: dict[str, Any] = {name: row[name] for name in TEXTS}
    told |= {name: _number(row[name]) for name in NUMBERS}
    timed_out = "failures" in row["caveats"].split(";")
    return Published(**told, batch=int(row["batch"]), level=float(row["level"]), timed_out=timed_out)


def _number(text: str) -> float | None:
    return float(text) if text else None


def beside(run: Summary, figures: Sequence[Published]) -> Published | None:
    """The published figure of a run's batch and level that is most like it: of its own endpoint, of the one
    that it stands in for, or of the first with the same protocol and payload; None where there is none.
    """
    there = [figure for figure in figures if figure.endpoint == their_endpoint(run, figures)]
    here = (run.batch, run.load, run.level)
    return next((it for it in there if (it.batch, it.load, it.level) == here), None)


def their_endpoint(run: Summary, figures: Iterable[Published]) -> str:
    """The published endpoint that a run's is put beside; empty where none carries the same the same way."""
    alike = [(it.backend, it.endpoint) for it in figures if _way(it) == (run.protocol, run.payload)]
    for backend in (run.backend, STANDS_FOR.get(run.backend)):
        if found := [endpoint for theirs, endpoint in alike if theirs == backend]:
            return found[0]
    return alike[0][1] if alike else ""


def _way(figure: Published) -> tuple[str, str]:
    return figure.protocol, figure.payload
