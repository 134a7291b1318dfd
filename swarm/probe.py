"""The servers' own counters, read just before and just after each measure phase."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import grpc
import requests
from google.protobuf.json_format import MessageToDict
from prometheus_client.parser import text_string_to_metric_families
from tritonclient.grpc import service_pb2

from swarm.query import PATIENCE_S, get, triton_stub
from users.endpoint import Endpoint

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
}


def read_counters(endpoint: Endpoint) -> dict[str, Any]:
    """`{"counters": {…}}`, cumulative since the server's start, or `{"error": sentence}`; it never raises."""
    try:
        if not endpoint.model:
            return {"counters": service_counters(endpoint)}
        stats = triton_http_stats(endpoint) if endpoint.protocol == "http" else triton_grpc_stats(endpoint)
        return {"counters": triton_counters(stats)}
    except (requests.RequestException, grpc.RpcError, KeyError, ValueError, IndexError, TypeError) as error:
        return {"error": f"the counters of {endpoint.name} cannot be read ({type(error).__name__})"}


def service_counters(endpoint: Endpoint) -> dict[str, int]:
    """From the PyTorch service's `/metrics`."""
    reply = get(endpoint, "/metrics")
    reply.raise_for_status()
    counters: dict[str, int] = {}
    for family in text_string_to_metric_families(reply.text):
        for sample in family.samples:
            if sample.name in SECONDS_OF_PART:
                counters[SECONDS_OF_PART[sample.name]] = round(sample.value * 1e9)
            elif sample.name in COUNTS:
                counters[COUNTS[sample.name]] = int(sample.value)
    counters["successes"] = counters["requests"] - counters.pop("failures")
    counters["executions"] = counters["successes"]
    return counters


def triton_http_stats(endpoint: Endpoint) -> Mapping[str, Any]:
    """Triton's statistics extension over HTTP."""
    reply = get(endpoint, f"/v2/models/{endpoint.model}/stats")
    reply.raise_for_status()
    stats: dict[str, Any] = reply.json()["model_stats"][0]
    return stats


def triton_grpc_stats(endpoint: Endpoint) -> Mapping[str, Any]:
    """Triton's statistics extension over gRPC, in the form of its HTTP answer."""
    request = service_pb2.ModelStatisticsRequest(name=endpoint.model)
    with triton_stub(endpoint) as stub:
        answer = stub.ModelStatistics(request, timeout=PATIENCE_S)
    stats: dict[str, Any] = MessageToDict(answer, preserving_proto_field_name=True)["model_stats"][0]
    return stats


def triton_counters(stats: Mapping[str, Any]) -> dict[str, int]:
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
