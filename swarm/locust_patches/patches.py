"""What we change in Locust: its statistics, the master's socket, how long a worker waits for a master."""

from __future__ import annotations

from locust import env, runners, stats
from locust.rpc import zmqrpc
from locust.runners import WorkerRunner
from locust.stats import StatsCSV, StatsEntry

import functools
import os
import sys
from collections.abc import Callable

from swarm.distributed.master_socket import MasterSocket
from swarm.locust_patches.batched_stats import BatchedStats

LOADED_BY = os.getpid()
"""The process that loaded the locustfile, from which Locust forks the workers of `--processes`."""
MASTER_PATIENCE_S = 15
"""A worker whose master is silent for so long goes home; Locust's minute would be load for nobody."""


def tune_locust() -> None:
    """Before Locust's Environment is made: it looks these up at each use."""
    env.RequestStats = BatchedStats  # type: ignore[attr-defined]
    stats.bucket_response_time = three_digits  # type: ignore[assignment]
    StatsCSV._percentile_fields = percentile_fields  # type: ignore[method-assign,assignment]
    runners.MASTER_HEARTBEAT_TIMEOUT = MASTER_PATIENCE_S
    zmqrpc.Server = MasterSocket  # type: ignore[misc]
    if not hasattr(WorkerRunner.connect_to_master, "__wrapped__"):
        WorkerRunner.connect_to_master = telling(WorkerRunner.connect_to_master)  # type: ignore[method-assign]


def is_orphan(own: int, parent: int) -> bool:
    """Whether a process was forked from the one that loaded the locustfile, and that one is gone."""
    return own != LOADED_BY and parent != LOADED_BY


def telling(connect: Callable[[WorkerRunner], None]) -> Callable[[WorkerRunner], None]:
    """Locust's way to the master, which calls itself; after a try in vain it says what it waits for.

    A worker of `--processes` whose master has gone meanwhile waits for nobody, and ends.
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
