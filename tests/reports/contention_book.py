"""Made-up studies of HTTP against gRPC: each arm's images per second and connections are chosen."""

from pathlib import Path
from typing import Any

from reports.study.study import Study, load_study
from reports.topics.contention.conclusion import Conclusion, verdicts
from tests.reports.builder import Book
from tests.reports.lines import REQUEST_BYTES, Record, health_line, triton

USERS, REQUESTS = 16, 160
LINK: Record = {
    **{"name": "wan-a100", "one_way_ms": 7, "mbit_per_s": 210, "loss_pct": 0.07, "queue_bytes": 1_000_000},
    **{"congestion_control": "cubic", "published": "step7-a100", "emulator": "tun", "differences": []},
    "measured": {"h1": {"rtt_ms": 14.1, "mbit_per_s": 209, "loss_pct": 0.06}},
}
LAN: Record = {"name": "lan", "one_way_ms": 0, "mbit_per_s": None, "loss_pct": 0, "published": ""}
HOST: Record = {"name": "h1", "kind": "netns", "workers": 4, "facts": {"cores": 2, "python": "3.11.9"}}

# arm: (protocol, channels, workers, client, congestion, connections)
ARMS: dict[str, tuple[str, str, int, str, str, int]] = {
    "R0": ("http", "per-user", 1, "prepared", "", 16),
    "R1": ("http", "shared", 1, "prepared", "", 1),
    "R2": ("grpc", "shared", 1, "prepared", "", 1),
    "R3": ("grpc", "same-args", 1, "library", "", 1),
    "R4": ("grpc", "per-user", 1, "prepared", "", 16),
    "R5": ("grpc", "pool:4", 1, "prepared", "", 4),
    "R6": ("grpc", "shared", 4, "prepared", "", 4),
    "R8": ("grpc", "shared", 1, "library", "", 1),
    "R9": ("grpc", "per-user", 1, "library", "", 16),
    "R12": ("grpc", "shared", 1, "prepared", "bbr", 1),
}
BY_CONNECTIONS = {
    **{"R0": 42.0, "R1": 6.9, "R2": 7.4, "R3": 7.5, "R4": 41.8, "R5": 27.0, "R6": 28.9},
    **{"R8": 7.2, "R9": 41.9, "R12": 40.0},
}
BY_CPU = {
    **{"R0": 42.0, "R1": 41.5, "R2": 7.4, "R3": 4.1, "R4": 7.6, "R5": 7.5, "R6": 28.0, "R8": 4.0},
    **{"R9": 4.1, "R12": 7.3},
}
BY_LIBRARY = {"R0": 42.0, "R1": 41.5, "R2": 41.8, "R4": 42.0, "R8": 20.0, "R9": 20.5}
SPREAD = (1.0, 0.97, 1.03)
"""Of a figure from repeat to repeat."""


def a_study(**header: Any) -> Book:
    """An empty study over an emulated link like one that was published."""
    about = {"study": "step7_contention", "title": "HTTP against gRPC", "links": [LINK, LAN], "hosts": [HOST]}
    book = Book(**about | header)
    for protocol in ("http", "grpc"):
        book.endpoint(f"emulated-{protocol}", "127.0.0.1:9030")
        book.header["endpoints"][f"emulated-{protocol}"]["emulated"] = "a100"
    return book


def axes_of(code: str, link: str, many: bool = True) -> Record:
    """What the plan tells of an arm; `many`: the study varies them, so that their names are in the cell's."""
    return _axes(ARMS[code], link, many)


def _axes(arm: tuple[str, str, int, str, str, int], link: str, many: bool) -> Record:
    _, channels, workers, client, congestion, _ = arm
    words = (link, channels, f"{workers}w", client if client == "library" else "", congestion)
    told = {"channels": channels, "client": client, "workers": workers, "hosts": 1}
    variant = "/".join(word for word in words if word) if many else ""
    return told | {"link": link, "congestion": congestion, "variant": variant}


def an_arm(
    book: Book, code: str, rate: float, repeat: int = 1, link: str = "wan-a100", **more: Any
) -> Record:
    """One run of an arm with 16 users whose images per second are as said; `cpu_pct` is of its workers.

    A request takes the server `compute_ns` and 0.1 ms more; `again_per_10k` segments are sent again.
    `before`: by a version that had no own wire, where grpcio sent prepared requests, equal channels' too.
    """
    before = more.pop("before", False)
    arm = ("grpc", "same-args", 1, "prepared", "", 1) if before and code == "R3" else ARMS[code]
    protocol, _, workers, client, _, connections = arm
    cpu_pct, compute_ns = more.pop("cpu_pct", 6.0), more.pop("compute_ns", 5_000_000)
    again_per_10k = more.pop("again_per_10k", 7)
    loads = {f"w{at}": [round(USERS / rate * 1e9)] * (REQUESTS // workers) for at in range(workers)}
    counters, axes = triton(REQUESTS, 1, compute_ns), _axes(arm, link, many=True)
    if "workers_asked" in more:
        axes |= {"workers": more.pop("workers_asked"), "hosts": 0}
    tag = book.add(
        f"emulated-{protocol}", 1, USERS, loads, repeat=repeat, axes=axes, counters=counters, **more
    )
    book.serving(tag, instances=16)
    told: Record = {}
    if protocol == "grpc" and client == "prepared" and not before:
        book.phases(tag, **own_wire(rate, compute_ns))
        told = {"http2": {"connections": connections // workers, "streams": USERS // connections}}
    for worker in loads:
        book.path(tag, worker, **carried(rate, connections // workers, workers, again_per_10k), **told)
        book.records.append(health_line(tag, worker, cpu_pct=cpu_pct, lags_ns=[300_000]))
    return tag


def own_wire(rate: float, compute_ns: int) -> Record:
    """What the own wire tells of a request: sent for a second of its time, to the last byte."""
    waited_ns = compute_ns + 14_000_000
    send_ns = max(0, round(USERS / rate * 1e9) - waited_ns)
    return {"send": send_ns, "wait": waited_ns, "receive": 0, "decode": 0}


def carried(rate: float, connections: int, workers: int, again_per_10k: int = 7) -> Record:
    """What a worker's connections carried over a link of 14 ms that loses so many segments of 10,000."""
    sent, span_ns = REQUESTS * REQUEST_BYTES // workers, round(REQUESTS / rate * 1e9)
    segments = sent // 1_448
    again = segments * again_per_10k // 10_000
    times = {"busy_ns": connections * span_ns, "rwnd_limited_ns": 0, "sndbuf_limited_ns": 0}
    trips = {"rtt_ns": 14_500_000, "min_rtt_ns": 14_000_000, "cwnd_bytes": 66_600}
    counts = {"bytes_sent": sent, "bytes_received": sent // 300, "bytes_retransmitted": sent // 1_430}
    counts |= {"segments_out": segments, "segments_in": segments // 2, "retransmits": again}
    return {"span_ns": span_ns, "asked": connections, "connections": connections, **times, **trips, **counts}


def arms(book: Book, rates: dict[str, float], repeats: int = 3, link: str = "wan-a100", **more: Any) -> Book:
    """All repeats of some arms, each repeat a little off the figure."""
    for repeat in range(1, repeats + 1):
        for code, rate in rates.items():
            an_arm(book, code, rate * SPREAD[(repeat - 1) % len(SPREAD)], repeat, link, **more)
    return book


def studied(book: Book, folder: Path) -> Study:
    book.footer()
    return load_study(book.write(folder))


def the_verdict(book: Book, folder: Path) -> Conclusion:
    """Of a study with one case."""
    (verdict,) = verdicts(studied(book, folder))
    return verdict


def without(rates: dict[str, float], *codes: str) -> dict[str, float]:
    return {code: rate for code, rate in rates.items() if code not in codes}
