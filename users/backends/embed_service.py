"""The PyTorch service, and the same before a Triton: base64 JPEG in JSON over HTTP, `POST /embed`."""

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any

from users.backends.base import Backend, Facts
from users.backends.presets import DIMENSION, SPACE
from users.contract import Contract, Input
from users.endpoint import Endpoint
from users.errors import RequestError, TargetError
from users.metrics import gpus_of, identity, samples
from users.refusals import explain_refusal
from users.transport.admin_connection import AdminConnection, Read, Told, get

HTTP_PORT = "give the service's HTTP port"
NOT_ITS_OWN = (401, 403, 429, 502, 503, 504)
"""Statuses that a service without a /readyz does not answer with."""
OURS = "weights_sha256"
"""A text that only this project's services answer with."""
SECONDS_OF_PART = {
    "inferswarm_decode_seconds_sum": "decode_ns",
    "inferswarm_preprocess_seconds_sum": "preprocess_ns",
    "inferswarm_queue_seconds_sum": "queue_ns",
    "inferswarm_compute_seconds_sum": "compute_ns",
    "inferswarm_upstream_seconds_sum": "upstream_ns",
}
CONTRACT = Contract(
    (Input("images", "BYTES", (1,), "jpeg"),), output="embeddings", dimension=DIMENSION, unit=True
)
STARTED = "inferswarm_started_seconds"
"""When a service's process started, with its host as label: no two processes have both in common."""
COUNTS = {
    "inferswarm_requests_total": "requests",
    "inferswarm_failures_total": "failures",
    "inferswarm_images_total": "images",
    "inferswarm_in_flight": "in_flight",
    "inferswarm_shed_total": "shed",
}
GPU_FIELDS = {
    "inferswarm_gpu_utilisation_pct": ("util_pct", 1),
    "inferswarm_gpu_memory_used_bytes": ("memory_bytes", 1),
    "inferswarm_gpu_memory_total_bytes": ("memory_total_bytes", 1),
    "inferswarm_gpu_power_w": ("power_w", 1),
    "inferswarm_gpu_power_limit_w": ("power_limit_w", 1),
    "inferswarm_gpu_energy_j": ("energy_j", 1),
    "inferswarm_gpu_sm_clock_mhz": ("sm_clock_mhz", 1),
    "inferswarm_gpu_max_sm_clock_mhz": ("max_sm_clock_mhz", 1),
    "inferswarm_gpu_throttle_reasons": ("throttle_reasons", 1),
    "inferswarm_gpu_serves": ("serves", 1),
}

CPU_FIELDS: dict[str, tuple[str, int]] = {
    "inferswarm_cpu_throttled_seconds_total": ("throttled_ns", 10**9),
    "inferswarm_cpu_used_up_seconds_total": ("used_up_ns", 10**9),
    "inferswarm_cpu_wanted_seconds_total": ("wanted_ns", 10**9),
    "inferswarm_cpu_stolen_seconds_total": ("stolen_ns", 10**9),
}
CPU_QUOTA = "inferswarm_cpu_quota_cores"


def check(endpoint: Endpoint) -> None:
    """Speaks HTTP; and where it has a `/readyz`, says it is ready."""
    try:
        reply = get(endpoint, "/readyz")
    except RequestError as error:
        raise TargetError(explain_refusal(endpoint, "GET /readyz", error, HTTP_PORT)) from error
    if reply.error is not None and reply.status in NOT_ITS_OWN:
        raise TargetError(explain_refusal(endpoint, "GET /readyz", reply.error, HTTP_PORT))
    check_role(endpoint, said(reply))


def said(reply: Told) -> Mapping[str, Any]:
    """What a service says of itself; nothing where it is of another make."""
    try:
        told = reply.json()
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {}


def check_role(endpoint: Endpoint, told: Mapping[str, Any]) -> None:
    """A gateway is not measured as a service that computes, nor the other way round. Raises TargetError."""
    if OURS in told and endpoint.backend == GATEWAY.name and "upstream" not in told:
        raise TargetError("is not a gateway, but computes itself; give a gateway's URL, or --pytorch-url")
    if OURS in told and endpoint.backend == PYTORCH.name and "upstream" in told:
        upstream = f"{told['upstream']['model']} at {told['upstream']['address']}"
        raise TargetError(f"is a gateway to {upstream}; give the service's URL, or --gateway-url")


def describe(endpoint: Endpoint) -> Mapping[str, Any]:
    """By its own `/readyz`; nothing of one of another make."""
    try:
        told = said(get(endpoint, "/readyz"))
    except RequestError:
        told = {}
    instances = told.get("instances")
    alone = {"batching": False, "batching_delay_ns": 0} if instances else {}
    unknown = dict.fromkeys(("max_batch", "batching", "batching_delay_ns"))
    return {**told, "serving": {"instances": instances, **unknown, **alone}}


@contextmanager
def counters(endpoint: Endpoint, timeout_s: float) -> Iterator[Read]:
    """By its page of metrics: it counts what it embeds, and its floor embeds nothing."""
    with closing(AdminConnection.to(endpoint, timeout_s)) as connection:
        none: dict[str, Any] = {"server": {}} if endpoint.floor_of else {}
        yield lambda: service_reading(connection.get("/metrics")) | none


def service_reading(page: str) -> dict[str, Any]:
    """Counters and GPUs from a service's `/metrics`; GPUs are left out where it tells of none."""
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
    return {"server": counters, **identity(page, STARTED), **cpu_of(page), **gpus_of(page, GPU_FIELDS)}


def cpu_of(page: str) -> dict[str, Any]:
    """`{"server_cpu": …}`: what was taken from the service, and its quota in cores; nothing where untold."""
    found: dict[str, Any] = {}
    for sample in samples(page, {*CPU_FIELDS, CPU_QUOTA}):
        if sample.name == CPU_QUOTA:
            found["quota"] = sample.value
        else:
            field, factor = CPU_FIELDS[sample.name]
            found[field] = round(sample.value * factor)
    return {"server_cpu": found} if found else {}


def service(name: str, about: str, facts: Facts) -> Backend:
    """One that is asked as the service is; `about` says which, in the help of its URL."""
    return Backend(
        name=name,
        ways={("jpeg", "http"): ("embed", CONTRACT)},
        space=SPACE,
        facts=facts,
        check=check,
        describe=describe,
        counters=counters,
        urls={"http": about},
        has_floor=True,
        embedded=name,
        takes_token=True,
    )


PYTORCH = service("pytorch", "the PyTorch service, e.g. http://gpu-host:8002, or https:// for TLS", Facts())
GATEWAY = service(
    "gateway", "a gateway that takes JPEG before a Triton, e.g. http://gpu-host:8040", Facts(passes_to="onnx")
)
BACKENDS = (PYTORCH, GATEWAY)
