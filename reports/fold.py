"""From a ledger to one Summary for every planned run."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from reports.caveat import caveat
from reports.doubts import doubts
from reports.ledger import Ledger, LedgerError, Record
from reports.server import server_side
from reports.summary import Summary
from reports.windows import count, measure_ns, times

PLAN_FIELDS = ("cell", "repeat", "endpoint", "backend", "protocol", "payload", "batch", "load", "level")
Key = tuple[str, int]


def fold(ledger: Ledger) -> tuple[Summary, ...]:
    """One Summary for each planned run, in run order; LedgerError where a record lacks what it must have."""
    runs: dict[Key, list[Record]] = defaultdict(list)
    try:
        for record in ledger.records:
            if "cell" in record:
                runs[record["cell"], record["repeat"]].append(record)
        plan = [{name: entry[name] for name in PLAN_FIELDS} for entry in ledger.header["plan"]]
        return tuple(summarise(entry, runs[entry["cell"], entry["repeat"]]) for entry in plan)
    except (KeyError, TypeError, ValueError) as error:
        raise LedgerError(
            f"a record is not what a ledger holds ({error!r}): it was edited or damaged."
        ) from error


def summarise(planned: Mapping[str, Any], records: Sequence[Record]) -> Summary:
    """One run's windows, drained lines, server readings and caveats as one Summary."""
    edges = {record["event"]: record for record in records if record["kind"] == "run"}
    if "start" not in edges:
        return Summary(**planned, status="not-run")
    start, end = edges["start"], edges.get("end", {})
    status, note = end.get("status", "unfinished"), end.get("note", "")
    numbers = _numbers(records, status, note)
    return Summary(**planned, status=status, workers=len(start["workers"]), hosts=start["hosts"], **numbers)


def _numbers(records: Sequence[Record], status: str, note: str) -> dict[str, Any]:
    windows, drained = _measured(records, "window"), _measured(records, "drained")
    counts, server = count(windows, drained), server_side([r for r in records if r["kind"] == "server"])
    measured_ns = measure_ns(windows) if counts.finished else None
    stated = tuple(caveat(r["code"], r["text"]) for r in records if r["kind"] == "caveat")
    return {
        "requests": counts.finished,
        "failures": counts.failures,
        "failure_kinds": counts.failure_kinds,
        "abandoned": counts.abandoned,
        "images": counts.images,
        "measure_ns": measured_ns,
        "requests_per_s": _per_s(counts.ok, measured_ns),
        "images_per_s": _per_s(counts.images, measured_ns),
        "request_bytes": counts.request_bytes / counts.ok if counts.ok else None,
        "response_bytes": counts.response_bytes / counts.ok if counts.ok else None,
        "server_ns": server.server_ns,
        "server_queue_ns": server.queue_ns,
        "server_compute_ns": server.compute_ns,
        "executed_batch": server.executed_batch,
        "caveats": stated + tuple(doubts(status, note, counts, windows, drained, server)),
        **times(windows),
    }


def _measured(records: Sequence[Record], kind: str) -> list[Record]:
    return [record for record in records if record["kind"] == kind and record["phase"] == "measure"]


def _per_s(total: int, elapsed_ns: float | None) -> float | None:
    return total / (elapsed_ns / 1e9) if elapsed_ns else None
