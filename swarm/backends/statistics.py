"""The servers' own counters and metrics: just before and after each measure phase, and every second between.

Triton's own counters of an ensemble say little: its `queue` leaves out the waits for its steps, its
executions and batch sizes are the requests, not what the model that computes joined them to, and a failure is
counted twice (server 2.51). So they are put together from its own and those of its steps.
"""

import functools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import Any
from urllib.parse import urlsplit

from tritonclient.grpc import service_pb2

from swarm.backends.admin_client import PATIENCE_S, AdminConnection, Read, samples, triton_stub
from swarm.backends.server_setup import plain, steps_behind
from users.endpoint import Endpoint
from users.errors import RequestError, translated
from users.tls import OPEN, Security

Ask = Callable[[str], Mapping[str, Any]]
"""Triton's statistics of the model of a name, or of all models where it is empty."""
SETTLE_S, SETTLE_TRIES = 0.05, 20
SECONDS_OF_PART = {
    "inferswarm_decode_seconds_sum": "decode_ns",
    "inferswarm_preprocess_seconds_sum": "preprocess_ns",
    "inferswarm_queue_seconds_sum": "queue_ns",
    "inferswarm_compute_seconds_sum": "compute_ns",
    "inferswarm_upstream_seconds_sum": "upstream_ns",
}
COUNTS = {
    "inferswarm_requests_total": "requests",
    "inferswarm_failures_total": "failures",
    "inferswarm_images_total": "images",
    "inferswarm_in_flight": "in_flight",
}
GPU_FIELDS = {
    "inferswarm_gpu_utilisation_pct": ("util_pct", 1),
    "inferswarm_gpu_memory_used_bytes": ("memory_bytes", 1),
    "inferswarm_gpu_power_w": ("power_w", 1),
    "inferswarm_gpu_sm_clock_mhz": ("sm_clock_mhz", 1),
    "nv_gpu_utilization": ("util_pct", 100),
    "nv_gpu_memory_used_bytes": ("memory_bytes", 1),
    "nv_gpu_power_usage": ("power_w", 1),
    "nv_energy_consumption": ("energy_j", 1),
}
"""Of the PyTorch service and of Triton: our field, and how many of its units make one of theirs."""
Count = Callable[[Mapping[str, Any]], dict[str, Any]]
"""The counters of one model from its entry in `ModelStatistics`."""
BEFORE = {"jpeg": "decode_ns"}
"""What the steps before the model do, by payload; to resize, crop and scale counts as decoding there."""
OF_ALL_STEPS = ("queue_ns", "input_ns", "output_ns")
PENDING = "nv_inference_pending_request_count"


def read_counters(endpoint: Endpoint) -> dict[str, Any]:
    """`{"counters": {…}}`, cumulative since the server's start; it never raises.

    Where they cannot be read, `{"error": sentence, "error_kind": …}`: a server that is gone is told from one
    that does not say.
    """
    if not (endpoint.model or endpoint.computes):
        return {"counters": {}}  # the service counts what it embeds, and its floor embeds nothing
    try:
        with translated(), counter_reader(endpoint, PATIENCE_S, batches=True) as read:
            return {"counters": read()["server"]}
    except RequestError as error:
        text = f"the counters of {endpoint.name} cannot be read ({error.kind})"
        return {"error": text, "error_kind": str(error.kind)}


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
        with triton_stub(endpoint) as stub:
            yield triton_reader(endpoint, lambda name: grpc_statistics(stub, name, timeout_s), batches)
        return
    with closing(AdminConnection.to(endpoint, timeout_s)) as connection:
        if endpoint.model:
            yield triton_reader(endpoint, lambda name: http_statistics(connection, name), batches)
        else:
            yield lambda: service_reading(connection.get("/metrics"))


def triton_reader(endpoint: Endpoint, ask: Ask, batches: bool) -> Read:
    """Reads the counters of the endpoint's model, and of an ensemble's steps, found out at the first time."""
    steps_once = functools.cache(lambda: steps_behind(endpoint))

    def count(stats: Mapping[str, Any]) -> dict[str, Any]:
        return triton_counters(stats) | ({"batches": triton_batches(stats)} if batches else {})

    def read() -> dict[str, Any]:
        steps = steps_once()
        if not steps:
            return {"server": count(ask(endpoint.model)["model_stats"][0])}
        return {"server": ensemble_counters(ask(""), endpoint.model, steps, endpoint.payload, count)}

    return read


def grpc_statistics(stub: Any, name: str, timeout_s: float) -> Mapping[str, Any]:
    """Triton's statistics of one model, or of all where `name` is empty, over gRPC."""
    return plain(stub.ModelStatistics(service_pb2.ModelStatisticsRequest(name=name), timeout=timeout_s))


def http_statistics(connection: AdminConnection, name: str) -> Mapping[str, Any]:
    """The same over HTTP."""
    path = f"/v2/models/{name}/stats" if name else "/v2/models/stats"
    answer: Mapping[str, Any] = connection.get_json(path)
    return answer


def service_reading(page: str) -> dict[str, Any]:
    """Counters and GPUs from the PyTorch service's `/metrics`; GPUs are left out where it tells of none."""
    counters: dict[str, int] = {}
    for sample in samples(page, {*SECONDS_OF_PART, *COUNTS}):
        if sample.name in SECONDS_OF_PART:
            counters[SECONDS_OF_PART[sample.name]] = round(sample.value * 1e9)
        else:
            counters[COUNTS[sample.name]] = int(sample.value)
    # The service counts a request when it comes, and Triton when it has been answered, which is what we keep.
    # Those that come while the page is written are in one of the two figures at most.
    counters["requests"] = max(0, counters["requests"] - counters.pop("in_flight", 0))
    counters["successes"] = max(0, counters["requests"] - counters.pop("failures"))
    if "upstream_ns" not in counters:  # whose executions only the upstream counts
        counters["executions"] = counters["successes"]
    return {"server": counters, **gpus_of(page)}


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
    answer: Mapping[str, Any], model: str, steps: Sequence[str], payload: str, count: Count
) -> dict[str, Any]:
    """Counters of the ensemble `model`, from the statistics of all models of its server.

    The first step sees each request once, whatever comes of it. Others' requests to the model that computes
    are counted with them: they share its queue and its batches, and must not go unnoticed. Raises KeyError.
    """
    counted = {stats["name"]: count(stats) for stats in answer["model_stats"]}
    whole, first, inner = counted[model], counted[steps[0]], counted[steps[-1]]
    return {
        **inner,
        "requests": first["requests"] + inner["successes"] - whole["successes"],
        **{part: sum(counted[step][part] for step in steps) for part in OF_ALL_STEPS},
        BEFORE.get(payload, "preprocess_ns"): sum(counted[step]["compute_ns"] for step in steps[:-1]),
    }


def gpu_records(told: Iterable[tuple[str, str, float]]) -> list[dict[str, Any]]:
    """One record a GPU from (id, field, value); a value that is no number is left out.

    >>> gpu_records([("a", "power_w", 70.5), ("a", "memory_bytes", 2.0), ("b", "power_w", math.nan)])
    [{'id': 'a', 'power_w': 70.5, 'memory_bytes': 2}]
    """
    found: dict[str, dict[str, Any]] = {}
    for gpu, field, value in told:
        if math.isfinite(value):
            kept = int(value) if field == "memory_bytes" else round(float(value), 3)
            found.setdefault(gpu, {"id": gpu})[field] = kept
    return list(found.values())


@contextmanager
def metrics_reader(
    url: str, models: Sequence[str], timeout_s: float, security: Security = OPEN
) -> Iterator[Read]:
    """Reads `parse` of the page at `url` over one connection. Readings raise RequestError or ValueError."""
    parts = urlsplit(url)
    with closing(AdminConnection(parts.netloc, timeout_s, parts.scheme == "https", security)) as connection:
        yield lambda: parse(connection.get(parts.path), models)


def parse(page: str, models: Sequence[str]) -> dict[str, Any]:
    """`{"pending_requests": n, "gpus": […]}`, either left out where the page does not tell.

    What is pending is summed over the models and their versions.
    """
    pending = [one.value for one in samples(page, {PENDING}) if one.labels["model"] in models]
    return {**({"pending_requests": int(sum(pending))} if pending else {}), **gpus_of(page)}


def gpus_of(page: str) -> dict[str, Any]:
    """`{"gpus": […]}`, left out where a page of metrics tells of none."""
    told = []
    for sample in samples(page, GPU_FIELDS):
        field, factor = GPU_FIELDS[sample.name]
        told.append((sample.labels.get("gpu") or sample.labels["gpu_uuid"], field, sample.value * factor))
    found = gpu_records(told)
    return {"gpus": found} if found else {}
