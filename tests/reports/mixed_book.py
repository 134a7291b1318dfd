"""Ledgers of cells whose requests are of several batches, with good requests by --slo."""

from collections.abc import Mapping, Sequence
from typing import Any

from tests.reports.builder import Book
from tests.reports.lines import FIRST_NS, FIRST_SECOND, Record, drained_line, encoded, start_line, window

MS = 1_000_000
MIX = "1:0.8,16:0.2"


def class_record(latencies_ns: Sequence[int], batch: int, limit_ns: int | None, failures: int = 0) -> Record:
    """What a window has of one class."""
    times = {name: encoded(latencies_ns) for name in ("latency", "service_time")} if latencies_ns else {}
    good = {} if limit_ns is None else {"good": sum(ns <= limit_ns for ns in latencies_ns)}
    counts = {"ok": len(latencies_ns), "failures": failures, "images": batch * len(latencies_ns)}
    return counts | good | {"histograms": times}


def mixed_second(
    tag: Record,
    second: int,
    classes_ms: Mapping[int, Sequence[float]],
    limit_ms: float | None = None,
    failed: int = 0,
    worker: str = "w0",
) -> Record:
    """A second of a worker with these latencies by batch; failures are of batch 1."""
    limit_ns = None if limit_ms is None else round(limit_ms * MS)
    each = {batch: [round(ms * MS) for ms in values] for batch, values in classes_ms.items()}
    classes = {
        f"b{batch}": class_record(values, batch, limit_ns, failed if batch == 1 else 0)
        for batch, values in each.items()
    }
    made = window(tag, worker, [ns for values in each.values() for ns in values], 1)
    made |= {"second": FIRST_SECOND + second, "images": sum(one["images"] for one in classes.values())}
    made |= {"failures": {"timeout": failed} if failed else {}, "classes": classes}
    made |= {"last_end_ns": FIRST_NS + 1_000 * MS * (second + 1)}
    return made if limit_ns is None else made | {"good": sum(one["good"] for one in classes.values())}


def a_mix(book: Book, seconds: Sequence[Record], level: float = 8, repeat: int = 1, **entry: Any) -> Record:
    """One run of a mix with these windows, whose tags are set; open where it has arrivals."""
    tag = book.plan("onnx-http", 16, level, repeat, entry.get("arrivals"), {"batch_mix": MIX})
    plan = book.header["plan"][-1]
    plan["cell"] = tag["cell"] = tag["cell"].replace("/b16/", "/mix/")
    finished = sum(one["ok"] + sum(one["failures"].values()) for one in seconds)
    drained = drained_line(tag, "w0", 8, finished) | {"users_ns": 8 * 1_000 * MS * len(seconds)}
    if "dropped" in entry:
        due = finished + entry["dropped"]
        drained |= {"sent": finished, "due": due, "dropped": entry["dropped"], "overslept": 0}
        drained |= {"phase_ns": 1_000 * MS * len(seconds)}
    book.records += [start_line(tag, "w0"), *(one | tag for one in seconds), drained]
    book.records.append(
        {"kind": "run", **tag, "utc": "2026-11-21T11:00:31Z", "event": "end", "status": "done"}
    )
    return tag
