"""The generator's own health in the measure phase: was it the server that was slow, or the client?"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from reports.fold.records import grouped
from reports.histogram.buckets import middles_ns, percentiles_ns, together
from reports.ledger.ledger import Record

SECOND_NS = 1_000_000_000
LEAST_LOOKS = 50
"""A second's worth: the p95 of fewer looks at the event loop is one hiccup."""
STOP_NS, LEAST_STOPS = 20_000_000, 3
"""A lag so long is a stop of the loop; one or two of them in a phase are hiccups, too."""
TICKS_NS = 20_000_000
"""A worker's processor time may be off by two of the kernel's ticks: one of its own, one of the system's."""
EDGES_NS = 200_000_000
"""A worker tells of nothing shorter than 0.1 s, so that much at either end may count for the phase beside."""
COARSE_SHARE = 0.2
COARSE = (
    "coarse: ticks of the kernel's clock, the phase's edges and requests under way at its end may come to "
    "more than a fifth of it"
)
IDLE_PCT = 10.0
"""Five times what an idle worker was seen to take of a core."""
MOSTLY_FIXED = (
    f"high: workers used less than {IDLE_PCT:g} % of a core, much of it the fixed work of each second"
)


@dataclass(frozen=True)
class ClientHealth:
    """The worst worker's figures; None where no worker stated them.

    `worker_cpu_pct` is the mean of the busiest worker with all its threads, in percent of one core,
    `loop_cpu_pct` that of a worker's event loop alone. `cpu_wait_pct` is the share of time in which a loop
    was ready to run and had no core, `awake_pct` that in which one loop ran or was ready to. `loop_delay_ns`
    is how long an event at a random moment waits for the loop, on average; of loops that stopped at least
    three times. `in_flight` is the mean over seconds of all workers together.
    """

    worker_cpu_pct: float | None = None
    busiest: str = ""
    loop_cpu_pct: float | None = None
    busiest_loop: str = ""
    cpu_wait_pct: float | None = None
    awake_pct: float | None = None
    loop_delay_ns: float | None = None
    most_delaying: str = ""
    loop_lag_p95_ns: float | None = None
    loop_lag_p99_ns: float | None = None
    most_lagging: str = ""
    """By p95: of the fifty looks in a second, too few lie beyond p99."""
    gc_max_ns: int | None = None
    in_flight: float | None = None


@dataclass(frozen=True)
class ClientCpu:
    """The generator's processor time for a request in nanoseconds, None where unknown; why to doubt it."""

    ns: float | None = None
    doubts: tuple[str, ...] = ()


def health(records: Sequence[Record]) -> ClientHealth:
    """The health of one phase; a worker has one record a second, and two of one in which a phase ended."""
    busiest, cpu_pct = _greatest(_cpu_of_workers(records))
    busiest_loop, loop_pct = _greatest(_share_of_workers(records, "loop_ran_ns"))
    most_delaying, delay_ns = _greatest(_delay_of_workers(records))
    most_lagging, lag_ns = _greatest(_lag_of_workers(records, 95.0, LEAST_LOOKS))
    seconds = grouped(records, "second").values()
    in_flight = [count for of in seconds if (count := standing(of, "in_flight")) is not None]
    pauses = [record["gc_max_ns"] for record in records if record.get("gc_max_ns") is not None]
    return ClientHealth(
        worker_cpu_pct=cpu_pct,
        busiest=busiest,
        loop_cpu_pct=loop_pct,
        busiest_loop=busiest_loop,
        cpu_wait_pct=_greatest(_share_of_workers(records, "cpu_wait_ns"))[1],
        awake_pct=_greatest(_share_of_workers(records, "loop_ran_ns", "cpu_wait_ns"))[1],
        loop_delay_ns=delay_ns,
        most_delaying=most_delaying,
        loop_lag_p95_ns=lag_ns,
        loop_lag_p99_ns=worst_lag_ns(records),
        most_lagging=most_lagging,
        gc_max_ns=max(pauses, default=None),
        in_flight=fmean(in_flight) if in_flight else None,
    )


def client_cpu(records: Sequence[Record], senders: Iterable[str], finished: int) -> ClientCpu:
    """What each of the requests that came back, right or wrong, cost all workers with all their threads.

    Unknown where nothing came back, or one of those who sent did not tell: their sum would be too small.
    """
    stated = [record for record in records if record.get("cpu_pct") is not None]
    used_ns = sum(float(record["cpu_pct"]) / 100 * _span_ns(record) for record in stated)
    workers, spans_ns = {record["worker"] for record in stated}, sum(map(_span_ns, stated))
    if not finished or not used_ns or not workers.issuperset(senders):
        return ClientCpu()
    under_way = (standing(records, "in_flight") or 0) / finished
    share = len(workers) * (TICKS_NS / used_ns + EDGES_NS / spans_ns) + under_way
    doubted = {COARSE: share > COARSE_SHARE, MOSTLY_FIXED: 100 * used_ns / spans_ns < IDLE_PCT}
    return ClientCpu(used_ns / finished, tuple(text for text, holds in doubted.items() if holds))


def busiest_pct(records: Sequence[Record]) -> float | None:
    """The CPU of the busiest worker in percent of one core; None where none was stated."""
    return _greatest(_cpu_of_workers(records))[1]


def worst_lag_ns(records: Sequence[Record]) -> float | None:
    """The largest p99 of any one worker's event-loop lag; None where none was sampled."""
    return _greatest(_lag_of_workers(records, 99.0))[1]


def standing(records: Sequence[Record], name: str) -> int | None:
    """Of what stood at a second's end, the sum of each worker's last word; None where none was stated."""
    last = {record["worker"]: int(record[name]) for record in records if record.get(name) is not None}
    return sum(last.values()) if last else None


def _greatest(of_workers: Mapping[str, float]) -> tuple[str, float | None]:
    if not of_workers:
        return "", None
    worker = max(sorted(of_workers), key=lambda name: of_workers[name])
    return worker, of_workers[worker]


def _cpu_of_workers(records: Sequence[Record]) -> dict[str, float]:
    """Each worker's mean; a record counts by the time it covers: less than a second where a phase ended."""
    stated = [record for record in records if record.get("cpu_pct") is not None]
    return {
        worker: sum(float(of["cpu_pct"]) * _span_ns(of) for of in lines) / sum(_span_ns(of) for of in lines)
        for worker, lines in grouped(stated, "worker").items()
    }


def _share_of_workers(records: Sequence[Record], *names: str) -> dict[str, float]:
    """Each worker's share of the time, in percent, that these kinds of nanoseconds together take."""
    stated = [record for record in records if all(record.get(name) is not None for name in names)]
    return {
        worker: 100 * sum(of[name] for of in lines for name in names) / sum(_span_ns(of) for of in lines)
        for worker, lines in grouped(stated, "worker").items()
    }


def _delay_of_workers(records: Sequence[Record]) -> dict[str, float]:
    """Each worker's mean wait for its loop, of events that come at any moment.

    One that comes while the loop is late by `lag` waits half of it on average, and there are `lag` such
    moments: together the sum of lag² / 2 over the time (the mean residual life of renewal theory).
    """
    found = {}
    for worker, lines in grouped(records, "worker").items():
        looks = [line for line in lines if "lag" in line["histograms"]]
        lags = together(line["histograms"]["lag"] for line in looks)
        late_ns = middles_ns(lags.indices)
        if lags.counts[late_ns >= STOP_NS].sum() >= LEAST_STOPS:
            found[worker] = float(late_ns**2 @ lags.counts) / 2 / sum(_span_ns(line) for line in looks)
    return found


def _span_ns(record: Record) -> int:
    return record.get("span_ns") or SECOND_NS


def _lag_of_workers(records: Sequence[Record], percent: float, least: int = 1) -> dict[str, float]:
    found = {}
    for worker, lines in grouped(records, "worker").items():
        lags = together(line["histograms"]["lag"] for line in lines if "lag" in line["histograms"])
        found[worker] = percentiles_ns(lags, [percent])[0] if lags.total >= least else None
    return {worker: lag_ns for worker, lag_ns in found.items() if lag_ns is not None}
