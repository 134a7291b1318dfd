"""A real master in a process of its own: Locust's runner, and our workers, conductor, collector and ledger.

python -m benchmarks.scaling.head PORT WORKERS SECONDS FOLDER
"""

from __future__ import annotations

from locust import events
from locust.argument_parser import get_parser
from locust.env import Environment
from locust.runners import MasterRunner

import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, cast

import gevent

from reports.histogram import buckets, codec
from reports.ledger.ledger import FILE_NAME, VERSION, LedgerWriter
from swarm.clock import utc_now
from swarm.distributed.collector import Collector
from swarm.distributed.shipper import WorkerHealth
from swarm.distributed.workers import Answers, Workers
from swarm.locust_patches.patches import tune_locust
from swarm.output.run_fold import RunFold
from swarm.plan.cell import Cell, PlannedRun
from swarm.plan.schedule import RepeatingSchedule
from swarm.study.conductor import Conductor
from swarm.study.dependencies import Dependencies, Users
from swarm.study.run_phases import Terms
from users import InferenceUser
from users.endpoint import Endpoint

ENDPOINT = Endpoint("pytorch-http", "pytorch", "http", "jpeg", "127.0.0.1:9")
READY_S, WARM_UP_S, ASKS, PATIENCE_S = 120.0, 3.0, 30, 60.0
QUANTILES = (50.0, 99.0, 100.0)


@dataclass
class Span:
    """What a stretch of time cost the master."""

    cores: float = 0.0
    lag_p99_ms: float | None = None
    lag_max_ms: float | None = None
    ledger_bytes_per_s: float = 0.0


@dataclass
class Seen:
    """All that was seen, as `head` prints it."""

    ready_s: float = 0.0
    ready_cpu_s: float = 0.0
    link: Span = field(default_factory=Span)
    warm_up: Span = field(default_factory=Span)
    measure: Span = field(default_factory=Span)
    asks_ms: list[float] = field(default_factory=list)
    spawns_ms: list[float] = field(default_factory=list)
    orders_ms: dict[str, list[float]] = field(default_factory=dict)
    to_ledger_ms: list[float] = field(default_factory=list)
    """Median, 99th percentile and maximum, from a worker's sending to the ledger."""
    windows: int = 0
    lost: int = 0
    caveats: list[str] = field(default_factory=list)
    least_heartbeats: int = 3
    """Of the three that a worker may miss, how many it had left in the worst case."""


def ms(ns: float | None) -> float | None:
    """Milliseconds."""
    return None if ns is None else ns / 1e6


def quantiles(values: list[float]) -> list[float]:
    """Median, 99th percentile, maximum; nothing of nothing.

    >>> quantiles([3.0, 1.0, 2.0])
    [2.0, 3.0, 3.0]
    """
    ordered = sorted(values)
    return [ordered[min(len(ordered) - 1, int(len(ordered) * q / 100))] for q in QUANTILES] if ordered else []


class SimulatedUser(InferenceUser):
    """Never made: the workers are simulated."""


class Silent:
    """In the place of sampler and first calls: no server is there."""

    def __getattr__(self, _: str) -> Callable[..., tuple[()]]:
        return lambda *args: ()


class Head:
    """One master."""

    def __init__(self, port: int, workers: int, seconds: float, folder: Path) -> None:
        tune_locust()
        self.seen, self._workers = Seen(), workers
        environment = Environment(user_classes=[SimulatedUser], events=events)
        environment.parsed_options = get_parser().parse_args(["--headless", "--master"])
        self.runner: MasterRunner = environment.create_master_runner("127.0.0.1", port)
        self.workers = Workers(self.runner, self._say)
        self.collector = Collector(self.runner, self.workers.name)
        self.users = Users(environment, self.runner)
        self._cell = Cell(ENDPOINT, 1, workers, 1, seconds)
        self._path = folder / FILE_NAME
        self._to_ledger_ns: list[int] = []
        self._mark = (0.0, 0.0, 0)
        self._health = WorkerHealth()
        self.runner.greenlet.spawn(self._health.watch)
        self.runner.greenlet.spawn(self._watch_heartbeats)
        self.fold = RunFold()
        self.collector.listeners += [self._on_record, self.fold.on_record]
        self.ledger, header = LedgerWriter(self._path), self._header()
        self.ledger.write(header)
        self.fold.follow(header)
        self.collector.begin_study(self.ledger)

    def _header(self) -> dict[str, Any]:
        header = {"kind": "header", "version": VERSION, "study": "scale", "title": "Simulated workers"}
        return header | {
            "size": "",
            "started_utc": utc_now(),
            "plan": [PlannedRun(self._cell, 1).to_record()],
        }

    def _say(self, text: str) -> None:
        self.seen.caveats.append(text)

    def _watch_heartbeats(self) -> None:
        while True:
            gevent.sleep(0.5)
            left = min((node.heartbeat for node in self.runner.clients.all), default=3)
            self.seen.least_heartbeats = min(self.seen.least_heartbeats, left)

    def _on_record(self, record: dict[str, Any]) -> None:
        kind = record["kind"]
        if kind == "health":
            self._to_ledger_ns.append(time.perf_counter_ns() - record["sent_ns"])
        elif kind == "window":
            self.seen.windows += 1
        elif kind == "caveat" and record["code"] == "worker-lost":
            self.seen.lost += 1
        elif kind == "phase":
            if record["phase"] == "measure":
                self.seen.warm_up = self._span()
                self._to_ledger_ns.clear()
            elif record["phase"] == "drain":
                self.seen.measure = self._span()
            else:
                self._span()

    def _span(self) -> Span:
        """Since the last look."""
        now, size = (time.monotonic(), time.process_time()), self._path.stat().st_size
        elapsed, cores = now[0] - self._mark[0], now[1] - self._mark[1]
        lag = codec.merged([self._health.take()["lag"]])
        p99, most = buckets.percentiles_ns(lag, [99.0, 100.0])
        span = Span(cores / elapsed, ms(p99), ms(most), (size - self._mark[2]) / elapsed)
        self._mark = (*now, size)
        return span

    def go(self, idle_s: float) -> None:
        """Wait for the workers, look at the bare link, ask and spawn, then walk one run."""
        began = time.monotonic()
        while len(self.workers.taking_part()) < self._workers or self.workers.strangers:
            if time.monotonic() > began + READY_S:
                raise SystemExit(f"{len(self.workers.taking_part())} of {self._workers} workers came")
            gevent.sleep(0.01)
        self.seen.ready_s, self.seen.ready_cpu_s = time.monotonic() - began, time.process_time()
        gevent.sleep(1)
        self._span()
        gevent.sleep(idle_s)
        self.seen.link = self._span()
        self.seen.asks_ms = [timed(lambda: self._asked("share")) for _ in range(ASKS)]
        self._walk()
        self.seen.to_ledger_ms = quantiles([ns / 1e6 for ns in self._to_ledger_ns])
        self.ledger.write({"kind": "footer", "status": "complete", "reason": ""})

    def _asked(self, op: str) -> Answers:
        answers = self.workers.ask(op, {}, PATIENCE_S)
        self.seen.lost += len(answers.lost)
        return answers

    def _walk(self) -> None:
        ask = self.workers.ask

        def timed_ask(op: str, data: Any, patience_s: float) -> Answers:
            began = time.monotonic()
            answers = ask(op, data, patience_s)
            self.seen.orders_ms.setdefault(op, []).append((time.monotonic() - began) * 1e3)
            return answers

        self.workers.ask = timed_ask  # type: ignore[method-assign]
        self.seen.spawns_ms.append(timed(lambda: self.users.spawn(0)))
        once = RepeatingSchedule([self._cell], 1, 1, 0, lambda repeat, left: False)
        Conductor(self._dependencies(), once, Terms(10, WARM_UP_S, 0)).walk()

    def _spawn(self, *counts: int) -> None:
        self.seen.spawns_ms.append(timed(lambda: self.users.spawn(*counts)))

    def _dependencies(self) -> Dependencies:
        nothing = cast(Any, Silent())
        return Dependencies(
            workers=self.workers,
            collector=self.collector,
            fold=self.fold,
            sampler=nothing,
            spawn=self._spawn,
            probe=lambda _: {"error": "no server is there"},
            serving=lambda _: {},
            traced=lambda _: None,
            first_calls=nothing,
            server_fault=lambda _: "",
            addresses=lambda _: {},
            stopped=lambda: "",
            say=self._say,
            clock=time.monotonic,
            sleep=gevent.sleep,
        )


def timed(work: Callable[[], object]) -> float:
    """Milliseconds that some work took."""
    began = time.monotonic()
    work()
    return (time.monotonic() - began) * 1e3


def main(argv: list[str]) -> int:
    """One study of one cell; prints what was seen."""
    head = Head(int(argv[0]), int(argv[1]), float(argv[2]), Path(argv[3]))
    head.go(idle_s=min(5.0, float(argv[2])))
    head.runner.send_message("quit")
    gevent.sleep(0.5)
    print(json.dumps(asdict(head.seen)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
