"""The fixed study behind the golden files: made-up numbers in the published study's shape, with doubts."""

import random

from tests.reports.builder import Book
from tests.reports.lines import FIRST_SECOND, Record, health_line, triton

MS = 1_000_000
BATCHES = (1, 4, 8)
# endpoint: address, weights, p50 at batch 1 in ms, ms for each further image
WAYS = {
    "pytorch-http": ("127.0.0.1:8002", "random (seed 0)", 12.0, 9.0),
    "onnx-http": ("127.0.0.1:8010", "random (seed 0)", 20.0, 14.0),
    "onnx-grpc": ("127.0.0.1:8011", "random (seed 0)", 21.0, 10.0),
    "openvino-http": ("127.0.0.1:8020", "random (seed 0)", 17.0, 11.0),
    "openvino-grpc": ("127.0.0.1:8021", "random (seed 0)", 18.0, 7.5),
}
FLOOR_MS = 2.5
JPEG_BYTES = 13_100
OPTIONS = {
    "command": "locust -f locustfiles/step7.py --headless --study quick --floor --link-mbit 1000",
    **{"link_mbit": 1000, "channels": "shared", "client": "prepared"},
}


def lognormal(seed: int, median_ms: float, count: int, sigma: float = 0.12) -> list[int]:
    """Durations in ns, the same on every machine."""
    generator = random.Random(seed)
    return [round(median_ms * MS * generator.lognormvariate(0, sigma)) for _ in range(count)]


def example() -> Book:
    """Serial runs in two repeats, eight users once, floors once, cold starts.

    One run failed, one never began, one lost a worker, one met a cold shape. The paths of OpenVINO's runs
    were not looked at.
    """
    book = Book(options=OPTIONS)
    for name, (url, weights, base_ms, image_ms) in WAYS.items():
        book.endpoint(name, url, weights)
        book.header["endpoints"][name] |= {"started_ns": round(base_ms * 300 * MS), "loaded_ns": 1_700 * MS}
        for batch in BATCHES:
            serial(book, name, batch, base_ms + image_ms * (batch - 1))
    for name, (_, _, base_ms, _) in list(WAYS.items())[:-1]:
        concurrent(book, name, base_ms)
    for name in ("onnx-http", "onnx-grpc"):
        floor(book, name)
    cold_starts(book)
    book.plan("openvino-grpc", 1, 8)
    book.footer("interrupted", "stopped after 36 of 37 runs")
    return book


def serial(book: Book, name: str, batch: int, median_ms: float) -> None:
    """Two repeats of 40 requests, save for the one cell that failed."""
    for repeat in (1, 2):
        if (name, batch) == ("openvino-http", 8):
            book.add(
                name, batch, 1, {}, repeat=repeat, status="failed", note="the server ended: exit code -6"
            )
            continue
        values = lognormal(1_000 * batch + repeat, median_ms, 40)
        counters = triton(40, batch, round(median_ms * 0.8 * MS))
        tag = book.add(name, batch, 1, {"w0": values}, repeat=repeat, counters=counters)
        book.records.append(health_line(tag, "w0", span_ns=1_000 * MS, cpu_wait_ns=30 * MS))
        if not name.startswith("openvino"):
            looked_at(book, tag, name, batch, 40, median_ms)


def concurrent(book: Book, name: str, base_ms: float) -> None:
    """Eight users on two workers."""
    loads = {worker: lognormal(seed, 4 * base_ms, 600) for seed, worker in enumerate(("w0", "w1"))}
    if name == "onnx-grpc":
        tag = book.add(name, 1, 8, loads, failures={"timeout": 2, "connection": 1})
        book.caveat(tag, "worker-lost", "w1 stopped answering after 3 s")
        return
    counters = triton(1_200, 1, round(base_ms * 0.8 * MS), queue_ns=round(base_ms * 2.4 * MS))
    if name == "openvino-http":
        # Batch 2 was new, and took a second and a half once.
        counters["batches"] = {"1": [1_000, 11_000 * MS, 100, 1_200 * MS], "2": [100, 3_500 * MS]}
    tag = book.add(name, 1, 8, loads, counters=counters)
    book.serving(tag, instances=2, batching_delay_ns=5 * MS)
    for worker in loads:
        book.records.append(health_line(tag, worker, span_ns=1_000 * MS, cpu_wait_ns=30 * MS))
    if name == "onnx-http":
        looked_at(book, tag, name, 1, 600, 4 * base_ms, 12, ("w0", "w1"), asked=4, connections=3)


def floor(book: Book, name: str) -> None:
    """The floor of one serial cell."""
    values = lognormal(9, FLOOR_MS, 40)
    book.endpoint(f"{name}-floor", book.header["endpoints"][name]["url"], "", "null")
    book.add(f"{name}-floor", 1, 1, {"w0": values}, counters=triton(40, 1, MS // 10))


def cold_starts(book: Book) -> None:
    """What each shape took at first; OpenVINO builds something for each. HTTP came first to each server."""
    for name, (_, _, base_ms, image_ms) in WAYS.items():
        for batch in BATCHES:
            second_ns = round((base_ms + image_ms * (batch - 1)) * MS)
            first_ns = second_ns * (90 if name.startswith("openvino") else 2)
            book.cold(name, batch, first_ns, second_ns, opening=batch == 1 and name.endswith("http"))


def looked_at(
    book: Book,
    tag: Record,
    name: str,
    batch: int,
    count: int,
    median_ms: float,
    seconds: int = 2,
    workers: tuple[str, ...] = ("w0",),
    **seen: int,
) -> None:
    """Phases, the server's own word and the path each second, in parts of the median latency."""
    part_ns = round(median_ms * MS / 100)
    if name.endswith("http"):
        book.phases(tag, send=3 * part_ns, wait=90 * part_ns, receive=part_ns, decode=part_ns // 2)
    else:
        book.phases(tag, encode=part_ns // 4, wait=98 * part_ns, decode=part_ns // 2)
    if name == "pytorch-http":
        book.request_bytes(tag, batch * JPEG_BYTES)
        book.server_timing(
            tag, decode=4 * part_ns, preprocess=part_ns, queue=part_ns // 10, compute=75 * part_ns
        )
    if len(workers) == 1:
        book.serving(tag)
    for worker in workers:
        for second in range(FIRST_SECOND, FIRST_SECOND + seconds):
            book.path(tag, worker, second, **carried(batch, count // seconds, part_ns, name), **seen)


def carried(batch: int, requests: int, part_ns: int, name: str) -> Record:
    """What one worker's connections carried in a second."""
    payload = JPEG_BYTES if name == "pytorch-http" else 602_112
    sent, received = requests * batch * payload, requests * batch * 2_048
    times = {
        "busy_ns": requests * 14 * part_ns,
        "rwnd_limited_ns": requests * part_ns,
        "sndbuf_limited_ns": 0,
    }
    segments = {"segments_out": sent // 1_448 + 1, "segments_in": sent // 2_896 + 1, "retransmits": 2}
    trips = {"rtt_ns": 600_000, "min_rtt_ns": 450_000, "cwnd_bytes": 14_480}
    counted = {"bytes_sent": sent, "bytes_received": received, "bytes_retransmitted": 2_896}
    return {**times, **segments, **trips, **counted, "delivery_bytes_per_s": 90_000_000, "not_sent_bytes": 0}
