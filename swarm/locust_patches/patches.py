"""What we change in Locust: its statistics, the master's socket, a worker's wait for a master, what it logs.

Requests are counted in batches: one by one they cost a worker a tenth of a request. Those of warm-ups have
rows of their own and are not in the total. And its console is kept to what a study's reader needs.
"""

from locust import env, runners, stats
from locust.env import Environment
from locust.rpc import zmqrpc
from locust.runners import WorkerRunner
from locust.stats import RequestStats, StatsCSV, StatsEntry, StatsError

import functools
import logging
import os
import sys
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from swarm.distributed.master_socket import MasterSocket
from swarm.locust_patches.rates import Rates, correct_rates
from users.result import is_measured

LOADED_BY = os.getpid()
"""The process that loaded the locustfile, from which Locust forks the workers of `--processes`."""
MASTER_PATIENCE_S = 15
"""A worker whose master is silent for so long ends; Locust's own minute would be load for nothing."""
MOST_TALLIED = 64
"""To count so many takes a tenth of a millisecond, in which no request is sent and no answer is heard."""

Key = tuple[str, str, int]
"""Name, method, second of the wall clock."""
NOISE = (
    "Ramping to",
    "All users spawned",
    "Sending spawn jobs",
    "Shape ",
    "Resetting stats",
    "Your selected spawn rate",
)
SHAPES = "--run-time, --users or --spawn-rate have no impact on LoadShapes"
IGNORED = "The following option(s) will be ignored: "


def tune_locust() -> None:
    """Before Locust's Environment is made: it looks these up at each use."""
    env.RequestStats = BatchedStats  # type: ignore[attr-defined]
    stats.bucket_response_time = three_digits  # type: ignore[assignment]
    StatsCSV._percentile_fields = percentile_fields  # type: ignore[method-assign,assignment]
    correct_rates()
    logging.FileHandler.handleError = outlast_full_disk  # type: ignore[method-assign,assignment]
    runners.MASTER_HEARTBEAT_TIMEOUT = MASTER_PATIENCE_S
    zmqrpc.Server = MasterSocket  # type: ignore[misc]
    if not hasattr(WorkerRunner.connect_to_master, "__wrapped__"):
        WorkerRunner.connect_to_master = telling(WorkerRunner.connect_to_master)  # type: ignore[method-assign]


def outlast_full_disk(handler: logging.Handler, record: logging.LogRecord) -> None:
    """A log of which the disk takes no more lacks its rest, without a traceback for each line."""
    if not isinstance(sys.exc_info()[1], OSError):
        logging.Handler.handleError(handler, record)


def is_orphan(own: int, parent: int) -> bool:
    """Whether a process was forked from the one that loaded the locustfile, and that one is gone."""
    return own != LOADED_BY and parent != LOADED_BY


def telling(connect: Callable[[WorkerRunner], None]) -> Callable[[WorkerRunner], None]:
    """Locust's `connect_to_master`, which calls itself; after a failed try it says what it waits for.

    A worker of `--processes` whose master has gone meanwhile ends.
    """

    @functools.wraps(connect)
    def connect_to_master(runner: WorkerRunner) -> None:
        if runner.retry and is_orphan(os.getpid(), os.getppid()):
            raise SystemExit(1)
        if runner.retry == 1:
            print(
                f"inferswarm: no master answers at {runner.master_host}:{runner.master_port}: is it there,"
                " does it listen for other machines (--master-bind-host), does a firewall let this one in?"
                f" Trying for {runners.CONNECT_RETRY_COUNT * runners.CONNECT_TIMEOUT / 60:g} minutes",
                file=sys.stderr,
                flush=True,
            )
        connect(runner)

    return connect_to_master


def three_digits(response_time: float) -> float:
    """Milliseconds as Locust keeps them, to three significant digits; its own rounding is off by up to 5 %.

    >>> three_digits(1974.4), three_digits(0.41234)
    (1970.0, 0.412)
    """
    return float(f"{response_time:.3g}")


def percentile_fields(
    self: StatsCSV, stats_entry: StatsEntry, use_current: bool = False
) -> list[str] | list[float]:
    """Locust's percentiles for its CSV files, without cutting them down to whole milliseconds."""
    if not stats_entry.num_requests:
        na: list[str] = self.percentiles_na
        return na
    read = stats_entry.get_response_time_percentile
    if use_current and stats_entry.use_response_times_cache:
        read = stats_entry.get_current_response_time_percentile  # type: ignore[assignment]
    return [float(read(percent) or 0) for percent in self.percentiles_to_report]


class Tally:
    """Requests of one key that are still to be counted."""

    __slots__ = ("content_bytes", "key", "last_s", "times_ms")

    def __init__(self, key: Key | None) -> None:
        self.key = key
        self.times_ms: list[float | None] = []
        self.content_bytes = 0
        self.last_s = 0.0

    def count(self, entry: StatsEntry) -> None:
        """What StatsEntry.log does for each of them."""
        second = int(self.last_s)
        if entry.use_response_times_cache and second > int(entry.last_request_timestamp or second):
            entry._cache_response_times(second - 1)
        times_ms = [time_ms for time_ms in self.times_ms if time_ms is not None]
        entry.num_requests += len(self.times_ms)
        entry.num_none_requests += len(self.times_ms) - len(times_ms)
        entry.num_reqs_per_sec[second] += len(self.times_ms)
        entry.last_request_timestamp = self.last_s
        entry.total_content_length += self.content_bytes
        entry.total_response_time = sum(times_ms, entry.total_response_time)  # type: ignore[assignment]
        if times_ms:
            so_far = times_ms if entry.min_response_time is None else [entry.min_response_time, *times_ms]
            entry.min_response_time = min(so_far)  # type: ignore[assignment]
            entry.max_response_time = max(entry.max_response_time, *times_ms)  # type: ignore[assignment]
        for bucket, times in Counter(map(stats.bucket_response_time, times_ms)).items():
            entry.response_times[bucket] += times


def current(name: str) -> Any:
    """An attribute of BatchedStats, kept as `name`: read or set once what came before is counted."""

    def read(batched: "BatchedStats") -> Any:
        batched._count()
        return getattr(batched, name)

    def write(batched: "BatchedStats", value: Any) -> None:
        batched._count()  # it belongs to the old one
        setattr(batched, name, value)

    return property(read, write)


class BatchedStats(RequestStats):
    """As Locust's own, figure for figure: who reads `total` or `entries` finds every request in them.

    But `total` is of what was measured, without the warm-ups. They are to be read each time: an entry that
    was kept lacks what came since.
    """

    _total: StatsEntry
    _entries: dict[tuple[str, str], StatsEntry]
    total = current("_total")
    """Of all requests that were measured."""
    entries = current("_entries")
    """By name and method."""

    def __init__(self, use_response_times_cache: bool = True) -> None:
        self._tally = Tally(None)
        self.rates = Rates()
        super().__init__(use_response_times_cache)

    def log_request(self, method: str, name: str, response_time: float | None, content_length: int) -> None:
        """Keep a request until somebody asks, another name or second comes, or there are many."""
        now_s = time.time()
        tally, key = self._tally, (name, method, int(now_s))
        if key != tally.key or len(tally.times_ms) == MOST_TALLIED:
            self._count()
            tally = self._tally = Tally(key)
            self._entries[name, method]  # made now, at its first request
        tally.times_ms.append(response_time)
        tally.content_bytes += content_length
        tally.last_s = now_s

    def _count(self) -> None:
        tally, self._tally = self._tally, Tally(None)
        if tally.key is not None:
            name, method, _ = tally.key
            tally.count(self._entries[name, method])
            if is_measured(name):
                tally.count(self._total)

    def log_error(self, method: str, name: str, error: Exception | str | None) -> None:
        """One of a warm-up is listed, and not in the total."""
        if is_measured(name):
            super().log_error(method, name, error)
            return
        self.entries[name, method].log_error(error)
        key = StatsError.create_key(method, name, error)
        self.errors.setdefault(key, StatsError(method, name, error)).occurred()

    def reset_all(self) -> None:
        """All rows from zero."""
        super().reset_all()
        self.rates.clear()

    def clear_all(self) -> None:
        """No rows."""
        super().clear_all()
        self.rates.clear()


def follow_study(environment: Environment, listeners: list[Callable[[dict[str, Any]], None]]) -> None:
    """Let the statistics hear the records of studies, through those who hear each as it is written."""
    if isinstance(environment.stats, BatchedStats):
        environment.stats.rates.followed = True
        listeners.append(environment.stats.rates.on_record)


def keep_run_time_out(record: logging.LogRecord) -> bool:
    """Locust warns that a shape ignores --run-time; ours does not."""
    text = record.getMessage()
    if not text.startswith((SHAPES, IGNORED)):
        return True
    left = [name for name in text.removeprefix(IGNORED).split(", ") if name != "--run-time"]
    if text.startswith(SHAPES) or not left:
        return False
    record.msg = f"{IGNORED}{', '.join(left)}: a study decides on its users by itself"
    return True


def nothing(*_: Any, **__: Any) -> None:
    """Print no table: the study ends with a summary of its own."""


def hush_locust(environment: Environment) -> None:
    """Drop a line for every change of users, and Locust's tables, unless asked for."""
    options = environment.parsed_options
    if options is None or options.loglevel == "DEBUG":
        return
    if not options.print_stats and not options.only_summary:
        options.only_summary = True  # no table every two seconds, and none at the end
        stats.print_stats = stats.print_percentile_stats = nothing
    logging.getLogger("locust.runners").addFilter(lambda record: not str(record.msg).startswith(NOISE))
