"""The servers' own counters: just before and after each measure phase, and every second between."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any

from google.protobuf.json_format import MessageToDict
from tritonclient.grpc import service_pb2

from swarm.gpus import gpu_records
from swarm.query import PATIENCE_S, Line, Read, samples, triton_stub
from users.endpoint import Endpoint
from users.errors import RequestError, translated

SETTLE_S, SETTLE_TRIES = 0.05, 20
SECONDS_OF_PART = {
    "inferswarm_decode_seconds_sum": "decode_ns",
    "inferswarm_preprocess_seconds_sum": "preprocess_ns",
    "inferswarm_queue_seconds_sum": "queue_ns",
    "inferswarm_compute_seconds_sum": "compute_ns",
}
COUNTS = {
    "inferswarm_requests_total": "requests",
    "inferswarm_failures_total": "failures",
    "inferswarm_images_total": "images",
    "inferswarm_in_flight": "in_flight",
}
GPU_FIELDS = {
    "inferswarm_gpu_utilisation_pct": "util_pct",
    "inferswarm_gpu_memory_used_bytes": "memory_bytes",
    "inferswarm_gpu_power_w": "power_w",
    "inferswarm_gpu_sm_clock_mhz": "sm_clock_mhz",
}


def read_counters(endpoint: Endpoint) -> dict[str, Any]:
    """`{"counters": {…}}`, cumulative since the server's start, or `{"error": sentence}`; it never raises."""
    if not (endpoint.model or endpoint.computes):
        return {"counters": {}}  # the service counts what it embeds, and its floor embeds nothing
    try:
        with translated(), counter_reader(endpoint, PATIENCE_S, batches=True) as read:
            return {"counters": read()["server"]}
    except RequestError as error:
        return {"error": f"the counters of {endpoint.name} cannot be read ({error.kind})"}


def settled(read: Callable[[], dict[str, Any]], sleep: Callable[[float], None]) -> dict[str, Any]:
    """What is read once two readings agree, or patience ends: Triton counts a request after answering it."""
    last, now = None, read()
    for _ in range(SETTLE_TRIES):
        if now == last or "error" in now:
            break
        sleep(SETTLE_S)
        last, now = now, read()
    return now


@contextmanager
def counter_reader(endpoint: Endpoint, timeout_s: float, batches: bool = False) -> Iterator[Read]:
    """Reads `{"server": counters}` over one connection, and from the PyTorch service its `"gpus"` too.

    `batches`: also Triton's executions by batch size, `{size: [executions, nanoseconds]}`.

    Readings raise RequestError, grpc.RpcError, or what an answer in another form than expected leads to.
    """
    if endpoint.model and endpoint.protocol == "grpc":
        request = service_pb2.ModelStatisticsRequest(name=endpoint.model)
        with triton_stub(endpoint) as stub:
            yield lambda: triton_reading(plain(stub.ModelStatistics(request, timeout=timeout_s)), batches)
        return
    with closing(Line(endpoint.address, timeout_s)) as line:
        if endpoint.model:
            path = f"/v2/models/{endpoint.model}/stats"
            yield lambda: triton_reading(json.loads(line.get(path)), batches)
        else:
            yield lambda: service_reading(line.get("/metrics"))


def service_reading(page: str) -> dict[str, Any]:
    """Counters and GPUs from the PyTorch service's `/metrics`; GPUs are left out where it tells of none."""
    counters: dict[str, int] = {}
    gpus: list[tuple[str, str, float]] = []
    for sample in samples(page, {*SECONDS_OF_PART, *COUNTS, *GPU_FIELDS}):
        if sample.name in SECONDS_OF_PART:
            counters[SECONDS_OF_PART[sample.name]] = round(sample.value * 1e9)
        elif sample.name in COUNTS:
            counters[COUNTS[sample.name]] = int(sample.value)
        else:
            gpus.append((sample.labels["gpu"], GPU_FIELDS[sample.name], sample.value))
    # The service counts a request when it comes, and Triton when it has been answered, which is what we keep.
    counters["requests"] -= counters.pop("in_flight", 0)
    counters["successes"] = counters["requests"] - counters.pop("failures")
    counters["executions"] = counters["successes"]
    return {"server": counters, **({"gpus": gpu_records(gpus)} if gpus else {})}


def plain(answer: Any) -> Mapping[str, Any]:
    """A protobuf message in the form of Triton's HTTP answers."""
    made: dict[str, Any] = MessageToDict(answer, preserving_proto_field_name=True)
    return made


def triton_reading(answer: Mapping[str, Any], batches: bool) -> dict[str, Any]:
    """Counters from the answer of Triton's statistics extension."""
    stats = answer["model_stats"][0]
    by_batch = {"batches": triton_batches(stats)} if batches else {}
    return {"server": triton_counters(stats) | by_batch}


def triton_batches(stats: Mapping[str, Any]) -> dict[str, list[int]]:
    """By executed batch size: how many executions, and the time of all of them, input and output included."""
    parts = ("compute_input", "compute_infer", "compute_output")
    return {
        str(of["batch_size"]): [
            int(of["compute_infer"]["count"]),
            sum(int(of.get(part, {}).get("ns", 0)) for part in parts),
        ]
        for of in stats.get("batch_stats", ())
    }


def triton_counters(stats: Mapping[str, Any]) -> dict[str, Any]:
    """Counters from `ModelStatistics`; protobuf's JSON writes 64-bit numbers as text and leaves zeros out."""
    parts = stats.get("inference_stats", {})

    def of(name: str, what: str) -> int:
        return int(parts.get(name, {}).get(what, 0))

    return {
        "requests": of("success", "count") + of("fail", "count"),
        "successes": of("success", "count"),
        "images": int(stats.get("inference_count", 0)),
        "executions": int(stats.get("execution_count", 0)),
        "queue_ns": of("queue", "ns"),
        "input_ns": of("compute_input", "ns"),
        "compute_ns": of("compute_infer", "ns"),
        "output_ns": of("compute_output", "ns"),
    }
