"""What a study of the product cost: its ledger, beside looks at its processes while it ran."""

from __future__ import annotations

import json
import threading
import time
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from reports.fold.records import epoch_s
from reports.histogram import buckets, codec
from reports.ledger.ledger import FILE_NAME

LOOK_S = 0.25
Tag = tuple[str, int]


@dataclass(frozen=True)
class Look:
    """The master and its workers at one moment of the wall clock; processor time in seconds."""

    at_s: float
    master_cpu_s: float
    master_bytes: int
    worker_bytes: int
    threads: int


@dataclass
class Grown:
    """One run: figures of its measure phase, all workers together, and what was seen while it was on."""

    requests: int = 0
    failures: int = 0
    dropped: int = 0
    abandoned: int = 0
    unsent: int = 0
    """Due under open-loop load, and never sent: those that were dropped, or lost."""
    seconds: float = 0.0
    cpu_s: float = 0.0
    waited_s: float = 0.0
    """The loops' threads were ready to run, and other processes had the processor."""
    span_s: float = 0.0
    """Of all workers together."""
    lags: list[str] = field(default_factory=list)
    delays: list[str] = field(default_factory=list)
    began_s: float = 0.0
    warm_up_s: float = 0.0
    measure_s: float = 0.0
    drain_s: float = 0.0
    ended_s: float = 0.0
    ledger_bytes: int = 0
    master_cores: float | None = None
    master_bytes: int | None = None
    worker_bytes: int | None = None
    threads: int | None = None

    @property
    def per_s(self) -> float:
        """Requests a second; 0 where the measure phase did not come to its end."""
        return self.requests / self.seconds if self.seconds > 0 else 0.0

    @property
    def cpu_us(self) -> float | None:
        """Processor time of all workers a request; None without any request."""
        return self.cpu_s / self.requests * 1e6 if self.requests else None

    @property
    def waited_pct(self) -> float | None:
        """Share of the time in which the loops waited for a processor: their lag is then not their own."""
        return 100 * self.waited_s / self.span_s if self.span_s else None

    @property
    def lag_p99_ms(self) -> float | None:
        """Of the workers' event loops."""
        return p99_ms(self.lags)

    @property
    def send_delay_p99_ms(self) -> float | None:
        """From a request's intended start to its start."""
        return p99_ms(self.delays)


def p99_ms(encoded: list[str]) -> float | None:
    """Of histograms; None where they are empty."""
    (value,) = buckets.percentiles_ns(codec.merged(encoded), [99.0])
    return None if value is None else value / 1e6


class Watcher:
    """Looks at a command and its children until `end`, in a thread of its own."""

    def __init__(self, pid: int) -> None:
        self._process = psutil.Process(pid)
        self._over = threading.Event()
        self.looks: list[Look] = []
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._over.wait(LOOK_S):
            try:
                workers = self._process.children()
                times, held = self._process.cpu_times(), [worker.memory_info().rss for worker in workers]
                threads = max((worker.num_threads() for worker in workers), default=0)
                cpu_s, own = times.user + times.system, self._process.memory_info().rss
            except psutil.Error:
                continue  # one has just ended
            self.looks.append(Look(time.time(), cpu_s, own, max(held, default=0), threads))

    def end(self) -> list[Look]:
        """All looks."""
        self._over.set()
        self._thread.join()
        return self.looks


def grown(folder: Path, looks: list[Look]) -> dict[Tag, Grown]:
    """Every run of a study by cell and repeat, in the order that they were run."""
    found: dict[Tag, Grown] = defaultdict(Grown)
    for line in (folder / FILE_NAME).read_text().splitlines():
        record = json.loads(line)
        if "cell" in record and "repeat" in record:
            run = found[record["cell"], record["repeat"]]
            run.ledger_bytes += len(line) + 1
            take(run, record)
    for run in found.values():
        look_at(run, [look for look in looks if run.measure_s <= look.at_s <= run.drain_s])
    return dict(found)


def take(run: Grown, record: dict[str, Any]) -> None:
    """Add one record of a ledger to its run."""
    kind, phase = record["kind"], record.get("phase")
    if kind == "run":
        setattr(run, "began_s" if record["event"] == "start" else "ended_s", epoch_s(record["utc"]))
    elif kind == "phase" and phase in ("warm-up", "measure", "drain"):
        setattr(run, f"{phase.replace('-', '_')}_s", epoch_s(record["utc"]))
    elif phase != "measure":
        return
    elif kind == "window":
        failed = sum(record["failures"].values())
        run.requests, run.failures = run.requests + record["ok"] + failed, run.failures + failed
        if "send_delay" in record["histograms"]:
            run.delays.append(record["histograms"]["send_delay"])
    elif kind == "health":
        run.cpu_s += record["cpu_pct"] / 100 * record["span_ns"] / 1e9
        run.span_s += record["span_ns"] / 1e9
        run.waited_s += record.get("cpu_wait_ns", 0) / 1e9
        run.lags.append(record["lag"])
    elif kind == "drained":
        run.dropped += record["dropped"] or 0
        run.abandoned += record["abandoned"]
        run.unsent += record["due"] - record["sent"] if record["due"] is not None else 0


def look_at(run: Grown, looks: list[Look]) -> None:
    """What was seen of the processes; nothing where nobody looked in time."""
    run.seconds = run.drain_s - run.measure_s
    if len(looks) > 1:
        first, last = looks[0], looks[-1]
        run.master_cores = (last.master_cpu_s - first.master_cpu_s) / (last.at_s - first.at_s)
        run.master_bytes = max(look.master_bytes for look in looks)
        run.worker_bytes = max(look.worker_bytes for look in looks)
        run.threads = max(look.threads for look in looks)
