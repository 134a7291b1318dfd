"""Synthetic ledgers: every number in them is chosen, so that tests can say what must come out."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from reports import histogram
from reports.ledger import FILE_NAME, LedgerWriter

FIRST_SECOND = 1_795_258_800
FIRST_NS = 1_000_000_000
REQUEST_BYTES, RESPONSE_BYTES = 602_112, 2_048

Record = dict[str, Any]


def encoded(values_ns: Sequence[int]) -> str:
    """A histogram of some durations as the ledger holds it."""
    made = histogram.empty()
    for value_ns in values_ns:
        histogram.record_ns(made, value_ns)
    return str(made.encode().decode("ascii"))


class Book:
    """A ledger in the making; each `add` is one planned run."""

    def __init__(self, **header: Any) -> None:
        self.header: Record = {
            "kind": "header",
            "version": 1,
            "study": "step7",
            "title": "Step 7: five ways to one model",
            "size": "quick",
            "started_utc": "2026-11-21T11:00:00.123Z",
            "plan": [],
            "options": {"command": "locust -f locustfiles/step7.py --headless --study quick"},
            "fingerprint": {"cpu": {"model": "Example CPU", "cores": 2}, "git_commit": "0123abc"},
            "images": {"count": 64, "source": "photographs", "jpeg_bytes_mean": 9800, "sha256": "ab12"},
            "endpoints": {},
        } | header
        self.records: list[Record] = []

    def endpoint(
        self, name: str, url: str, weights: str = "laion2b", model: str = "openclip_vit_b32"
    ) -> None:
        """Describes one endpoint in the header."""
        self.header["endpoints"][name] = {"url": url, "model": model, "weights": weights, "embedded": True}

    def plan(self, endpoint: str, batch: int, level: int, repeat: int = 1) -> Record:
        """Plans one run without making it; the tag of its records."""
        backend, protocol = endpoint.split("-")
        cell = f"{endpoint}/b{batch}/c{level}"
        entry: Record = {"cell": cell, "endpoint": endpoint, "backend": backend, "protocol": protocol}
        entry |= {"payload": "jpeg" if backend == "pytorch" else "fp32", "batch": batch}
        self.header["plan"].append(entry | {"load": "closed", "level": level, "repeat": repeat})
        return {"cell": cell, "repeat": repeat}

    def add(
        self,
        endpoint: str,
        batch: int,
        level: int,
        latencies_ns: Mapping[str, Sequence[int]],
        *,
        repeat: int = 1,
        failures: Mapping[str, int] | None = None,
        counters: Record | None = None,
        drained: bool = True,
        status: str = "done",
        note: str = "",
    ) -> Record:
        """Plans and makes one run; `latencies_ns` are the successes of each worker, back to back per user."""
        tag = self.plan(endpoint, batch, level, repeat)
        users = max(1, level // max(1, len(latencies_ns)))
        edge = {"kind": "run", **tag, "utc": "2026-11-21T11:00:01Z"}
        self.records.append(edge | {"event": "start", "workers": list(latencies_ns), "hosts": 1})
        for worker, values in latencies_ns.items():
            self.records += windows(tag, worker, values, batch, users, failures or {})
            if drained:
                finished = len(values) + sum((failures or {}).values())
                self.records.append(drained_line(tag, worker, users, finished))
        if counters is not None:
            self.records += readings(tag, counters)
        self.records.append(edge | {"event": "end", "status": status, "note": note})
        return tag

    def caveat(self, tag: Record, code: str, text: str) -> None:
        """A caveat that was known while running."""
        self.records.append({"kind": "caveat", **tag, "code": code, "text": text})

    def footer(self, status: str = "complete", reason: str = "") -> None:
        """The end of the study."""
        self.records.append(
            {"kind": "footer", "status": status, "reason": reason, "utc": "2026-11-21T11:09:00Z"}
        )

    def write(self, directory: Path) -> Path:
        """Writes the ledger into a directory and returns the directory."""
        directory.mkdir(parents=True, exist_ok=True)
        writer = LedgerWriter(directory / FILE_NAME)
        for record in (self.header, *self.records):
            writer.write(record)
        writer.close()
        return directory


def windows(
    tag: Record, worker: str, values: Sequence[int], batch: int, users: int, failures: Mapping[str, int]
) -> list[Record]:
    """One warm-up window that no fold may count, and two windows of the measure phase."""
    half = len(values) // 2
    end_ns = FIRST_NS + sum(values) // users
    first = window(tag, worker, values[:half], batch) | {"first_start_ns": FIRST_NS}
    second = window(tag, worker, values[half:], batch) | {"second": FIRST_SECOND + 1}
    warm_up = window(tag, worker, [1_000] * 7, batch) | {"phase": "warm-up"}
    return [warm_up, first, second | {"last_end_ns": end_ns, "failures": dict(failures)}]


def window(tag: Record, worker: str, values: Sequence[int], batch: int) -> Record:
    """One second of the measure phase with these successes."""
    found = {
        "latency": encoded(values),
        "service_time": encoded(values),
        "send_delay": encoded([0 for _ in values]),
    }
    return {
        "kind": "window",
        **tag,
        "worker": worker,
        "phase": "measure",
        "second": FIRST_SECOND,
        "ok": len(values),
        "failures": {},
        "abandoned": 0,
        "images": len(values) * batch,
        "request_bytes": len(values) * batch * REQUEST_BYTES,
        "response_bytes": len(values) * batch * RESPONSE_BYTES,
        "histograms": found if values else {},
        "server_ns": {},
        "server_count": 0,
        "first_start_ns": FIRST_NS + 1,
        "last_end_ns": FIRST_NS + 1,
    }


def drained_line(tag: Record, worker: str, users: int, finished: int, abandoned: int = 0) -> Record:
    """What a worker says when its users have finished."""
    line = {"kind": "drained", **tag, "worker": worker, "phase": "measure"}
    return line | {"users": users, "finished": finished, "abandoned": abandoned}


def readings(tag: Record, counters: Record) -> list[Record]:
    """Server counters before and after, which differ by `counters`; the first reading is not 0."""
    before = dict.fromkeys(counters, 1_000)
    after = {name: 1_000 + value for name, value in counters.items()}
    lines = (("before", before), ("after", after))
    return [{"kind": "server", **tag, "when": when, "counters": values} for when, values in lines]


def triton(requests: int, batch: int, compute_ns: int, queue_ns: int = 50_000) -> Record:
    """Counters of a Triton server over some requests, all successful and each executed by itself."""
    return {
        "requests": requests,
        "successes": requests,
        "images": requests * batch,
        "executions": requests,
        "queue_ns": requests * queue_ns,
        "input_ns": requests * 30_000,
        "compute_ns": requests * compute_ns,
        "output_ns": requests * 20_000,
    }
