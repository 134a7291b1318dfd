"""An ensemble's counters, put together from what a real tritonserver 2.51 answered, over both protocols."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import pytest
from google.protobuf.json_format import ParseDict
from tritonclient.grpc import service_pb2

from tests.swarm.wsgi import serving as serving_app
from users.backends.asking import read_counters, read_serving
from users.endpoint import Endpoint, Protocol
from users.triton import api
from users.triton.api import queues_of
from users.triton.counters import counter_reader

Json = dict[str, Any]


def stats_of(name: str, good: int, fail: int, images: int, ns: Sequence[int], sizes: dict[int, int]) -> Json:
    """One model's entry; `ns` are queue, input, infer and output, `sizes` executions by batch size."""
    parts = ("queue", "compute_input", "compute_infer", "compute_output")
    stats = {part: {"count": good, "ns": spent} for part, spent in zip(parts, ns, strict=True)}
    infers = {size: {"count": times, "ns": 1_000 * size} for size, times in sizes.items()}
    return {
        "name": name, "version": "1", "inference_count": images, "execution_count": sum(sizes.values()),
        "inference_stats": {"success": {"count": good}, "fail": {"count": fail}, **stats},
        "batch_stats": [{"batch_size": size, "compute_infer": infer} for size, infer in infers.items()],
    }  # fmt: skip


STATS = {
    "model_stats": [
        # Of 12 requests, 2 had a file that was no JPEG.
        stats_of("clip_jpeg", 10, 4, 30, (30, 700, 1_460_000, 6_000), {3: 10}),
        stats_of("decode_jpeg", 12, 0, 36, (1_800, 120, 84_000, 2_700), {3: 12}),
        stats_of("null", 5, 0, 5, (9, 9, 9, 9), {1: 5}),
        # Four of its executions had two requests each, and nobody else asked it.
        stats_of("clip", 10, 0, 30, (88_000, 580, 1_376_000, 3_300), {3: 2, 6: 4}),
    ]
}
COUNTERS = {
    "requests": 12, "successes": 10, "images": 30, "executions": 6,
    "queue_ns": 89_800, "input_ns": 700, "decode_ns": 84_000, "compute_ns": 1_376_000, "output_ns": 6_000,
}  # fmt: skip
BATCHES = {"3": [2, 3_000], "6": [4, 6_000]}
TOLD = ("successes", "executions", "queue_ns", "work_ns", "executing_ns")
FIGURES = {"decode_jpeg": (12, 12, 1_800, 86_820, 3_000), "clip": (10, 6, 88_000, 1_379_880, 9_000)}
STEPS = {name: dict(zip(TOLD, figures, strict=True)) for name, figures in FIGURES.items()}
ALL = COUNTERS | {"batches": BATCHES, "steps": STEPS}
ENSEMBLE = {
    "name": "clip_jpeg", "platform": "ensemble", "max_batch_size": 32, "instance_group": [],
    "ensemble_scheduling": {"step": [{"model_name": "decode_jpeg"}, {"model_name": "clip"}]},
}  # fmt: skip
BATCHING = {"max_queue_delay_microseconds": 500}
CLIP = {"name": "clip", "max_batch_size": 16, "instance_group": [{"count": 2}], "dynamic_batching": BATCHING}
PIXELS = json.loads(json.dumps(ENSEMBLE).replace("_jpeg", "_uint8"))
DECODE = {"name": "decode_jpeg", "backend": "python", "instance_group": [{"count": 3}]}
CONFIGS = {"clip_jpeg": ENSEMBLE, "clip_uint8": PIXELS, "clip": CLIP, "decode_jpeg": DECODE}


def triton(address: str, protocol: Protocol = "http", payload: Any = "jpeg") -> Endpoint:
    model = f"clip_{payload}"
    return Endpoint(f"onnx-{payload}-{protocol}", "onnx", protocol, payload, address, model)


@contextmanager
def answering(stats: dict[str, Any] = STATS, asked: list[str] | None = None) -> Iterator[str]:
    """A Triton's HTTP that tells of all models at once, and of the configuration of each."""

    def answer(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        path = environ["PATH_INFO"]
        if asked is not None:
            asked.append(path)
        told: Any = stats if path == "/v2/models/stats" else None
        if path.endswith("/config"):
            told = CONFIGS.get(path.split("/")[3])
        start("200 OK" if told else "400 Bad Request", [("Content-Type", "application/json")])
        return [json.dumps(told).encode()]

    with serving_app(answer) as address:
        yield address


class Stub:
    """A Triton's gRPC that tells the same."""

    def ModelStatistics(self, request: Any, timeout: float) -> Any:
        assert request.name == ""
        return ParseDict(STATS, service_pb2.ModelStatisticsResponse())

    def ModelConfig(self, request: Any, timeout: float) -> Any:
        return ParseDict({"config": CONFIGS[request.name]}, service_pb2.ModelConfigResponse())


@pytest.fixture
def over_grpc(monkeypatch: pytest.MonkeyPatch) -> Endpoint:
    monkeypatch.setattr(api, "triton_stub", lambda endpoint, control: nullcontext(Stub()))
    return triton("host:1", "grpc")


def test_over_http() -> None:
    asked: list[str] = []
    with answering(asked=asked) as address:
        assert read_counters(triton(address)) == {"counters": ALL}
        asked.clear()
        with counter_reader(triton(address), 5) as read:
            assert [read() for _ in range(3)] == [{"server": ALL}] * 3
    assert asked == ["/v2/models/clip_jpeg/config", *["/v2/models/stats"] * 3]


def test_what_comes_before_a_model_of_pixels_is_preprocessing() -> None:
    stats = json.loads(json.dumps(STATS).replace("_jpeg", "_uint8"))
    with answering(stats) as address:
        counted = read_counters(triton(address, payload="uint8"))["counters"]
    assert counted["preprocess_ns"] == COUNTERS["decode_ns"]
    assert "decode_ns" not in counted


def test_others_requests_to_the_model_are_counted() -> None:
    stats = json.loads(json.dumps(STATS))
    stats["model_stats"][3]["inference_stats"]["success"]["count"] += 7
    with answering(stats) as address:
        counted = read_counters(triton(address))["counters"]
    assert (counted["requests"], counted["successes"]) == (19, 17)


def test_what_the_ensembles_own_cache_answers_is_no_request_less() -> None:
    stats = json.loads(json.dumps(STATS))
    whole, inner = (stats["model_stats"][at]["inference_stats"] for at in (0, 3))
    whole["success"]["count"] += 40
    whole |= {"cache_hit": {"count": 40, "ns": 400}, "cache_miss": {"count": 10, "ns": 100}}
    inner |= {"cache_hit": {"count": 1, "ns": 10}, "cache_miss": {"count": 9, "ns": 90}}
    with answering(stats) as address:
        counted = read_counters(triton(address))["counters"]
    assert (counted["requests"], counted["successes"]) == (12 + 40, 10 + 40)
    assert (counted["cache_hits"], counted["cache_queries"], counted["cache_ns"]) == (41, 50, 600)


def test_a_step_that_is_not_told_of() -> None:
    with answering({"model_stats": STATS["model_stats"][:3]}) as address:
        assert read_counters(triton(address))["error_kind"] == "bad-reply"


def test_the_set_up_is_that_of_the_model_that_computes() -> None:
    with answering() as address:
        told = read_serving(triton(address))
    own = {"instances": 2, "max_batch": 16, "batching": True, "batching_delay_ns": 500_000}
    assert told == own | {"steps": {"decode_jpeg": 3, "clip": 2}}


def test_a_step_whose_set_up_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(CONFIGS, "decode_jpeg")
    with answering() as address:
        assert read_serving(triton(address))["steps"] == {"decode_jpeg": None, "clip": 2}


def test_executions_that_are_not_told_by_size_are_left_out() -> None:
    stats = json.loads(json.dumps(STATS))
    stats["model_stats"][1]["batch_stats"] = []
    with answering(stats) as address:
        steps = read_counters(triton(address))["counters"]["steps"]
    assert ("executing_ns" in steps["decode_jpeg"], "executing_ns" in steps["clip"]) == (False, True)


def test_requests_wait_for_every_step() -> None:
    with answering() as address:
        assert queues_of(triton(address)) == ("decode_jpeg", "clip")
        assert queues_of(triton(address, payload="uint8x")) == ()
    fp32 = Endpoint("onnx-http", "onnx", "http", "fp32", "nowhere:1", "clip")
    assert queues_of(fp32) == ("clip",), "which is not asked"


def test_over_grpc(over_grpc: Endpoint) -> None:
    assert read_counters(over_grpc) == {"counters": ALL}
    assert read_serving(over_grpc)["instances"] == 2
    assert queues_of(over_grpc) == ("decode_jpeg", "clip")
