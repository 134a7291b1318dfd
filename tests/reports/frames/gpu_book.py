"""The study of docs/frames.md: a GPU that throttles, a client without CPU left, a worker that fails."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow
from pyarrow import parquet

from reports.ledger.results import COLUMNS, FILE_NAME, NUMBERS
from tests.reports import lines
from tests.reports.builder import Book
from tests.reports.example import MS, lognormal
from tests.reports.lines import FIRST_NS, FIRST_SECOND, Record, encoded

SECONDS, A_SECOND, JUMP = 8, 40, 5
"""Of each run, requests of each worker in each, and the second in which the GPU throttles."""
WORKERS = ("w0", "w1")


def gpu_study(folder: Path) -> Path:
    """Three runs, of which the single requests were kept too; returns the folder."""
    book = Book(options={"command": "locust -f locustfiles/step7.py --headless"})
    for name, url in (("onnx-http", "127.0.0.1:8010"), ("onnx-grpc", "127.0.0.1:8011")):
        book.endpoint(name, url, weights="random (seed 0)")
    rows = [
        *throttled(book, book.plan("onnx-http", 1, 8)),
        *overloaded(book, book.plan("onnx-http", 1, 80, arrivals="constant")),
        *failing(book, book.plan("onnx-grpc", 1, 8)),
    ]
    book.footer()
    write_requests(book.write(folder), rows)
    return folder


def throttled(book: Book, tag: Record) -> list[Record]:
    """In one second the GPU's clock falls to a third, and requests queue."""
    return run(book, tag, [60.0 if second == JUMP else 20.0 for second in range(SECONDS)])


def overloaded(book: Book, tag: Record) -> list[Record]:
    """Open-loop load by workers without CPU left: requests start late, and the server is as fast as ever."""
    return run(book, tag, [20.0] * SECONDS, delay_ms=45.0, cpu_pct=98.0)


def failing(book: Book, tag: Record) -> list[Record]:
    """One worker's requests fail, for it has no way to the server now and then."""
    return run(book, tag, [22.0] * SECONDS, failures={"w1": {"unreachable": 3}})


def run(
    book: Book,
    tag: Record,
    median_ms: Sequence[float],
    delay_ms: float = 0.0,
    cpu_pct: float = 30.0,
    failures: Mapping[str, Mapping[str, int]] | None = None,
) -> list[Record]:
    """One run with these medians of the service time in its seconds; its rows of results.parquet."""
    rows: list[Record] = []
    counters: Record = {}
    book.records.append(lines.start_line(tag, *WORKERS))
    for second, service_ms in enumerate(median_ms):
        for place, worker in enumerate(WORKERS):
            service_ns = lognormal(2 * second + place, service_ms, A_SECOND)
            delays_ns = lognormal(second, delay_ms, A_SECOND) if delay_ms else [0] * A_SECOND
            failed = (failures or {}).get(worker, {})
            book.records.append(measured(tag, worker, second, service_ns, delays_ns, failed))
            state = {"cpu_pct": cpu_pct, "cpu_wait_ns": 0, "span_ns": 1_000 * MS}
            book.records.append(lines.health_line(tag, worker, FIRST_SECOND + second, **state))
            pairs = [(delay, took, "") for delay, took in zip(delays_ns, service_ns, strict=True)]
            pairs += [(0, 2 * MS, kind) for kind, count in failed.items() for _ in range(count)]
            rows += [single(tag, worker, second, at, *pair) for at, pair in enumerate(pairs)]
        counters = grown(counters, service_ms)
        book.records.append(sampled(tag, second, service_ms, counters))
    for worker in WORKERS:
        finished = SECONDS * (A_SECOND + sum((failures or {}).get(worker, {}).values()))
        ended = lines.drained_line(tag, worker, 4, finished)
        counted = {"sent": finished, "due": finished, "dropped": 0} if delay_ms else {}
        book.records.append(ended | counted | {"phase_ns": SECONDS * 1_000 * MS})
    book.records += lines.readings(tag, {name: value - 1_000 for name, value in counters.items()})
    edge = {"kind": "run", **tag, "utc": "2026-11-21T11:00:11Z", "event": "end"}
    book.records.append(edge | {"status": "done", "note": ""})
    return rows


def measured(
    tag: Record,
    worker: str,
    second: int,
    service_ns: Sequence[int],
    delays_ns: Sequence[int],
    failures: Mapping[str, int],
) -> Record:
    """One worker's window of one second."""
    began_ns = FIRST_NS + second * 1_000 * MS
    line = lines.window(tag, worker, service_ns, 1) | {"second": FIRST_SECOND + second, "failures": failures}
    latency_ns = [sum(pair) for pair in zip(service_ns, delays_ns, strict=True)]
    line["histograms"] |= {"latency": encoded(latency_ns), "send_delay": encoded(delays_ns)}
    return line | {"first_start_ns": began_ns, "last_end_ns": began_ns + 1_000 * MS}


def sampled(tag: Record, second: int, service_ms: float, counters: Record) -> Record:
    """What the master saw of server and GPU in one second."""
    slow = service_ms > 50
    gpu = {"id": 0, "util_pct": 99 if slow else 71, "memory_bytes": 2 << 30}
    gpu |= {"power_w": 96.5 if slow else 148.0, "sm_clock_mhz": 645 if slow else 1_980}
    known = {"gpus": [gpu], "pending_requests": 6 if slow else 1, "server": counters}
    return lines.sample_line(tag, FIRST_SECOND + second, **known)


def grown(before: Record, service_ms: float) -> Record:
    """The server's counters a second later."""
    compute_ns, queue_ns = round(0.8 * service_ms * MS), round(service_ms * service_ms / 300 * MS)
    more = lines.triton(2 * A_SECOND, 1, compute_ns, queue_ns)
    return {name: before.get(name, 1_000) + value for name, value in more.items()}


def single(
    tag: Record, worker: str, second: int, at: int, delay_ns: int, service_ns: int, error: str
) -> Record:
    """One row of results.parquet."""
    intended_ns = (FIRST_SECOND + second) * 1_000 * MS + at * 20 * MS
    known = {"user": at % 4, "images": 1, "intended_utc_ns": intended_ns, "send_delay_ns": delay_ns}
    row = dict.fromkeys(COLUMNS) | {"cell": tag["cell"], "repeat": tag["repeat"], "worker": worker}
    texts = {"error": error, "request_id": "", "request_class": "", "trace_id": ""}
    return row | known | texts | {"service_ns": service_ns, "abandoned": False}


def write_requests(folder: Path, rows: Sequence[Record]) -> None:
    """results.parquet as a study writes it."""
    whole = dict.fromkeys(("repeat", *NUMBERS), pyarrow.int64())
    few = ("cell", "worker", "error", "request_class")
    names = dict.fromkeys(few, pyarrow.dictionary(pyarrow.int32(), pyarrow.string()))
    types = whole | names | dict.fromkeys(("request_id", "trace_id"), pyarrow.string())
    types |= {"abandoned": pyarrow.bool_()}
    columns = {name: pyarrow.array([row[name] for row in rows], types[name]) for name in COLUMNS}
    parquet.write_table(pyarrow.table(columns), folder / FILE_NAME)
