"""The lines of synthetic ledgers, one function for each kind."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from reports.histogram import codec

FIRST_SECOND = 1_795_258_800
FIRST_NS = 1_000_000_000
REQUEST_BYTES, RESPONSE_BYTES = 602_112, 2_048

Record = dict[str, Any]


def encoded(values_ns: Sequence[int]) -> str:
    """A histogram of some durations as the ledger holds it."""
    return _encoded(tuple(values_ns))


@lru_cache(maxsize=512)
def _encoded(values_ns: tuple[int, ...]) -> str:
    """Kept, since runs of made-up studies are mostly alike."""
    return codec.encoded_ns(values_ns)[0]


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
    found = {name: encoded(values) for name in ("latency", "service_time")}
    found |= {"send_delay": encoded([0 for _ in values])}
    return {
        **{"kind": "window", **tag, "worker": worker, "phase": "measure", "second": FIRST_SECOND},
        **{"ok": len(values), "failures": {}, "abandoned": 0, "images": len(values) * batch},
        **{"request_bytes": len(values) * batch * REQUEST_BYTES},
        **{"response_bytes": len(values) * batch * RESPONSE_BYTES},
        **{"histograms": found if values else {}, "server_ns": {}, "server_count": 0},
        **{"first_start_ns": FIRST_NS + 1, "last_end_ns": FIRST_NS + 1},
    }


def drained_line(tag: Record, worker: str, users: int, finished: int, abandoned: int = 0) -> Record:
    """What a worker says when its users have finished."""
    line = {"kind": "drained", **tag, "worker": worker, "phase": "measure"}
    return line | {"users": users, "finished": finished, "abandoned": abandoned}


def health_line(
    tag: Record, worker: str, second: int = FIRST_SECOND, lags_ns: Sequence[int] = (100_000,), **told: object
) -> Record:
    """What a worker says of itself at a second's end."""
    line = {"kind": "health", **tag, "worker": worker, "phase": "measure", "second": second}
    line |= {"cpu_pct": 40.0, "lag": encoded(lags_ns), "gc_pauses": 0, "gc_ns": 0, "gc_max_ns": 0}
    return line | {"in_flight": 4, "users": 4} | told


def sample_line(tag: Record, second: int = FIRST_SECOND, **stated: object) -> Record:
    """What the master sampled in a second; what is not known is left out."""
    return {"kind": "sample", **tag, "phase": "measure", "second": second} | stated


def path_line(tag: Record, worker: str, second: int = FIRST_SECOND, **stated: object) -> Record:
    """What the kernel knew of a worker's connections at a second's end; what is not known is left out."""
    line = {"kind": "path", **tag, "worker": worker, "phase": "measure", "second": second}
    return line | {"span_ns": 1_000_000_000, "asked": 1, "connections": 1} | stated


def start_line(tag: Record, *workers: str) -> Record:
    """The begin of a run."""
    edge = {"kind": "run", **tag, "utc": "2026-11-21T11:00:01Z", "event": "start"}
    return edge | {"workers": list(workers), "hosts": 1}


def phase_line(tag: Record, phase: str, utc: str) -> Record:
    """The begin of a phase."""
    return {"kind": "phase", **tag, "phase": phase, "utc": utc, "t_ns": 1}


def readings(tag: Record, counters: Record) -> list[Record]:
    """Server counters before and after, which differ by `counters`; the first reading is not 0.

    A batch size comes as [executions, time] of the growth, with the same two of the first reading after them
    where the size had been executed before.
    """
    plain = {name: value for name, value in counters.items() if name != "batches"}
    before: Record = dict.fromkeys(plain, 1_000)
    after: Record = {name: 1_000 + value for name, value in plain.items()}
    if sizes := counters.get("batches"):
        before["batches"] = {size: counted[2:] for size, counted in sizes.items() if counted[2:]}
        after["batches"] = {size: [sum(counted[::2]), sum(counted[1::2])] for size, counted in sizes.items()}
    lines = (("before", before), ("after", after))
    return [{"kind": "server", **tag, "when": when, "counters": values} for when, values in lines]


def triton(requests: int, batch: int, compute_ns: int, queue_ns: int = 50_000) -> Record:
    """Counters of a Triton server over some requests, all successful and each executed by itself."""
    counts = {"requests": requests, "successes": requests, "images": requests * batch, "executions": requests}
    parts = {"queue_ns": queue_ns, "input_ns": 30_000, "compute_ns": compute_ns, "output_ns": 20_000}
    return counts | {name: requests * ns for name, ns in parts.items()}
