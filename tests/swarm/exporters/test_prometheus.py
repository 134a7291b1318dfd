"""Live figures over real HTTP, as Prometheus would parse them."""

import http.client
import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families

from reports.fold.windows import Results
from reports.histogram import codec
from swarm.errors import UsageError
from swarm.events import (
    HealthEvent,
    PhaseStarted,
    RunEnded,
    RunStarted,
    SampleEvent,
    WindowEvent,
    WorkerSecond,
)
from swarm.exporters.latency_buckets import BOUNDS_S
from swarm.exporters.live import FRESH_S, KEEP_S, Live
from swarm.exporters.prometheus import start_exporter
from tests.processes import free_port
from tests.swarm.fakes import FakeClock

CELL = "onnx-grpc/b4/c8"
OF = {"endpoint": "onnx-grpc", "cell": CELL, "phase": "measure"}


@dataclass
class Stand:
    """An exporter on a free port, and the clock of what it shows."""

    live: Live
    clock: FakeClock
    port: int
    stop: Callable[[], None]

    def page(self) -> str:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        connection.request("GET", "/metrics", headers={"Accept-Encoding": "gzip"})
        reply = connection.getresponse()
        text = reply.read().decode()
        connection.close()
        assert reply.status == 200
        return text

    def scrape(self) -> dict[str, float]:
        """Value by sample, as `name{label=value,…}`."""
        families = text_string_to_metric_families(self.page())
        return {key(s.name, s.labels): s.value for family in families for s in family.samples}


def key(name: str, labels: dict[str, Any]) -> str:
    return f"{name}{{{','.join(f'{label}={labels[label]}' for label in sorted(labels))}}}"


@pytest.fixture
def stand() -> Iterator[Stand]:
    clock, port = FakeClock(), free_port()
    live = Live(clock)
    made = Stand(live, clock, port, start_exporter("127.0.0.1", port, live).stop)
    yield made
    made.stop()


SECONDS = itertools.count(1)


def window(
    latencies_ns: list[int],
    cell: str = CELL,
    phase: str = "measure",
    second: int = 0,
    failures: Mapping[str, int] | None = None,
    late: int = 0,
    repeat: int = 1,
    good: int | None = None,
) -> WindowEvent:
    """A second of its own, if it is not given."""
    endpoint, latency = cell.partition("/")[0], codec.decoded(codec.encoded_ns(latencies_ns)[0])
    ok, kinds = len(latencies_ns), Counter(failures or {})
    found = Results(None, ok, 4 * ok, late, kinds, {"latency": latency} if ok else {}, good=good)
    return WindowEvent(
        t_s=0, utc="", cell=cell, repeat=repeat, phase=phase, endpoint=endpoint, revision=0, ok=ok,
        second=second or next(SECONDS), images=4 * ok, failures=kinds, percentiles={}, results={phase: found},
    )  # fmt: skip


def health(cell: str = CELL, **workers: WorkerSecond) -> HealthEvent:
    return HealthEvent(second=7, cell=cell, repeat=1, phase="measure", revision=0, workers=workers)


def worker(lag_ns: float | None, users: int) -> WorkerSecond:
    known = {"loop_cpu_pct": None, "cpu_wait_pct": None, "cpu_pct": 61.5, "loop_lag_p99_ns": lag_ns}
    return WorkerSecond(**known, users=users, in_flight=3)


def sample(**values: Any) -> SampleEvent:
    about = {"t_s": 0, "utc": "", "cell": CELL, "repeat": 2, "phase": "measure", "endpoint": "onnx-grpc"}
    return SampleEvent(
        **{**about, "second": 7, "gpus": (), "server": {}, "replicas": {}, "missing": (), **values}
    )


def test_counters(stand: Stand) -> None:
    stand.live.on_window(window([5_000_000] * 10, failures={"timeout": 2, "reset": 1}, good=9))
    stand.live.on_window(window([], phase="warm-up", failures={"timeout": 1}))
    found = stand.scrape()
    assert found[key("inferswarm_requests_total", {**OF, "outcome": "ok"})] == 10
    assert found[key("inferswarm_requests_total", {**OF, "outcome": "failed"})] == 3
    assert found[key("inferswarm_requests_total", {**OF, "phase": "warm-up", "outcome": "failed"})] == 1
    assert found[key("inferswarm_images_total", OF)] == 40
    assert found[key("inferswarm_good_total", OF)] == 9
    assert found[key("inferswarm_failures_total", {"endpoint": "onnx-grpc", "kind": "timeout"})] == 3
    assert found[key("inferswarm_failures_total", {"endpoint": "onnx-grpc", "kind": "reset"})] == 1


def test_a_second_that_comes_again_adds_what_is_new_in_it(stand: Stand) -> None:
    stand.live.on_window(window([5_000_000] * 10, second=7, failures={"reset": 1}))
    stand.live.on_window(window([5_000_000] * 4, second=8))
    stand.live.on_window(window([5_000_000] * 12, second=7, failures={"reset": 1, "timeout": 2}))
    stand.live.on_window(window([], second=7, repeat=2))
    found = stand.scrape()
    assert found[key("inferswarm_requests_total", {**OF, "outcome": "ok"})] == 16
    assert found[key("inferswarm_requests_total", {**OF, "outcome": "failed"})] == 3
    assert found[key("inferswarm_latency_seconds_count", OF)] == 16
    assert found[key("inferswarm_latency_seconds_sum", OF)] == pytest.approx(0.08, rel=1e-3)


def test_buckets_against_exact_counts(stand: Stand) -> None:
    """LatencyBuckets in whole µs over the histogram's whole range, and one on every bound."""
    drawn = np.random.default_rng(5).lognormal(np.log(30e3), 2.5, 20_000).astype(np.int64)
    exact_us = np.concatenate([drawn, (np.array(BOUNDS_S) * 1e6).round().astype(np.int64)])
    for part in np.array_split(exact_us, 7):
        stand.live.on_window(window([int(value) * 1000 for value in part]))
    found = stand.scrape()
    for bound in BOUNDS_S:
        counted = found[key("inferswarm_latency_seconds_bucket", {**OF, "le": bound})]
        at_most, and_a_bit = np.count_nonzero(exact_us <= bound * 1e6), bound * 1e6 * 1.001
        assert at_most <= counted <= np.count_nonzero(exact_us <= and_a_bit)
        if bound <= 0.002:  # here the histogram tells every microsecond from the next
            assert counted == at_most
    assert found[key("inferswarm_latency_seconds_bucket", {**OF, "le": "+Inf"})] == len(exact_us)
    assert found[key("inferswarm_latency_seconds_count", OF)] == len(exact_us)
    seconds = found[key("inferswarm_latency_seconds_sum", OF)]
    assert seconds == pytest.approx(np.minimum(exact_us, 3_600_000_000).sum() / 1e6, rel=1e-3)


def test_the_page_says_what_it_holds(stand: Stand) -> None:
    stand.live.on_window(window([1_000_000]))
    types = {family.name: family.type for family in text_string_to_metric_families(stand.page())}
    assert types == {
        "inferswarm_requests": "counter",
        "inferswarm_images": "counter",
        "inferswarm_late": "counter",
        "inferswarm_latency_seconds": "histogram",
    }


def test_totals_never_fall(stand: Stand) -> None:
    stand.live.on_window(window([5_000_000] * 10))
    first = stand.scrape()
    for _ in range(2):
        stand.live.on_window(window([1_000_000, 90_000_000]))
    stand.live.on_window(window([1_000_000], cell="onnx-http/b1/c1"))
    second = stand.scrape()
    assert first
    assert all(second[name] >= value for name, value in first.items())
    assert second[key("inferswarm_requests_total", {**OF, "outcome": "ok"})] == 14
    assert second[key("inferswarm_latency_seconds_count", OF)] == 14


def test_a_histogram_rests_without_results_and_comes_back_whole(stand: Stand) -> None:
    name = key("inferswarm_latency_seconds_count", OF)
    stand.live.on_window(window([5_000_000] * 10))
    stand.clock.now += KEEP_S
    assert stand.scrape()[name] == 10
    stand.clock.now += 1
    assert name not in stand.scrape()
    assert stand.scrape()[key("inferswarm_requests_total", {**OF, "outcome": "ok"})] == 10
    stand.live.on_window(window([5_000_000]))
    assert stand.scrape()[name] == 11


def test_workers(stand: Stand) -> None:
    stand.live.on_health(health(w0=worker(40_000_000, users=3)))
    stand.live.on_health(health(w1=worker(None, users=5)))
    found = stand.scrape()
    assert found["inferswarm_users{}"] == 8
    assert found["inferswarm_in_flight{}"] == 6
    assert found["inferswarm_worker_cpu_ratio{worker=w0}"] == 0.615
    assert found["inferswarm_worker_lag_p99_seconds{worker=w0}"] == 0.04
    assert "inferswarm_worker_lag_p99_seconds{worker=w1}" not in found
    stand.clock.now += FRESH_S + 1
    stand.live.on_health(health(w1=worker(1_000_000, users=5)))
    found = stand.scrape()
    assert (found["inferswarm_users{}"], "inferswarm_worker_cpu_ratio{worker=w0}" in found) == (5, False)


def test_samples(stand: Stand) -> None:
    gpus = [
        {"id": "GPU-a", "util_pct": 93.0, "memory_bytes": 2_000_000_000, "power_w": 310.5},
        {"id": "GPU-b"},
    ]
    stand.live.on_sample(sample(gpus=tuple(gpus), pending_requests=12, host_cpu_pct=40.0))
    assert stand.scrape() == {
        "inferswarm_gpu_utilization_ratio{gpu=GPU-a}": 0.93,
        "inferswarm_gpu_memory_bytes{gpu=GPU-a}": 2e9,
        "inferswarm_gpu_power_watts{gpu=GPU-a}": 310.5,
        "inferswarm_pending_requests{endpoint=onnx-grpc}": 12,
        "inferswarm_host_cpu_ratio{}": 0.4,
        f"inferswarm_run_info{{cell={CELL},phase=measure,repeat=2}}": 1,
    }
    held = {"id": "GPU-a", "throttle_reasons": 0x04 | 0x01, "sm_clock_mhz": 1980, "energy_j": 7.5}
    held |= {"sm_active_pct": 25.0, "pcie_tx_bytes_per_s": 5e9, "power_limit_w": 700.0}
    replicas = {"ready": 2, "desired": 3}
    stand.live.on_sample(sample(gpus=(held,), replicas=replicas, tx_bytes_per_s=1e6))
    found = stand.scrape()
    reasons = ("power limit", "hardware slowdown", "temperature", "power brake")
    assert [found[f"inferswarm_gpu_clock_held{{gpu=GPU-a,reason={one}}}"] for one in reasons] == [1, 0, 0, 0]
    assert found["inferswarm_gpu_sm_clock_hertz{gpu=GPU-a}"] == 1.98e9
    assert found["inferswarm_gpu_energy_joules_total{gpu=GPU-a}"] == 7.5
    assert found["inferswarm_gpu_sm_active_ratio{gpu=GPU-a}"] == 0.25
    assert found["inferswarm_gpu_pcie_sent_bytes_per_second{gpu=GPU-a}"] == 5e9
    assert found["inferswarm_gpu_power_limit_watts{gpu=GPU-a}"] == 700
    assert found["inferswarm_replicas{endpoint=onnx-grpc,state=ready}"] == 2
    assert found["inferswarm_host_sent_bytes_per_second{}"] == 1e6
    stand.live.on_sample(sample(missing=("metrics: refused",)))
    assert list(stand.scrape()) == [f"inferswarm_run_info{{cell={CELL},phase=measure,repeat=2}}"]
    stand.clock.now += FRESH_S + 1
    assert stand.scrape() == {}


def test_late_and_dropped_arrivals_and_the_servers_own_counters(stand: Stand) -> None:
    series = f"cell={CELL},endpoint={CELL.partition('/')[0]},phase=measure"
    stand.live.on_window(window([1_000_000], late=1))
    for dropped in (7, None):
        sent = SimpleNamespace(dropped=dropped)
        run: Any = SimpleNamespace(sent=sent, endpoint=OF["endpoint"])
        ended = RunEnded(cell=CELL, repeat=1, status="done", note="", summary=run)
        stand.live.on_run_ended(ended)
    no_numbers = {"batches": {"4": [3, 900]}, "identity": "a/1"}
    stand.live.on_sample(sample(server={"requests": 12, "queue_ns": 1_500_000_000, **no_numbers}))
    found, endpoint = stand.scrape(), CELL.partition("/")[0]
    assert found[f"inferswarm_late_total{{{series}}}"] == 1
    assert found[f"inferswarm_dropped_total{{{series}}}"] == 7
    assert found[f"inferswarm_server_seconds_total{{endpoint={endpoint},part=queue}}"] == 1.5
    counts = {
        name: value for name, value in found.items() if name.startswith("inferswarm_server_count_total")
    }
    (requests,) = counts
    assert counts == {f"inferswarm_server_count_total{{endpoint={endpoint},what=requests}}": 12}
    for read, shown in ((11, 12), (3, 3), (4, 4)):  # between two numbers, and after a restart
        stand.live.on_sample(sample(server={"requests": read}))
        assert stand.scrape()[requests] == shown


def test_the_begin_of_a_phase_names_the_run_at_once(stand: Stand) -> None:
    begun = {"cell": CELL, "repeat": 1, "utc": "then"}
    serving = {"instances": 2, "max_batch": 32, "batching": True, "batching_delay_ns": 20_000_000}
    stand.live.on_phase_started(PhaseStarted(**begun, phase="warm-up", serving=serving))
    told = {
        f"inferswarm_server_instances{{cell={CELL}}}": 2,
        f"inferswarm_server_max_batch{{cell={CELL}}}": 32,
        f"inferswarm_server_queue_delay_seconds{{cell={CELL}}}": 0.02,
    }
    assert stand.scrape() == {**told, f"inferswarm_run_info{{cell={CELL},phase=warm-up,repeat=1}}": 1}
    stand.live.on_phase_started(PhaseStarted(**begun, phase="measure"))
    assert stand.scrape() == {**told, f"inferswarm_run_info{{cell={CELL},phase=measure,repeat=1}}": 1}
    change_runs(stand.live, CELL)
    stand.live.on_phase_started(PhaseStarted(**{**begun, "cell": "other"}, phase="warm-up"))
    assert list(stand.scrape()) == ["inferswarm_run_info{cell=other,phase=warm-up,repeat=1}"]


def change_runs(live: Live, over: str) -> None:
    """The run of one cell ends, and another begins."""
    live.on_run_ended(RunEnded(cell=over, repeat=1, status="done", note="", summary=None))
    more: Any = {"utc": "", "workers": (), "hosts": 1, "planned": {}, "plan": ()}
    live.on_run_started(RunStarted(cell="next", repeat=1, **more))


def test_cells_that_run_at_the_same_time_are_all_told(stand: Stand) -> None:
    about = {"onnx-grpc": (CELL, 12), "two": ("two/b1/c2", 7)}
    for endpoint, (cell, requests) in about.items():
        stand.live.on_health(health(cell, w0=worker(1_000_000, users=3), w1=worker(1_000_000, users=2)))
        gpu = {"id": "GPU-a", "power_w": 100.0}
        asked = {
            "server": {"requests": requests, "queue_ns": 1},
            "pending_requests": requests,
            "gpus": (gpu,),
        }
        stand.live.on_sample(sample(cell=cell, endpoint=endpoint, **asked))
    found = stand.scrape()
    assert (found["inferswarm_users{}"], found["inferswarm_in_flight{}"]) == (10, 12)
    for endpoint, (cell, requests) in about.items():
        assert found[f"inferswarm_server_count_total{{endpoint={endpoint},what=requests}}"] == requests
        assert found[f"inferswarm_pending_requests{{endpoint={endpoint}}}"] == requests
        assert found[f"inferswarm_run_info{{cell={cell},phase=measure,repeat=2}}"] == 1
    assert found["inferswarm_gpu_power_watts{gpu=GPU-a}"] == 100
    change_runs(stand.live, "two/b1/c2")
    assert stand.scrape()["inferswarm_users{}"] == 5


def test_of_many_cells_at_a_time_a_second_that_comes_again_adds_what_is_new(stand: Stand) -> None:
    for second in range(1, 61):
        for number in range(16):
            stand.live.on_window(window([5_000_000], cell=f"a/b1/c{number}", second=second))
    stand.live.on_window(window([5_000_000] * 2, cell="a/b1/c0", second=1))
    name = "inferswarm_requests_total{cell=a/b1/c0,endpoint=a,outcome=ok,phase=measure}"
    assert stand.scrape()[name] == 61


def test_a_port_in_use(stand: Stand) -> None:
    with pytest.raises(UsageError) as caught:
        start_exporter("127.0.0.1", stand.port, stand.live)
    assert str(caught.value) == (
        f"--prometheus-port {stand.port}: cannot listen on 127.0.0.1 (address already in use); "
        "give a free port"
    )


@pytest.mark.parametrize("host", ["no.such.host.invalid", "192.0.2.1", "::g"])
def test_addresses_that_are_not_this_machines(host: str) -> None:
    with pytest.raises(UsageError, match=f"--prometheus-host {host}: is not an address of this machine "):
        start_exporter(host, 9100, Live())


def test_after_the_stop_the_port_is_free(stand: Stand) -> None:
    stand.stop()
    with pytest.raises(ConnectionRefusedError):
        stand.page()
    start_exporter("127.0.0.1", stand.port, stand.live).stop()


def test_bounds_rise_and_are_dense_where_it_matters() -> None:
    assert list(BOUNDS_S) == sorted(set(BOUNDS_S))
    assert max(after / before for before, after in pairwise(BOUNDS_S)) <= 2
    assert (BOUNDS_S[0], BOUNDS_S[-1]) == (0.0005, 60.0)


def test_a_page_by_a_name_of_its_own_reads_no_figures(stand: Stand) -> None:
    def status(host: str) -> int:
        connection = http.client.HTTPConnection("127.0.0.1", stand.port, timeout=5)
        connection.request("GET", "/metrics", headers={"Host": host})
        reply = connection.getresponse()
        reply.read()
        connection.close()
        return reply.status

    assert [status(host) for host in ("evil.example", "localhost:9646", "10.0.0.7:9646")] == [421, 200, 200]
