"""Reading a server's counters, over real HTTP; Triton's gRPC stub is a stand-in."""

import json
import platform
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import gevent
import pytest
from gevent import socket
from google.protobuf.json_format import ParseDict
from tritonclient.grpc import service_pb2

from server.hardware.nvml import Gpu
from server.service.metrics import Metrics
from server.settings import Settings
from tests.stand_ins import stand_in
from tests.swarm.wsgi import serving
from tests.users.backends.test_serving import service as pytorch
from tests.users.backends.test_serving import triton
from users.backends.asking import counted, read_counters, unread
from users.backends.registry import backend_of
from users.endpoint import Endpoint
from users.errors import ErrorKind, RequestError
from users.metrics import DCGM_FIELDS, gpus_of, identity, samples
from users.transport.admin_connection import AdminConnection
from users.triton import api as of_triton
from users.triton.counters import GPU_FIELDS, triton_batches

pytestmark = pytest.mark.system


def spent(*figures: tuple[str, int, int]) -> dict[str, dict[str, int]]:
    return {name: {"count": count, "ns": ns} for name, count, ns in figures}


COMPUTED = ("compute_input", "compute_infer", "compute_output")
OUTCOMES = spent(("success", 21, 9_000_000_000), ("fail", 2, 5), ("queue", 21, 111))
PARTS = spent(*zip(COMPUTED, [21] * 3, (222, 3_333_333_333, 444), strict=True))
OF_4 = spent(*zip(COMPUTED, [19] * 3, (200, 3_000_000_000, 400), strict=True))
OF_8 = spent(*zip(COMPUTED, [1] * 3, (22, 333_333_333, 44), strict=True))
MODEL = {
    "name": "clip", "version": "1", "inference_count": 84, "execution_count": 20,
    "inference_stats": {**OUTCOMES, **PARTS},
    "batch_stats": [{"batch_size": 4, **OF_4}, {"batch_size": 8, **OF_8}],
}  # fmt: skip
STATS = {"model_stats": [MODEL]}
COUNTERS = {
    "requests": 23, "successes": 21, "images": 84, "executions": 20,
    "queue_ns": 111, "input_ns": 222, "compute_ns": 3_333_333_333, "output_ns": 444,
}  # fmt: skip
VERSION = {"version": "1"}
BATCHES = {"4": [19, 3_000_000_600], "8": [1, 333_333_399]}


def counter_reader(endpoint: Endpoint, timeout_s: float) -> Any:
    """What reads an endpoint's counters, by its backend."""
    return backend_of(endpoint).counters(endpoint, timeout_s)


def answers(body: Any, asked: list[str] | None = None, path: str = "") -> Callable[..., list[bytes]]:
    """A server with one answer, at any path or one; it notes what it is asked and over which connection."""

    def answer(environ: dict[str, Any], start: Callable[..., Any]) -> list[bytes]:
        if asked is not None:
            asked.append(f"{environ['PATH_INFO']} from {environ['REMOTE_PORT']}")
        start("200 OK" if path in ("", environ["PATH_INFO"]) else "404 Not Found", [])
        return [body() if callable(body) else body]

    return answer


@contextmanager
def accepting(talk: Callable[[Any], None]) -> Iterator[str]:
    """The address of a server that does `talk` with whoever connects, and nothing else."""
    listener = socket.create_server(("127.0.0.1", 0))
    peers: list[Any] = []

    def accept() -> None:
        while True:
            peer, _ = listener.accept()
            peers.append(peer)
            gevent.spawn(talk, peer)

    greenlet = gevent.spawn(accept)
    try:
        yield f"127.0.0.1:{listener.getsockname()[1]}"
    finally:
        greenlet.kill()
        for made in (*peers, listener):
            made.close()


def service(gpus: list[Gpu]) -> Callable[..., list[bytes]]:
    """The PyTorch service's own metrics: ten requests of three images, two failed, four not yet answered."""
    metrics = Metrics(lambda: gpus)
    metrics.requests.inc(16)
    metrics.in_flight.inc(4)
    metrics.failures.inc(2)
    metrics.shed.inc()
    parts_ns = {"decode": 2_000_000, "preprocess": 3_000_000, "queue": 500, "compute": 150_000_000}
    for _ in range(10):
        metrics.succeeded(3, parts_ns)
    return answers(metrics.render, path="/metrics")


SERVICE_COUNTERS = {
    "requests": 12, "successes": 10, "images": 30, "executions": 10, "shed": 1,
    "decode_ns": 20_000_000, "preprocess_ns": 30_000_000, "queue_ns": 5_000, "compute_ns": 1_500_000_000,
}  # fmt: skip


def but(found: dict[str, Any], *names: str) -> dict[str, Any]:
    """What was read without what is of this process and this machine."""
    return {name: value for name, value in found.items() if name not in names}


def test_the_service_over_http() -> None:
    with serving(service([])) as address:
        assert but(read_counters(pytorch(address)), "identity") == {"counters": SERVICE_COUNTERS}
        with counter_reader(pytorch(address), 5) as read:
            assert but(read(), "identity", "server_cpu") == {"server": SERVICE_COUNTERS}


def test_each_process_has_an_identity_of_its_own() -> None:
    found = []
    for _ in range(2):
        with serving(service([])) as address, counter_reader(pytorch(address), 5) as read:
            told = (read(), read(), read_counters(pytorch(address)))
            found.append([one["identity"] for one in told])
    assert [len(set(one)) for one in found] == [1, 1]
    assert found[0] != found[1]
    host, _, started_s = found[0][0].partition("/")
    assert (host, time.time() - float(started_s) < 60) == (platform.node(), True)


def test_a_described_server_is_told_by_when_its_process_started() -> None:
    page = 'n{a="1"} 3\nn{a="2"} 4\nwaits 1.5\nwaits{a="2"} 2\nprocess_start_time_seconds 1.79525880025e+09\n'
    with serving(answers(page.encode())) as address:
        names = {"requests": "n", "queue": "waits ms", "compute": "waits"}
        told = {"times": {"metrics": {"url": f"http://{address}/metrics", **names}}}
        endpoint = replace(Endpoint("mine", "service", "http", "jpeg", address), settings=told)
        counters = {"requests": 7, "queue_ns": 3_500_000, "compute_ns": 3_500_000_000}
        assert read_counters(endpoint) == {"counters": counters, "identity": "/1795258800.250"}


NAMED = {"requests": "app_requests_total", "queue": "app_queue_seconds_total s"}
COUNTED = "# TYPE app_requests_total counter\napp_requests_total 3\n"
WAITS = "app_queue_seconds_total"


def described(url: str, **named: str) -> Endpoint:
    """One whose file names a page of metrics."""
    told = {"times": {"metrics": {"url": url, **(named or NAMED)}}}
    return replace(Endpoint("mine", "service", "http", "text", "127.0.0.1:1"), settings=told)


@pytest.mark.parametrize(
    ("page", "reasons"),
    [
        (f"{COUNTED}app_queue_duration_seconds_total 1\n", (WAITS, "app_queue_duration_seconds_total")),
        (f"{COUNTED}{WAITS}_bucket 1\n{WAITS.removesuffix('_total')}_sum 1\n", (WAITS, "_seconds_sum")),
        (f"{COUNTED}{WAITS} NaN\n", (WAITS, "nan")),
        (f'{COUNTED}{WAITS}{{m="1"}} 1\n{WAITS}{{m="2"}} +Inf\n', (WAITS, "inf")),
        (f"{COUNTED}# TYPE {WAITS} gauge\n{WAITS} 1\n", (WAITS, "gauge")),
        (f"{COUNTED}{WAITS} many\n", ("many",)),
        ("<html>\n<p>hello 1\n</html>", ("no metrics", "<html>")),
        ("", ("no metrics",)),
    ],
)
def test_why_a_named_metric_cannot_be_read(page: str, reasons: tuple[str, ...]) -> None:
    with serving(answers(page.encode())) as address:
        (gap,) = unread(described(f"http://{address}/metrics"))
    assert [reason for reason in ("mine", *reasons) if reason not in gap] == []


@pytest.mark.parametrize("status", ["404 Not Found", "401 Unauthorized", "500 Server Error"])
def test_why_a_page_of_metrics_cannot_be_read(status: str) -> None:
    def answer(_: dict[str, Any], start: Callable[..., Any]) -> list[bytes]:
        start(status, [])
        return [b"planted"]

    with serving(answer) as address:
        (gap,) = unread(described(f"http://{address}/metrics"))
    assert (status[:3] in gap, "planted" in gap) == (True, True)
    (gap,) = unread(described(f"http://{address}/metrics"))
    assert "refused" in gap


@pytest.mark.parametrize("begin", ["vllm:prefix_cache", "vllm:gpu_prefix_cache", "app"])
def test_hits_of_a_prefix_cache_are_read_from_a_named_page(begin: str) -> None:
    hits = [f'{begin}_hits_total{{engine="{at}"}} {count}' for at, count in enumerate((3, 2))]
    page = "\n".join(["n 7", *hits, f"{begin}_queries_total 9", ""])
    with serving(answers(page.encode())) as address:
        url = f"http://{address}/metrics"
        named = (
            {"cache_hits": "app_hits_total", "cache_queries": "app_queries_total"} if begin == "app" else {}
        )
        counters = {"requests": 7, "cache_hits": 5, "cache_queries": 9}
        assert read_counters(described(url, requests="n", **named))["counters"] == counters


def test_a_response_cache_is_counted_over_http_and_grpc(monkeypatch: pytest.MonkeyPatch) -> None:
    cache = spent(("cache_hit", 15, 1_500), ("cache_miss", 6, 600))
    stats = {"model_stats": [{**MODEL, "inference_stats": {**MODEL["inference_stats"], **cache}}]}
    grown = {"cache_hits": 15, "cache_queries": 21, "cache_ns": 2_100}

    class Stub:
        def ModelStatistics(self, request: Any, timeout: float) -> Any:
            return ParseDict(stats, service_pb2.ModelStatisticsResponse())

    with serving(answers(json.dumps(stats).encode())) as address:
        assert read_counters(triton(address))["counters"] == {**COUNTERS, **grown, "batches": BATCHES}
    monkeypatch.setattr(of_triton, "triton_stub", lambda endpoint, control: nullcontext(Stub()))
    assert read_counters(triton("host:1", "grpc"))["counters"] == {**COUNTERS, **grown, "batches": BATCHES}


def test_of_requests_and_failures_follow_the_successes() -> None:
    with serving(answers(b"n 7\nbad 2\n")) as address:
        url = f"http://{address}/metrics"
        assert read_counters(described(url, requests="n", failures="bad"))["counters"]["successes"] == 5
        assert list(unread(described(url, requests="n"))) == []


def test_a_page_of_several_processes_has_no_identity() -> None:
    assert identity('started{host="a"} 5.25\n', "started") == {"identity": "a/5.250"}
    assert identity("started 5\n", "started") == {"identity": "/5.000"}
    assert identity('started{host="a"} 5\nstarted{host="b"} 6\n', "started") == {}
    assert identity("other 5\n", "started") == {}


def test_the_service_tells_of_its_gpus() -> None:
    gpu = Gpu(
        0, "NVIDIA H100", 93.0, 2e9, 8e10, None, 1980.0, 40.0,
        "GPU-a", 7.5, 700.0, 1980.0, throttle_reasons=4, serves=True,
    )  # fmt: skip
    with serving(service([gpu])) as address, counter_reader(pytorch(address), 5) as read:
        assert read()["gpus"] == [{
            "id": "GPU-a", "util_pct": 93.0, "sm_clock_mhz": 1980.0, "max_sm_clock_mhz": 1980.0,
            "memory_bytes": 2_000_000_000, "memory_total_bytes": 80_000_000_000,
            "energy_j": 7.5, "power_limit_w": 700.0, "throttle_reasons": 4, "serves": True,
        }]  # fmt: skip


def test_triton_over_http() -> None:
    asked: list[str] = []
    with serving(answers(json.dumps(STATS).encode(), asked)) as address:
        assert read_counters(triton(address)) == {"counters": COUNTERS | {"batches": BATCHES}, **VERSION}
        with counter_reader(triton(address), 5) as read:
            assert [read() for _ in range(3)] == [{"server": COUNTERS | {"batches": BATCHES}, **VERSION}] * 3
        assert asked[0].startswith("/v2/models/clip/stats from")
        assert len(set(asked)) == 2, "three readings over one connection"
        read_counters(triton(address).floor())
        assert asked[-1].startswith("/v2/models/null/stats")


@pytest.mark.parametrize(("version", "images"), [("2", 20), ("9", 90), ("10", 100), ("", 100)])
def test_the_version_that_is_meant_or_the_newest_is_counted(version: str, images: int) -> None:
    told = [{**MODEL, "version": each, "inference_count": 10 * int(each)} for each in ("2", "10", "9")]
    with serving(answers(json.dumps({"model_stats": told}).encode())) as address:
        found = read_counters(replace(triton(address), version=version))["counters"]
    assert found["images"] == images


def test_counters_are_read_again_until_they_hold_what_was_sent() -> None:
    told = [1, 2, 3, 4]
    slept: list[float] = []

    def read() -> dict[str, Any]:
        return {"counters": {"requests": told.pop(0)}}

    assert counted(read, 3, slept.append) == {"counters": {"requests": 3}}
    assert slept == [0.05, 0.05]
    assert counted(lambda: {"counters": {"requests": 2}}, 3, slept.append) == {"counters": {"requests": 2}}
    assert len(slept) == 2 + 20, "a second at most"
    for untold in ({"counters": {}}, {"error": "gone"}):
        assert counted(lambda untold=untold: untold, 3, slept.append) == untold  # type: ignore[misc]
    assert len(slept) == 22


def test_triton_over_grpc_on_one_stub(monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[str] = []

    class Stub:
        def ModelStatistics(self, request: Any, timeout: float) -> Any:
            events.append(f"{request.name} within {timeout:g}")
            return ParseDict(STATS, service_pb2.ModelStatisticsResponse())

    @contextmanager
    def stub(endpoint: Endpoint, control: bool) -> Iterator[Stub]:
        events.append("open")
        yield Stub()
        events.append("closed")

    monkeypatch.setattr(of_triton, "triton_stub", stub)
    with counter_reader(triton("h:1", "grpc"), 0.9) as read:
        assert [read() for _ in range(2)] == [{"server": COUNTERS | {"batches": BATCHES}, **VERSION}] * 2
    assert events == ["open", "clip within 0.9", "clip within 0.9", "closed"]
    assert read_counters(triton("h:1", "grpc")) == {"counters": COUNTERS | {"batches": BATCHES}, **VERSION}


def test_triton_over_grpc_for_real() -> None:
    with stand_in("fake_triton.py") as address:
        counters = read_counters(triton(address, "grpc"))["counters"]
    assert (counters["successes"], counters["images"], counters["compute_ns"]) == (2, 4, 0)
    assert counters["batches"] == {"4": [1, 6]}


def test_what_a_batch_does_not_tell_is_nothing() -> None:
    told = {"batch_stats": [{"batch_size": "2", "compute_infer": {"count": "3", "ns": "5"}}]}
    assert [triton_batches(stats) for stats in ({}, told)] == [{}, {"2": [3, 5]}]


def test_nobody_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"127.0.0.1:{listener.getsockname()[1]}"
    assert read_counters(pytorch(address))["error_kind"] == "refused"


@pytest.mark.parametrize("body", [b"<html>", b'{"model_stats": []}', b'{"error": "no"}', b"[1]", b"\xff"])
def test_an_answer_in_another_form(body: bytes) -> None:
    with serving(answers(body)) as address:
        for endpoint in (pytorch(address), triton(address)):
            told = read_counters(endpoint)["error"]
            assert told.startswith(f"the counters of {endpoint.name} cannot be")
            assert ("no statistics of the model" in told) is (b"[]" in body and endpoint.backend != "pytorch")


def silent(peer: Any) -> None:
    while peer.recv(100):
        pass


def trickling(peer: Any) -> None:
    """Answers a byte at a time, each well within any timeout of a single read."""
    peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
    for _ in range(1000):
        peer.sendall(b"x")
        gevent.sleep(0.02)


@pytest.mark.parametrize("talk", [silent, trickling])
def test_the_time_for_a_whole_answer_is_limited(talk: Callable[[Any], None]) -> None:
    began = time.monotonic()
    with accepting(talk) as address, counter_reader(pytorch(address), 0.2) as read:
        for _ in range(2):
            with pytest.raises(RequestError) as caught:
                read()
            assert caught.value.kind is ErrorKind.TIMEOUT
    assert 0.4 <= time.monotonic() - began < 2


def test_a_line_connects_again_when_it_was_cut() -> None:
    def once(peer: Any) -> None:
        peer.recv(1000)
        peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        peer.close()

    with accepting(once) as address:
        line = AdminConnection(address, 5)
        assert [line.get("/"), line.get("/")] == ["ok", "ok"]
        line.close()


def test_samples_are_chosen_by_their_whole_name() -> None:
    page = 'a 1\na_sum{x="1"} 2\n# TYPE b gauge\nb 3\nab 4\n'
    found = [(s.name, s.labels, s.value) for s in samples(page, {"a_sum", "b"})]
    assert found == [("a_sum", {"x": "1"}, 2.0), ("b", {}, 3.0)]
    assert [s.value for s in samples(page, {"a"})] == [1.0]
    assert list(samples("", {"a"})) == []


REPLAYED = Path(__file__).parents[2] / "replayed"


def test_dcgms_names_beside_tritons_are_of_the_same_gpus() -> None:
    """The recorded page of Triton, and a clock of its first GPU."""
    page = (REPLAYED / "triton.prom").read_text()
    clock = 'DCGM_FI_DEV_SM_CLOCK{gpu="0", UUID="GPU-71ce41fd-3ac0-afe7-c995-21119f1e984a"} 1380\n'
    gpus = gpus_of(page + clock, {**DCGM_FIELDS, **GPU_FIELDS})["gpus"]
    assert gpus[0] == {
        "id": "GPU-71ce41fd-3ac0-afe7-c995-21119f1e984a",
        "util_pct": 0.0, "memory_bytes": 7_451_181_056, "power_w": 58.954, "energy_j": 205_620.582,
        "sm_clock_mhz": 1380.0, "power_limit_w": 300.0, "memory_total_bytes": 16_944_988_160,
    }  # fmt: skip
    assert [len(gpu) for gpu in gpus[1:]] == [7, 7, 7]


@pytest.mark.parametrize("blank", ["9223372036854775794", "140737488355330.000000"])
def test_what_dcgm_says_that_it_does_not_know_is_left_out(blank: str) -> None:
    """Not supported, as an integer and as a fraction: dcgm-exporter's README has one on its page."""
    page = "".join(f'{name}{{gpu="0", UUID="GPU-604ac76c"}} {blank}\n' for name in DCGM_FIELDS)
    assert gpus_of(page, DCGM_FIELDS) == {}
    known = 'DCGM_FI_DEV_SM_CLOCK{gpu="0", UUID="GPU-604ac76c"} 139\n'
    assert gpus_of(page + known, DCGM_FIELDS) == {"gpus": [{"id": "GPU-604ac76c", "sm_clock_mhz": 139.0}]}


def test_a_gateway_does_not_count_executions() -> None:
    metrics = Metrics(lambda: [], Settings(upstream="host:1").parts)
    metrics.requests.inc(2)
    for _ in range(2):
        metrics.succeeded(3, {"decode": 2_000, "preprocess": 3_000, "queue": 500, "upstream": 7_000_000})
    with serving(answers(metrics.render())) as address:
        gateway = Endpoint("gateway-http", "gateway", "http", "jpeg", address)
        assert read_counters(gateway)["counters"] == {
            "requests": 2, "successes": 2, "images": 6, "shed": 0,
            "decode_ns": 4_000, "preprocess_ns": 6_000, "queue_ns": 1_000, "upstream_ns": 14_000_000,
        }  # fmt: skip
