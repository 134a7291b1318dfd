"""What recording costs a worker, and what 200 workers cost the master; processor time, not wall time.

python -m benchmarks.collector
"""

from __future__ import annotations

import locust  # noqa: F401  (first: it patches sockets and threads)

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.bounds import Bounds
from benchmarks.long_ledger import STARTED, planned
from benchmarks.stand_in import Link, packed, results
from reports.histogram import codec
from reports.ledger.ledger import FILE_NAME, VERSION, LedgerWriter
from swarm.distributed.collector import Collector
from swarm.distributed.recorder import Recorder
from swarm.exporters.live import Live
from swarm.output.dispatch import Dispatcher
from swarm.output.run_fold import RunFold
from users.result import Result

RECORD_US, CORE_SHARE = 15.0, 0.5
WORKERS, CELLS, SECONDS = 200, 5, 5
CELL = "a-http/b1/c16"
PER_S = 300
"""Requests a second on one worker; the fewer, the more a window's own cost weighs on each."""
NS_PER_S = 1_000_000_000


def main() -> int:
    """Measure, and say by the exit code whether the bounds hold."""
    bounds = Bounds("Cost of recording and of collecting, in processor time")
    made = list(results(latencies(20 * PER_S), 0, NS_PER_S // PER_S, CELL))
    bounds.at_most(f"recording and shipping, {PER_S}/s, 8 histograms", per_request_us(made), RECORD_US, "µs")
    fast = list(results(latencies(20 * 3_000), 0, NS_PER_S // 3_000, CELL))
    bounds.beside("the same at 3,000/s", per_request_us(fast), "µs")
    messages = [packed(windows(), f"host_{worker}") for worker in range(WORKERS)]
    name = f"collector: {WORKERS} workers × {CELLS} windows a second"
    bounds.at_most(name, core_share(messages, False), CORE_SHARE, "cores")
    bounds.beside(
        "  with events, to which the Prometheus exporter listens", core_share(messages, True), "cores"
    )
    bounds.beside("  bytes a window on the link", len(messages[0]) / CELLS, "B")
    return bounds.exit_code()


def latencies(count: int) -> map[int]:
    """Lognormal around 20 ms, in ns."""
    return map(int, np.random.default_rng(2).lognormal(np.log(20e6), 0.5, count))


def per_request_us(made: list[Result]) -> float:
    """From Results to packed messages, windows closed each second; the best of three."""
    return min(cpu_s(lambda: record(made)) for _ in range(3)) / len(made) * 1e6


def record(made: list[Result]) -> None:
    """What a worker does with its Results while raw ones are kept too."""
    recorder, second = Recorder(), 0
    recorder.raw_left = len(made)
    for result in made:
        recorder.add(result)
        if result.start_ns >= second * NS_PER_S:
            packed(recorder.take_closed(result.start_ns), "host_0", recorder.take_raw())
            second += 1
    packed(recorder.take_all(), "host_0", recorder.take_raw())


def windows() -> list[dict[str, object]]:
    """A second of one worker's records: a window of each cell, and its health."""
    records: list[dict[str, object]] = []
    for cell in range(CELLS):
        recorder = Recorder()
        for result in results(latencies(PER_S // CELLS), 0, NS_PER_S // PER_S, f"a-http/b{cell + 1}/c16"):
            recorder.add(result)
        records += recorder.take_all()[:1]
    lag, _ = codec.encoded_ns([300_000] * 49 + [2_000_000])
    gc = {"gc_pauses": 1, "gc_ns": 1, "gc_max_ns": 1}
    health = {"kind": "health", "cell": CELL, "repeat": 1, "phase": "measure", "second": 1}
    return [*records, {**health, "cpu_pct": 30.0, "lag": lag, **gc, "in_flight": 16, "users": 16}]


def core_share(messages: list[bytes], listening: bool) -> float:
    """The share of a core that a second of such messages takes, ledger and all; the best of three."""
    with tempfile.TemporaryDirectory() as folder:
        ledger = LedgerWriter(Path(folder) / FILE_NAME)
        ledger.write({"kind": "header", "version": VERSION})
        link = Link()
        collector = Collector(link, lambda worker: worker)  # type: ignore[arg-type]
        collector.begin_study(ledger)
        collector.begin_phase([(CELL, 1)], "measure")
        if listening:
            dispatcher = Dispatcher(RunFold(), print)
            dispatcher.begin({"plan": [planned("a-http", 1, 16)], "started_utc": STARTED}, [Live()])
            collector.listeners.append(dispatcher.on_record)
            names = [f"host_{worker}" for worker in range(WORKERS)]
            start = {"event": "start", "utc": STARTED, "workers": names, "hosts": 1}
            collector.write({"kind": "run", "cell": CELL, "repeat": 1, **start})
        share = min(cpu_s(lambda: deliver(link, messages)) for _ in range(3)) / SECONDS
        ledger.close()
    return share


def deliver(link: Link, messages: list[bytes]) -> None:
    """Some seconds of every worker's messages."""
    for _ in range(SECONDS):
        for message in messages:
            link.deliver(message)


def cpu_s(work: Callable[[], None]) -> float:
    """The processor time of some work."""
    before = time.process_time()
    work()
    return time.process_time() - before


if __name__ == "__main__":
    sys.exit(main())
