"""The seconds of every run: what clients, server, GPUs and the master's host did in each of them."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reports.fold.health import busiest_pct, standing, worst_lag_ns
from reports.fold.records import epoch_s, every_second, iso
from reports.fold.run_records import RunRecords
from reports.fold.samples import gpus_at
from reports.fold.server import ServerSide, between
from reports.fold.windows import recorded
from reports.histogram.buckets import percentiles_ns
from reports.ledger.ledger import Record

PHASES = ("warm-up", "measure", "drain")
PERCENTS = (50.0, 95.0, 99.0)


@dataclass(frozen=True, kw_only=True)
class TimelineSecond:
    """One second of one run, all workers together; names are those of timeline.csv, with `_ns` for its `_ms`.

    `t_s` counts from the study's start, `phase` is that at the second's end; None where nothing is known.
    Where seconds were merged it is `width_s` of them, and `t_s` the first: rates are still per second,
    `in_flight`, `users` and `pending_requests` what stood at the end, GPUs and CPUs means.
    """

    t_s: int
    utc: str
    cell: str
    repeat: int
    phase: str
    endpoint: str
    width_s: int = 1
    requests_per_s: float | None = None
    images_per_s: float | None = None
    failures_per_s: float | None = None
    latency_p50_ns: float | None = None
    latency_p95_ns: float | None = None
    latency_p99_ns: float | None = None
    in_flight: int | None = None
    users: int | None = None
    worker_cpu_pct: float | None = None
    loop_lag_ns: float | None = None
    server_queue_ns: float | None = None
    server_compute_ns: float | None = None
    executed_batch: float | None = None
    pending_requests: int | None = None
    gpu_util_pct: float | None = None
    gpu_memory_bytes: float | None = None
    gpu_power_w: float | None = None
    gpu_sm_clock_mhz: float | None = None
    host_cpu_pct: float | None = None
    tx_bytes_per_s: float | None = None
    rx_bytes_per_s: float | None = None


def timeline(runs: Iterable[RunRecords], began: int, width_s: int = 1) -> Iterator[TimelineSecond]:
    """Each run's seconds, from the first to the last with a record; `began` is the study's first second.

    Of a `width_s` above 1 the records must be those of spans so wide, as reports.fold.long_run makes them.
    """
    for run in runs:
        windows, health, samples = (_by_second(run.of_kind(kind)) for kind in ("window", "health", "sample"))
        begins = [(epoch_s(line["utc"]), line["phase"]) for line in run.of_kind("phase")]
        for second in every_second((*windows, *health, *samples), width_s):
            here = (*windows[second], *health[second], *samples[second])
            before, now = ([{}, *samples[at]][-1] for at in (second - width_s, second))
            yield TimelineSecond(
                t_s=second - began,
                utc=iso(second),
                cell=run.planned["cell"],
                repeat=run.planned["repeat"],
                endpoint=run.planned["endpoint"],
                width_s=width_s,
                phase=_phase(begins, second + width_s, here),
                **_requests(windows[second], bool(health[second]), width_s),
                **_generator(health[second]),
                **_sampled(before, now, width_s),
            )


def _by_second(records: Iterable[Record]) -> defaultdict[int, list[Record]]:
    seconds: defaultdict[int, list[Record]] = defaultdict(list)
    for record in records:
        seconds[record["second"]].append(record)
    return seconds


def _phase(begins: Sequence[tuple[float, str]], end: int, here: Iterable[Record]) -> str:
    """The last phase begun before this end; without any phase records, the last of its own records."""
    if begins:
        begun = [phase for began_s, phase in begins if began_s < end]
        return begun[-1] if begun else ""
    seen = (record["phase"] for record in here if record["phase"] in PHASES)
    return max(seen, key=PHASES.index, default="")


def _requests(windows: Sequence[Record], alive: bool, width_s: int) -> dict[str, Any]:
    """What ended in the second: nothing where a worker lived and has no window, else that is unknown."""
    if not windows and not alive:
        return {}
    p50, p95, p99 = percentiles_ns(recorded(windows, "latency"), PERCENTS)
    return {
        "requests_per_s": _per_s(sum(window["ok"] for window in windows), width_s),
        "images_per_s": _per_s(sum(window["images"] for window in windows), width_s),
        "failures_per_s": _per_s(sum(sum(window["failures"].values()) for window in windows), width_s),
        "latency_p50_ns": p50,
        "latency_p95_ns": p95,
        "latency_p99_ns": p99,
    }


def _generator(health: Sequence[Record]) -> dict[str, Any]:
    return {
        "in_flight": standing(health, "in_flight"),
        "users": standing(health, "users"),
        "worker_cpu_pct": busiest_pct(health),
        "loop_lag_ns": worst_lag_ns(health),
    }


def _sampled(before: Record, now: Record, width_s: int) -> dict[str, Any]:
    """A second's sample; of what is counted from a start on, its growth since the second before."""
    served, gpus, host = _served(before, now), gpus_at(now), now.get("host") or {}
    return {
        "server_queue_ns": served.queue_ns,
        "server_compute_ns": served.compute_ns,
        "executed_batch": served.executed_batch,
        "pending_requests": now.get("pending_requests"),
        "gpu_util_pct": gpus.util_pct,
        "gpu_memory_bytes": gpus.memory_bytes,
        "gpu_power_w": gpus.power_w,
        "gpu_sm_clock_mhz": gpus.sm_clock_mhz,
        "host_cpu_pct": host.get("cpu_pct"),
        "tx_bytes_per_s": _grown(before, host, "tx_bytes", width_s),
        "rx_bytes_per_s": _grown(before, host, "rx_bytes", width_s),
    }


def _served(before: Record, now: Record) -> ServerSide:
    old, new = before.get("server"), now.get("server")
    return between(old, new) if old and new else ServerSide()


def _grown(before: Record, host: Mapping[str, int], name: str, width_s: int) -> float | None:
    old, new = (before.get("host") or {}).get(name), host.get(name)
    return _per_s(new - old, width_s) if old is not None and new is not None and new >= old else None


def _per_s(count: int, width_s: int) -> float:
    """A whole number where the second is one."""
    return count if width_s == 1 else count / width_s
