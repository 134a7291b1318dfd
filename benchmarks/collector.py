"""What recording costs a worker, and what 200 workers cost the master; processor time, not wall time.

python -m benchmarks.collector
"""

from __future__ import annotations

import locust  # noqa: F401  (first: it patches sockets and threads)

import functools
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from math import ceil
from pathlib import Path

import numpy as np

from benchmarks.bounds import Bounds
from benchmarks.long_ledger import STARTED, planned
from benchmarks.stand_in import Link, packed, receiver, results
from reports.fold.records import epoch_s
from reports.histogram import codec
from reports.ledger.ledger import FILE_NAME, VERSION, LedgerWriter
from swarm.distributed.collector import Collector
from swarm.distributed.recorder import TRACED_PER_S, Recorder
from swarm.events import PhaseStarted, SampleEvent
from swarm.exporters.influx import Influx
from swarm.exporters.json_lines import open_json_lines
from swarm.exporters.live import Live
from swarm.exporters.otlp import OtelCollector, OtlpMetrics, resource_of
from swarm.exporters.otlp_spans import OtlpSpans
from swarm.exporters.protobuf import page
from swarm.output.dispatch import Dispatcher
from swarm.output.run_fold import RunFold
from users.result import Result
from users.transport.admin_connection import AdminConnection

RECORD_US, CORE_SHARE = 15.0, 0.5
WORKERS, CELLS, SECONDS, TIMES = 200, 5, 5, 3
PLAN = [planned("a-http", batch + 1, 16) for batch in range(CELLS)]
"""Cells that are measured at the same time."""
CELL = PLAN[0]["cell"]
FIRST = int(epoch_s(STARTED))
SCRAPED_S = 5
PER_S = 300
"""Requests a second on one worker; the fewer, the more a window's own cost weighs on each."""
NS_PER_S = 1_000_000_000
GPU = {"util_pct": 90.0, "memory_bytes": 1 << 30, "power_w": 300.0, "sm_clock_mhz": 1_400.0, "energy_j": 1.0}
SAMPLE = {
    **{"kind": "sample", "cell": CELL, "repeat": 1, "phase": "measure", "pending_requests": 2},
    "gpus": [{**GPU, "id": f"GPU-{number}"} for number in range(8)],
    "server": {"requests": 7, "queue_ns": 1, "compute_ns": 1},
}
"""What the master samples in any second."""


def main() -> int:
    """Measure, and say by the exit code whether the bounds hold."""
    bounds = Bounds("Cost of recording and of collecting, in processor time")
    made = list(results(latencies(20 * PER_S), 0, NS_PER_S // PER_S, CELL))
    bounds.at_most(f"recording and shipping, {PER_S}/s, 8 histograms", per_request_us(made), RECORD_US, "µs")
    fast = list(results(latencies(20 * 3_000), 0, NS_PER_S // 3_000, CELL))
    bounds.beside("the same at 3,000/s", per_request_us(fast), "µs")
    with receiver() as url:
        collecting(bounds, url)
    return bounds.exit_code()


def collecting(bounds: Bounds, url: str) -> None:
    """The master's part: alone, with each exporter, and with all of them."""
    messages = [messages_of(FIRST + second) for second in range(TIMES * SECONDS)]
    alone, _ = core_share(messages, (), url)
    bounds.beside(f"collector: {WORKERS} workers × {CELLS} windows a second", alone, "cores")
    for name in EXPORTERS:
        bounds.beside(f"  with events, and {name}", core_share(messages, (name,), url)[0], "cores")
    whole, lost = core_share(messages, tuple(EXPORTERS), url)
    bounds.at_most("  with events, and all of these exporters", whole, CORE_SHARE, "cores")
    bounds.exactly("  sentences on what they have missed", len(lost), 0)
    bounds.beside("  bytes a window on the link", len(messages[0][0]) / CELLS, "B")


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


def messages_of(second: int) -> list[bytes]:
    """What all workers say of a second: a window of each cell, health, and requests with a traceparent."""
    told = [{**record, "second": second} for record in windows()]
    return [packed(told, f"host_{worker}", traced=traced()) for worker in range(WORKERS)]


@functools.cache
def windows() -> list[dict[str, object]]:
    """A second of one worker's records: a window of each cell, and its health."""
    records: list[dict[str, object]] = []
    for run in PLAN:
        recorder = Recorder()
        for result in results(latencies(PER_S // CELLS), 0, NS_PER_S // PER_S, run["cell"]):
            recorder.add(result)
        records += recorder.take_all()[:1]
    lag, _ = codec.encoded_ns([300_000] * 49 + [2_000_000])
    gc = {"gc_pauses": 1, "gc_ns": 1, "gc_max_ns": 1}
    health = {"kind": "health", "cell": CELL, "repeat": 1, "phase": "measure", "second": 1}
    return [*records, {**health, "cpu_pct": 30.0, "lag": lag, **gc, "in_flight": 16, "users": 16}]


@functools.cache
def traced() -> dict[str, object]:
    """A worker's part of the requests with a traceparent, of which no more are told in a second."""
    recorder = Recorder()
    recorder.traced_per_s = ceil(TRACED_PER_S / WORKERS)
    for result in results(latencies(recorder.traced_per_s), 0, NS_PER_S // PER_S, CELL, traced=True):
        recorder.add(result)
    return recorder.take_traced()


class Clock:
    """Seconds, which pass with the messages."""

    now = 0.0

    def __call__(self) -> float:
        """Now."""
        return self.now


class Scraped(Live):
    """As Prometheus scrapes it, by protobuf."""

    def on_phase_started(self, phase: PhaseStarted, **_: object) -> None:
        """The first scrape, before anything is known."""
        super().on_phase_started(phase)
        self._scraped = self._clock()

    def on_sample(self, sample: SampleEvent, **_: object) -> None:
        """Every few seconds."""
        super().on_sample(sample)
        if self._clock() - self._scraped >= SCRAPED_S:
            self._scraped = self._clock()
            page(self.collect())


def influx(folder: Path, url: str, clock: Clock) -> Influx:
    """To a receiver that takes all."""
    connection = AdminConnection(url.removeprefix("http://"), 3.0)
    return Influx(lambda body: connection.ask("POST", "/write?db=benchmark", body), clock)


EXPORTERS: Mapping[str, Callable[[Path, str, Clock], object]] = {
    f"Prometheus, scraped every {SCRAPED_S} s": lambda folder, url, clock: Scraped(clock),
    "OTLP metrics, every 5 s": lambda folder, url, clock: OtlpMetrics(OtelCollector(url).push_metrics, clock),
    f"OTLP spans, {TRACED_PER_S:,} requests/s": lambda folder, url, clock: OtlpSpans(
        OtelCollector(url).push_spans, resource_of, clock
    ),
    "JSON lines": lambda folder, url, clock: open_json_lines(str(folder / "events.jsonl")),
    "InfluxDB": influx,
}


def core_share(
    messages: Sequence[Sequence[bytes]], names: Sequence[str], url: str
) -> tuple[float, Sequence[str]]:
    """The share of a core that a second of messages takes, ledger and all, in the best of TIMES; and what
    exporters have missed.
    """
    with tempfile.TemporaryDirectory() as folder:
        ledger = LedgerWriter(Path(folder) / FILE_NAME)
        ledger.write({"kind": "header", "version": VERSION})
        link, clock = Link(), Clock()
        collector = Collector(link, lambda worker: worker)  # type: ignore[arg-type]
        collector.begin_study(ledger)
        collector.begin_phase([(run["cell"], 1) for run in PLAN], "measure")
        dispatcher = Dispatcher(RunFold(clock), print)
        if names:
            listen(dispatcher, collector, [EXPORTERS[name](Path(folder), url, clock) for name in names])
        left = iter(enumerate(messages, FIRST))

        def work() -> None:
            for second, told in islice(left, SECONDS):
                deliver(link, told)
                collector.write({**SAMPLE, "second": second})
                clock.now += 1
                dispatcher._delivery.settle()

        share = min(cpu_s(work) for _ in range(TIMES)) / SECONDS
        lost = dispatcher.finish() if names else []
        ledger.close()
    return share, lost


def listen(dispatcher: Dispatcher, collector: Collector, exporters: Sequence[object]) -> None:
    """A study that is under way, with these exporters."""
    about = {"study": "benchmark", "endpoints": {}, "started_utc": STARTED, "plan": PLAN}
    dispatcher.begin(about, exporters)
    collector.listeners.append(dispatcher.on_record)
    collector.on_traced = dispatcher.on_traced
    names = [f"host_{worker}" for worker in range(WORKERS)]
    for run in PLAN:
        tag = {"cell": run["cell"], "repeat": 1}
        start = {"event": "start", "utc": STARTED, "workers": names, "hosts": 1}
        collector.write({"kind": "run", **tag, **start})
        collector.write({"kind": "phase", **tag, "phase": "measure", "utc": STARTED, "t_ns": 1})


def deliver(link: Link, told: Sequence[bytes]) -> None:
    """Every worker's message of a second."""
    for message in told:
        link.deliver(message)


def cpu_s(work: Callable[[], None]) -> float:
    """The processor time of some work."""
    before = time.process_time()
    work()
    return time.process_time() - before


if __name__ == "__main__":
    sys.exit(main())
