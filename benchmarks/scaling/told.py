"""What one simulated worker tells the master, packed as Locust's link carries it."""

from __future__ import annotations

import locust  # noqa: F401  (first: it patches sockets and threads)

import struct
from functools import cache
from typing import Any

import msgpack  # type: ignore[import-untyped]
import numpy as np

from benchmarks.long_ledger import HEALTH, PATH
from benchmarks.stand_in import results
from reports.histogram import codec
from swarm.distributed.protocol import PROGRESS, PROGRESS_FIELDS, RECORDS
from swarm.distributed.recorder import Window

PER_S = 100
"""Requests a second of one worker: they decide how long its histograms are."""
NS_PER_S = 1_000_000_000
SECOND, SENT_NS = 0xF1F2F3F4, 0xF1F2F3F4F5F6F7F8
"""What stands for the second and the moment of sending until a message is sent."""
Tag = tuple[str, int, str]
"""cell, repeat, phase"""


def records(tag: Tag, seed: int) -> list[dict[str, Any]]:
    """One second of a worker: its window, as the real recorder makes it, and its health."""
    random = np.random.default_rng(seed)
    cell = dict(zip(("cell", "repeat", "phase"), tag, strict=True))
    services = map(int, random.lognormal(np.log(20e6), 0.5, PER_S))
    window = Window()
    for result in results(services, 0, NS_PER_S // PER_S, tag[0]):
        window.add(result)
    lag, _ = codec.encoded_ns(random.exponential(2e5, 50).astype(np.int64).tolist())
    head = {**cell, "second": SECOND, "span_ns": NS_PER_S}
    health = {**HEALTH, "lag": lag, "users": 1, "in_flight": 1, "sent_ns": SENT_NS}
    return [window.to_record((*tag, SECOND)), {"kind": "health", **head, **health}]


def path(tag: Tag) -> list[dict[str, Any]]:
    """What it says of its connections, which it sends apart."""
    cell = dict(zip(("cell", "repeat", "phase"), tag, strict=True))
    one = {**PATH, "asked": 1, "connections": 1}
    return [{"kind": "path", **cell, "second": SECOND, "span_ns": NS_PER_S, **one}]


def head(kind: str, data: Any) -> bytes:
    """A message of Locust's but for the worker's id, which comes last: the same for every worker."""
    return b"\x93" + bytes(msgpack.packb(kind)) + bytes(msgpack.packb(data))


def whole(head: bytes, worker: str) -> bytes:
    """The message of one worker."""
    return head + bytes(msgpack.packb(worker))


def told(records: list[dict[str, Any]]) -> bytes:
    """The head of a message of records, to be stamped."""
    return head(RECORDS, {"records": records, "raw": []})


def stamped(head: bytes, second: int, sent_ns: int) -> bytes:
    """The same, of this second and sent at this moment of the monotonic clock."""
    marked = head.replace(struct.pack(">BI", 0xCE, SECOND), struct.pack(">BI", 0xCE, second))
    return marked.replace(struct.pack(">BQ", 0xCF, SENT_NS), struct.pack(">BQ", 0xCF, sent_ns))


def progress(tag: Tag, ok: int) -> bytes:
    """The head of a message that tells how far a phase has come."""
    return head(PROGRESS, dict(zip(PROGRESS_FIELDS, (*tag, ok, 0), strict=True)))


def users(count: int) -> dict[str, Any]:
    """How many users a worker has, as Locust tells it."""
    return {"user_classes_count": {"SimulatedUser": count}, "user_count": count}


@cache
def stats(users_count: int) -> bytes:
    """The head of what Locust's own worker reports every three seconds, one name's statistics in it."""
    entry = {"name": "a-http/b1/c16", "method": "http", "last_request_timestamp": 1.8e9, "start_time": 1.8e9}
    entry |= {"num_requests": 3 * PER_S, "num_none_requests": 0, "num_failures": 0}
    entry |= {"total_response_time": 6e3, "max_response_time": 90.0, "min_response_time": 4.0}
    entry |= {"total_content_length": 3_300_000, "response_times": {float(ms): 5 for ms in range(5, 65)}}
    entry |= {"num_reqs_per_sec": {1_800_000_000 + at: PER_S for at in range(3)}, "num_fail_per_sec": {}}
    total = {**entry, "name": "Aggregated", "method": ""}
    data = {"stats": [entry], "stats_total": total, "errors": {}}
    return head("stats", {**data, **users(users_count)})
