"""The generator's own health in the measure phase: was it the server that was slow, or the client?"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from reports.fold.records import Weighted, grouped
from reports.histogram.buckets import EMPTY, Buckets, compact, middles_ns, percentiles_ns
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
TAKEN = ("throttled_ns", "used_up_ns", "stolen_ns", "pressure_ns", "lock_wait_ns")
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
    three times. `lock_wait_ns` is the mean wait for the interpreter lock. `in_flight` is the mean over
    seconds of all workers together.

    `throttled_pct` is the share of time in which the cgroup of the most throttled worker was stopped,
    `used_up_pct` that of the periods in which its quota ran out, and `cpu_quota` the cores that it allows.
    `stolen_pct` is the share that a hypervisor took of the time for
    which the processors of a worker's host were wanted; in `pressure_pct` some process there waited for one.
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
    lag_awaited: float | None = None
    """How long that worker's loop waited for a core, in parts of all its lag."""
    gc_max_ns: int | None = None
    in_flight: float | None = None
    lock_wait_ns: float | None = None
    cpu_quota: float | None = None
    throttled_pct: float | None = None
    used_up_pct: float | None = None
    stolen_pct: float | None = None
    pressure_pct: float | None = None


@dataclass(frozen=True)
class ClientCpu:
    """The generator's processor time for a request in nanoseconds, None where unknown; why to doubt it."""

    ns: float | None = None
    doubts: tuple[str, ...] = ()


@dataclass(slots=True)
class HealthSums:
    """Seconds of one worker, added up; `users` and `in_flight` are what stood at the last one's end.

    A second counts by the time that it covers: less than one where a phase ended. What is None in it takes no
    part.
    """

    cpu: Weighted = field(default_factory=Weighted)
    """In percent of a core, times the nanoseconds."""
    ran: Weighted = field(default_factory=Weighted)
    waited: Weighted = field(default_factory=Weighted)
    awake: Weighted = field(default_factory=Weighted)
    taken: dict[str, Weighted] = field(default_factory=lambda: {name: Weighted() for name in TAKEN})
    """By the record's names. What was stolen is of what was wanted, waits for the lock are by looks."""
    quota: float | None = None
    """The smallest."""
    lag: Buckets = EMPTY
    looked_ns: int = 0
    users: int | None = None
    in_flight: int | None = None

    def add(self, records: Sequence[Record]) -> None:
        """Takes in seconds, whose histograms are decoded."""
        for record in records:
            self._add(record, span_of(record))
        lags = [record["histograms"]["lag"] for record in records if "lag" in record["histograms"]]
        self.lag = compact([self.lag, *lags]) if lags else self.lag

    def _add(self, record: Record, span_ns: int) -> None:
        ran_ns, waited_ns = record.get("loop_ran_ns"), record.get("cpu_wait_ns")
        if record.get("cpu_pct") is not None:
            self.cpu.add(float(record["cpu_pct"]) * span_ns, span_ns)
        if ran_ns is not None:
            self.ran.add(ran_ns, span_ns)
        if waited_ns is not None:
            self.waited.add(waited_ns, span_ns)
        if ran_ns is not None and waited_ns is not None:
            self.awake.add(ran_ns + waited_ns, span_ns)
        for name in TAKEN:
            if (weight := _weight_of(record, name, span_ns)) and record.get(name) is not None:
                self.taken[name].add(record[name], weight)
        if record.get("cpu_quota") is not None:
            self.quota = min(self.quota or record["cpu_quota"], record["cpu_quota"])
        if "lag" in record["histograms"]:
            self.looked_ns += span_ns
        self.users = self.users if record.get("users") is None else int(record["users"])
        self.in_flight = self.in_flight if record.get("in_flight") is None else int(record["in_flight"])

    def lag_ns(self, percent: float, least: int = 1) -> float | None:
        """A percentile of the loop's lag, from so many looks on."""
        return percentiles_ns(self.lag, [percent])[0] if self.lag.total >= least else None

    @property
    def lag_awaited(self) -> float | None:
        """Waits for a core over the sum of the lag; a wait that no look met is in the first only."""
        lag_ns = float(middles_ns(self.lag.indices) @ self.lag.counts)
        return self.waited.amount / lag_ns if self.waited.weight and lag_ns else None

    @property
    def delay_ns(self) -> float | None:
        """The mean wait for the loop, of events that come at any moment; None where it hardly ever stopped.

        One that comes while the loop is late by `lag` waits half of it on average, and there are `lag` such
        moments: together the sum of lag² / 2 over the time (the mean residual life of renewal theory).
        """
        late_ns = middles_ns(self.lag.indices)
        if self.lag.counts[late_ns >= STOP_NS].sum() < LEAST_STOPS:
            return None
        return float(late_ns**2 @ self.lag.counts) / 2 / self.looked_ns


def _weight_of(record: Record, name: str, span_ns: int) -> int:
    """What a figure of `TAKEN` is a part of."""
    if name == "lock_wait_ns":
        return int(record.get("lock_looks") or 0)
    if name == "stolen_ns":
        return stealable_ns(record.get("wanted_ns") or 0, span_ns)
    return span_ns


def stealable_ns(wanted_ns: int, span_ns: int) -> int:
    """For how long processors were wanted, at least half a core's time.

    Of an idle host, one tick of the kernel's clock that was stolen would be a large share.
    """
    return max(wanted_ns, span_ns // 2)


def span_of(record: Record) -> int:
    """How long the time is that a worker's record covers, in nanoseconds."""
    return record.get("span_ns") or SECOND_NS


def share_pct(taken: Weighted) -> float | None:
    """The share of the time, in percent, that so many nanoseconds took."""
    return 100 * taken.amount / taken.weight if taken.weight else None


@dataclass(frozen=True)
class Shown:
    """What a timeline shows of workers in a second; None where none of them stated it.

    `in_flight` and `users` are all workers' last words, `worker_cpu_pct` is the busiest one's in percent of a
    core, `loop_lag_ns` the largest p99 of any one's event-loop lag. `told`: whether any said anything.
    """

    told: bool = False
    in_flight: int | None = None
    users: int | None = None
    worker_cpu_pct: float | None = None
    loop_lag_ns: float | None = None


@dataclass
class Health:
    """What workers said of themselves in one phase or second, added up as it comes."""

    workers: dict[str, HealthSums] = field(default_factory=dict)
    used_ns: float = 0
    """Processor time of all of them."""
    gc_max_ns: int | None = None
    cells: int = 1
    """How many cells' requests they sent at the same time."""

    def add(self, records: Sequence[Record]) -> None:
        """Takes in seconds of workers, whose histograms are decoded."""
        for worker, lines in grouped(records, "worker").items():
            self.workers.setdefault(worker, HealthSums()).add(lines)
        for record in records:
            self.cells = max(self.cells, record.get("cells") or 1)
            if record.get("cpu_pct") is not None:
                self.used_ns += float(record["cpu_pct"]) / 100 * span_of(record)
            if record.get("gc_max_ns") is not None:
                self.gc_max_ns = max(record["gc_max_ns"], self.gc_max_ns or 0)

    def found(self, in_flight: float | None = None) -> ClientHealth:
        """What it comes to; the mean of what was in flight is known elsewhere."""
        busiest, cpu_pct = self._greatest(lambda worker: worker.cpu.mean)
        busiest_loop, loop_pct = self._greatest(lambda worker: share_pct(worker.ran))
        most_delaying, delay_ns = self._greatest(lambda worker: worker.delay_ns)
        most_lagging, lag_ns = self._greatest(lambda worker: worker.lag_ns(95.0, LEAST_LOOKS))
        most_throttled, throttled_pct = self._greatest(lambda worker: share_pct(worker.taken["throttled_ns"]))
        return ClientHealth(
            worker_cpu_pct=cpu_pct,
            busiest=busiest,
            loop_cpu_pct=loop_pct,
            busiest_loop=busiest_loop,
            cpu_wait_pct=self._greatest(lambda worker: share_pct(worker.waited))[1],
            awake_pct=self._greatest(lambda worker: share_pct(worker.awake))[1],
            loop_delay_ns=delay_ns,
            most_delaying=most_delaying,
            loop_lag_p95_ns=lag_ns,
            loop_lag_p99_ns=self.worst_lag_ns,
            most_lagging=most_lagging,
            lag_awaited=self.workers[most_lagging].lag_awaited if most_lagging else None,
            gc_max_ns=self.gc_max_ns,
            in_flight=in_flight,
            lock_wait_ns=self._greatest(lambda worker: worker.taken["lock_wait_ns"].mean)[1],
            cpu_quota=self.workers[most_throttled].quota if most_throttled else None,
            throttled_pct=throttled_pct,
            used_up_pct=self._greatest(lambda worker: share_pct(worker.taken["used_up_ns"]))[1],
            stolen_pct=self._greatest(lambda worker: share_pct(worker.taken["stolen_ns"]))[1],
            pressure_pct=self._greatest(lambda worker: share_pct(worker.taken["pressure_ns"]))[1],
        )

    @property
    def shown(self) -> Shown:
        """That of a second."""
        return Shown(
            told=bool(self.workers),
            in_flight=self.in_flight,
            users=_together(worker.users for worker in self.workers.values()),
            worker_cpu_pct=self._greatest(lambda worker: worker.cpu.mean)[1],
            loop_lag_ns=self.worst_lag_ns,
        )

    @property
    def worst_lag_ns(self) -> float | None:
        """The largest p99 of any one worker's event-loop lag; None where none was sampled."""
        return self._greatest(lambda worker: worker.lag_ns(99.0))[1]

    @property
    def in_flight(self) -> int | None:
        """All workers' last words of what was under way; None where none was stated."""
        return _together(worker.in_flight for worker in self.workers.values())

    def cpu_of(self, senders: Iterable[str], finished: int) -> ClientCpu:
        """What each of the requests that came back, right or wrong, cost all workers with all their threads.

        Unknown where nothing came back, or one of those who sent did not tell: their sum would be too small;
        and where they sent requests of other cells, too.
        """
        spans_ns = {name: worker.cpu.weight for name, worker in self.workers.items() if worker.cpu.weight}
        if self.cells > 1 or not finished or not self.used_ns or not spans_ns.keys() >= set(senders):
            return ClientCpu()
        covered_ns, under_way = sum(spans_ns.values()), (self.in_flight or 0) / finished
        share = len(spans_ns) * (TICKS_NS / self.used_ns + EDGES_NS / covered_ns) + under_way
        doubted = {COARSE: share > COARSE_SHARE, MOSTLY_FIXED: 100 * self.used_ns / covered_ns < IDLE_PCT}
        return ClientCpu(self.used_ns / finished, tuple(text for text, holds in doubted.items() if holds))

    def _greatest(self, of: Callable[[HealthSums], float | None]) -> tuple[str, float | None]:
        """The worker that has most of something, by name where several have, and how much."""
        known = {
            name: value for name in sorted(self.workers) if (value := of(self.workers[name])) is not None
        }
        worker = max(known, key=lambda name: known[name], default="")
        return worker, known.get(worker)


def _together(counts: Iterable[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None
