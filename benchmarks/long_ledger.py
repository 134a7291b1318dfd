"""Ledgers as long studies leave them, quickly written: each worker's second is one of a few, told again."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from reports.fold.records import epoch_s, iso
from reports.histogram.codec import encoded_ns
from reports.ledger.ledger import FILE_NAME, VERSION
from reports.ledger.seals import seal_record

STARTED = "2026-11-21T11:00:00Z"
KINDS, PER_SECOND, NS = 20, 25, 1_000_000_000
"""Different seconds, the requests in each of them, and nanoseconds in one."""
WARM_UP_S = 5
TAG = {"cell": "8888001", "repeat": 8_888_002, "phase": "8888003"}
MARKS = {"second": 8_888_004, "images": 8_888_005, "first_start_ns": 8_888_006, "last_end_ns": 8_888_007}
"""What every second has of its own, as templates have it."""
PARTS_NS = {"latency": 20e6, "service_time": 20e6, "send_delay": 1e4, "encode": 2e6, "send": 1e6}
PARTS_NS |= {"wait": 16e6, "receive": 1e5, "decode": 5e4}
Record = dict[str, Any]
HEALTH = {"cpu_pct": 60.0, "loop_ran_ns": 5 * 10**8, "cpu_wait_ns": 10**7, "gc_pauses": 3}
HEALTH |= {"gc_ns": 10**6, "gc_max_ns": 5 * 10**5}
PATH = {
    **{"asked": 4, "connections": 4, "cwnd_bytes": 916_762, "not_sent_bytes": 0, "rtt_ns": 6_367_000},
    **{"min_rtt_ns": 5_000, "delivery_bytes_per_s": 335_810_256, "segments_out": 112, "segments_in": 40},
    **{"bytes_sent": 24_084_480, "bytes_received": 82_000, "bytes_retransmitted": 0, "retransmits": 0},
    **{"busy_ns": 6 * 10**8, "rwnd_limited_ns": 10**6, "sndbuf_limited_ns": 0},
}
"""What a worker says of itself and of its connections in any second."""


def planned(endpoint: str, batch: int, level: int, repeat: int = 1) -> Record:
    """One closed-loop run as a header lists it."""
    backend, protocol = endpoint.split("-")
    cell: Record = {"cell": f"{endpoint}/b{batch}/c{level}", "endpoint": endpoint, "backend": backend}
    cell |= {"protocol": protocol, "payload": "jpeg" if backend == "pytorch" else "fp32", "batch": batch}
    return cell | {"load": "closed", "level": level, "repeat": repeat}


def write_study(folder: Path, plan: Sequence[Mapping[str, Any]], seconds: int, workers: int) -> None:
    """A complete study of these runs, each measured for so long by so many workers."""
    header = {"kind": "header", "version": VERSION, "study": "step7", "title": "Sizes", "size": "full"}
    header |= {"started_utc": STARTED, "plan": list(plan)}
    random = np.random.default_rng(1)
    told = [[template(f"w{number}", random) for number in range(workers)] for _ in range(KINDS)]
    with open(folder / FILE_NAME, "wb") as file:
        checksum = 0
        for number, text in enumerate(lines_of_study(header, seconds, told), 1):
            whole, made = seal_record(text.encode(), number, checksum)
            checksum = checksum or made
            file.write(whole)


def lines_of_study(header: Record, seconds: int, told: Sequence[Sequence[str]]) -> Iterator[str]:
    """All of its lines, without their ends and seals."""
    yield from line(header).splitlines()
    for place, run in enumerate(header["plan"]):
        began = int(epoch_s(STARTED)) + place * (WARM_UP_S + seconds + 2)
        for text in lines_of(run, began, seconds, told):
            yield from text.splitlines()
    yield from line({"kind": "footer", "status": "complete", "reason": ""}).splitlines()


def lines_of(
    run: Mapping[str, Any], began: int, seconds: int, told: Sequence[Sequence[str]]
) -> Iterator[str]:
    """One run from its start to its end, of which `told` has some seconds of every worker."""
    tag: Record = {name: run[name] for name in ("cell", "repeat")}
    names, measured = [f"w{number}" for number in range(len(told[0]))], began + WARM_UP_S
    ended = measured + seconds
    yield line({"kind": "run", **tag, "event": "start", "utc": iso(began), "workers": names, "hosts": 1})
    for phase, first, end in (("warm-up", began, measured), ("measure", measured, ended)):
        yield line({"kind": "phase", **tag, "phase": phase, "utc": iso(first), "t_ns": 1})
        yield from lines_of_phase({**tag, "phase": phase}, range(first, end), told, run["batch"])
    yield line({"kind": "phase", **tag, "phase": "drain", "utc": iso(ended), "t_ns": 1})
    done = {"users": 4, "finished": seconds * PER_SECOND, "abandoned": 0, "phase_ns": seconds * NS}
    for name in names:
        yield line({"kind": "drained", **tag, "worker": name, "phase": "measure", **done})
    yield line({"kind": "run", **tag, "event": "end", "utc": iso(ended), "status": "done", "note": ""})


def lines_of_phase(tag: Record, seconds: range, told: Sequence[Sequence[str]], batch: int) -> Iterator[str]:
    """What all workers and the sampler say of each second."""
    for place, second in enumerate(seconds):
        own = {"second": second, "first_start_ns": place * NS + 1, "last_end_ns": (place + 1) * NS}
        own |= {"images": batch * PER_SECOND, **tag}
        for of_worker in told[place % KINDS]:
            yield of_worker % own
        served = place * PER_SECOND * len(told[0])
        yield line({"kind": "sample", **tag, "second": second, **sample(served, batch)})


def template(worker: str, random: np.random.Generator) -> str:
    """The three lines of a worker's second, to be filled in."""
    texts = {
        name: encoded_ns(random.lognormal(np.log(ns), 0.4, PER_SECOND).astype(np.int64).tolist())[0]
        for name, ns in PARTS_NS.items()
    }
    window: Record = {"ok": PER_SECOND, "failures": {}, "abandoned": 0, "late": 0, **MARKS}
    window |= {"request_bytes": 602_112 * PER_SECOND, "response_bytes": 2_048 * PER_SECOND}
    window |= {"server_ns": {}, "server_count": 0, "histograms": texts, "out_of_range": {}}
    lag = encoded_ns(random.exponential(2e5, 50).astype(np.int64).tolist())[0]
    own: Record = {"second": MARKS["second"], "span_ns": NS}
    health = {**HEALTH, "lag": lag, "users": 4, "in_flight": int(random.integers(0, 5))}
    kinds = {"window": window, "health": own | health, "path": own | PATH}
    told = "".join(line({"kind": kind, **TAG, **of, "worker": worker}) for kind, of in kinds.items())
    for name, mark in (TAG | MARKS).items():
        told = told.replace(str(mark), f"%({name})s")
    return told


def sample(requests: int, batch: int) -> Record:
    """What the sampler reads once so many requests were served."""
    counted = {name: requests * ns for name, ns in (("queue_ns", 10**6), ("compute_ns", 10**7))}
    served = {"requests": requests, "successes": requests, "images": requests * batch, "executions": requests}
    gpu = {"id": 0, "util_pct": 40, "memory_bytes": 2 * 10**9, "power_w": 90.5, "sm_clock_mhz": 1_400}
    host = {"cpu_pct": 33.3, "tx_bytes": requests * 602_112, "rx_bytes": requests * 2_048}
    return {"server": served | counted, "pending_requests": 0, "gpus": [gpu], "host": host}


def line(record: Record) -> str:
    """As a ledger has it."""
    return json.dumps(record, separators=(",", ":")) + "\n"
