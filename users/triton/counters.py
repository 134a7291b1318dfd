"""What Triton counts of a model, and its page of metrics.

Its own counters of an ensemble say little: its `queue` leaves out the waits for its steps, its executions and
batch sizes are the requests, not what the model that computes joined them to, and a failure is counted twice
(server 2.51). So they are put together from its own and those of its steps.
"""

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import Any

from tritonclient.grpc import service_pb2

from users.endpoint import Endpoint
from users.metrics import gpus_of, samples
from users.transport.admin_connection import AdminConnection, Read
from users.triton.api import plain, queues_of, steps_behind, triton_stub

Ask = Callable[[str], Mapping[str, Any]]
"""Triton's statistics of the model of a name, or of all models where it is empty."""
BEFORE = {"jpeg": "decode_ns"}
"""What the steps before the model do, by payload; to resize, crop and scale counts as decoding there."""
OF_ALL_STEPS = ("queue_ns", "input_ns", "output_ns")
PENDING = "nv_inference_pending_request_count"
GPU_FIELDS = {
    "nv_gpu_utilization": ("util_pct", 100),
    "nv_gpu_memory_used_bytes": ("memory_bytes", 1),
    "nv_gpu_power_usage": ("power_w", 1),
    "nv_energy_consumption": ("energy_j", 1),
}


@contextmanager
def counter_reader(endpoint: Endpoint, timeout_s: float) -> Iterator[Read]:
    """Reads the counters of the endpoint's model over one connection, as Backend says."""
    if endpoint.protocol == "grpc":
        with triton_stub(endpoint) as stub:
            yield reader(endpoint, lambda name: grpc_statistics(stub, name, timeout_s))
        return
    with closing(AdminConnection.to(endpoint, timeout_s)) as connection:
        yield reader(endpoint, lambda name: http_statistics(connection, name))


def reader(endpoint: Endpoint, ask: Ask) -> Read:
    """The same by a way to ask; an ensemble's steps are found out at the first time."""
    steps_once = functools.cache(lambda: steps_behind(endpoint))

    def read() -> dict[str, Any]:
        steps = steps_once()
        if not steps:
            return {"server": counted(ask(endpoint.model)["model_stats"][0])}
        return {"server": ensemble_counters(ask(""), endpoint.model, steps, endpoint.payload)}

    return read


def grpc_statistics(stub: Any, name: str, timeout_s: float) -> Mapping[str, Any]:
    """Triton's statistics of one model, or of all where `name` is empty, over gRPC."""
    return plain(stub.ModelStatistics(service_pb2.ModelStatisticsRequest(name=name), timeout=timeout_s))


def http_statistics(connection: AdminConnection, name: str) -> Mapping[str, Any]:
    """The same over HTTP."""
    path = f"/v2/models/{name}/stats" if name else "/v2/models/stats"
    answer: Mapping[str, Any] = connection.get_json(path)
    return answer


def counted(stats: Mapping[str, Any]) -> dict[str, Any]:
    """The counters of one model from its entry in `ModelStatistics`, and its executions by batch size."""
    return triton_counters(stats) | {"batches": triton_batches(stats)}


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


def ensemble_counters(
    answer: Mapping[str, Any], model: str, steps: Sequence[str], payload: str
) -> dict[str, Any]:
    """Counters of the ensemble `model`, from the statistics of all models of its server.

    The first step sees each request once, whatever comes of it. Others' requests to the model that computes
    are counted with them: they share its queue and its batches, and must not go unnoticed. Raises KeyError.
    """
    found = {stats["name"]: counted(stats) for stats in answer["model_stats"]}
    whole, first, inner = found[model], found[steps[0]], found[steps[-1]]
    return {
        **inner,
        "requests": first["requests"] + inner["successes"] - whole["successes"],
        **{part: sum(found[step][part] for step in steps) for part in OF_ALL_STEPS},
        BEFORE.get(payload, "preprocess_ns"): sum(found[step]["compute_ns"] for step in steps[:-1]),
    }


def metrics_of(endpoint: Endpoint) -> Callable[[str], dict[str, Any]]:
    """How its page of metrics is read: what waits where the endpoint's requests wait, and GPUs."""
    return functools.partial(parse, models=queues_of(endpoint))


def parse(page: str, models: Sequence[str]) -> dict[str, Any]:
    """`{"pending_requests": n, "gpus": […]}`, either left out where the page does not tell.

    What is pending is summed over the models and their versions.
    """
    pending = [one.value for one in samples(page, {PENDING}) if one.labels["model"] in models]
    told = {"pending_requests": int(sum(pending))} if pending else {}
    return {**told, **gpus_of(page, GPU_FIELDS)}
