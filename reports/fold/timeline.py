"""The seconds of every run: what clients, server, GPUs and the master's host did in each of them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from reports.fold.health import Shown
from reports.fold.records import epoch_s, every_second, iso
from reports.fold.run_records import RunRecords, Second
from reports.fold.server import ServerSide, between
from reports.fold.windows import MILLI, Results
from reports.histogram.buckets import Buckets, percentiles_ns, together
from reports.histogram.percentiles import least_results, told_percentiles_ns
from reports.ledger.ledger import Record
from reports.machines.gpus import ServersGpus
from reports.machines.gpus import together as gpus_together

PHASES = ("warm-up", "measure", "drain")
PERCENTS = (50.0, 95.0, 99.0)


@dataclass(frozen=True, kw_only=True)
class RunSecond:
    """Which second of which run: `t_s` counts from the study's start, `phase` is that at the second's end.

    Names of it and of what follows are those of timeline.csv, with `_ns` for its `_ms`. None where nothing is
    known. Where seconds were merged it is `width_s` of them, and `t_s` the first: rates are still per second,
    `in_flight`, `users` and `pending_requests` what stood at the end, GPUs and CPUs means.
    """

    t_s: int
    utc: str
    cell: str
    repeat: int
    phase: str
    endpoint: str
    width_s: int = 1


@dataclass(frozen=True, kw_only=True)
class ClientSecond(RunSecond):
    """What the workers did in it, all together."""

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
    goodput_per_s: float | None = None


@dataclass(frozen=True, kw_only=True)
class SampledSecond(RunSecond):
    """What server, GPUs and the master's host did in it."""

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


@dataclass(frozen=True, kw_only=True)
class TimelineSecond(ClientSecond, SampledSecond):
    """All of one second: a row of timeline.csv, and for charts the percentiles of it with its neighbours."""

    drawn_p50_ns: float | None = None
    drawn_p95_ns: float | None = None
    drawn_p99_ns: float | None = None


def timeline(run: RunRecords, began: int) -> Iterator[TimelineSecond]:
    """A run's seconds, from the first to the last with a record; `began` is the study's first second."""
    samples, width_s = run.samples.spans, run.bins.width_s
    # A merged sample has the means of the server's GPUs, without their marks.
    of_server = run.samples.of_server if width_s == 1 else ServersGpus()
    seconds = [(at, run.seconds.get(at, Second())) for at in every_second((*run.seconds, *samples), width_s)]
    phases = run.of_kind("phase")
    rows = [
        second_of(run.planned, at, phases, here, samples, width_s, began, of_server) for at, here in seconds
    ]
    ended = [
        (row.phase, together(one.histogram("latency") for one in here.results.values()))
        for row, (_, here) in zip(rows, seconds, strict=True)
    ]
    drawn = zip(*(grouped_percentiles(ended, percent) for percent in PERCENTS), strict=True)
    has_slo = any(row.goodput_per_s is not None for row in rows)
    for row, (p50, p95, p99) in zip(rows, drawn, strict=True):
        good = 0 if has_slo and row.requests_per_s == row.failures_per_s == 0 else row.goodput_per_s
        yield replace(row, drawn_p50_ns=p50, drawn_p95_ns=p95, drawn_p99_ns=p99, goodput_per_s=good)


def grouped_percentiles(ended: Sequence[tuple[str, Buckets]], percent: float) -> list[float | None]:
    """A percentile for each of some seconds, given by their phase and what ended in them.

    As many neighbours of one phase are taken together as have the results that it takes, and share the
    figure. None where nothing ended, and for the last of a phase where they are too few.
    """
    found: list[float | None] = [None] * len(ended)
    held: list[int] = []
    results = 0
    for place, (phase, values) in enumerate(ended):
        if held and ended[held[-1]][0] != phase:
            held, results = [], 0
        held += [place] if values.total else []
        results += values.total
        if results >= least_results(percent):
            (value_ns,) = percentiles_ns(together(ended[one][1] for one in held), [percent])
            for one in held:
                found[one] = value_ns
            held, results = [], 0
    return found


def second_of(
    planned: Record,
    at: int,
    phases: Iterable[Record],
    here: Second,
    samples: Mapping[int, Sequence[Record]],
    width_s: int = 1,
    began: int = 0,
    of_server: ServersGpus | None = None,
) -> TimelineSecond:
    """What a planned run did in the second `at`, in Unix time; its `t_s` counts from `began`.

    `phases` are the run's so far, `samples` by second those of at least this and the one before. `of_server`
    knows which GPUs are the server's; without it, this second's sample alone tells.
    """
    before, now = ([{}, *samples.get(second, ())][-1] for second in (at - width_s, at))
    begins = [(epoch_s(line["utc"]), line["phase"]) for line in phases]
    seen = here.phases.union(sample["phase"] for sample in samples.get(at, ()))
    return TimelineSecond(
        t_s=at - began,
        utc=iso(at),
        cell=planned["cell"],
        repeat=planned["repeat"],
        endpoint=planned["endpoint"],
        width_s=width_s,
        phase=_phase(begins, at + width_s, seen),
        **_requests(here, width_s),
        **_generator(here.shown),
        **_sampled(before, now, width_s, of_server or ServersGpus()),
    )


def _phase(begins: Sequence[tuple[float, str]], end: int, here: set[str]) -> str:
    """The last phase begun before this end; without any phase records, the last of its own records."""
    if begins:
        begun = [phase for began_s, phase in begins if began_s < end]
        return begun[-1] if begun else ""
    return max(here.intersection(PHASES), key=PHASES.index, default="")


def _requests(here: Second, width_s: int) -> dict[str, Any]:
    """What ended in the second: nothing where a worker lived and has no window, else that is unknown.

    Its images are those that were worked on in it: a request's are spread over the seconds it was under way.
    """
    if not here.results and not here.shown.told:
        return {}
    ended = here.results.values()
    p50, p95, p99 = percentiles_of(ended, "latency")
    return {
        "requests_per_s": _per_s(sum(one.ok for one in ended), width_s),
        "images_per_s": _per_s(_images(sum(one.spread_milli_images for one in ended)), width_s),
        "failures_per_s": _per_s(sum(one.failures for one in ended), width_s),
        "latency_p50_ns": p50,
        "latency_p95_ns": p95,
        "latency_p99_ns": p99,
        "goodput_per_s": _good_per_s(ended, width_s),
    }


def _good_per_s(ended: Iterable[Results], width_s: int) -> float | None:
    """None without --slo, and where nothing came back, since then nothing says that there is one."""
    good = [one.good for one in ended if one.finished]
    return None if None in good or not good else _per_s(sum(filter(None, good)), width_s)


def percentiles_of(ended: Iterable[Results], name: str) -> list[float | None]:
    """PERCENTS of one of the histograms of some results, in ns; None where those are too few for one."""
    return told_percentiles_ns(together(one.histogram(name) for one in ended), PERCENTS)


def _generator(shown: Shown) -> dict[str, Any]:
    return {name: value for name, value in vars(shown).items() if name != "told"}


def _sampled(before: Record, now: Record, width_s: int, of_server: ServersGpus) -> dict[str, Any]:
    """A second's sample; of what is counted from a start on, its growth since the second before."""
    gpus, host = gpus_together(of_server.of(now)), now.get("host") or {}
    old, new = before.get("server"), now.get("server")
    same = before.get("identity") == now.get("identity")
    served = between(old, new) if old and new and same else ServerSide()
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


def _grown(before: Record, host: Mapping[str, int], name: str, width_s: int) -> float | None:
    old, new = (before.get("host") or {}).get(name), host.get(name)
    return _per_s(new - old, width_s) if old is not None and new is not None and new >= old else None


def _images(milli: int) -> float:
    """A whole number where they are whole."""
    return milli / MILLI if milli % MILLI else milli // MILLI


def _per_s(count: float, width_s: int) -> float:
    """A whole number where the second is one."""
    return count if width_s == 1 else count / width_s
