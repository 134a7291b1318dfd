"""Triton's Prometheus metrics: how many requests wait for a model, and what its GPUs do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import Any
from urllib.parse import urlsplit

from swarm.backends.admin_client import PATIENCE_S, Line, Read, samples
from swarm.errors import UsageError
from swarm.options.addresses import check_secrets, place_of
from swarm.options.table import flag
from swarm.sampling.gpus import gpu_records
from swarm.targets.targets import security_for
from users.errors import RequestError, translated
from users.tls import OPEN, Security

PENDING = "nv_inference_pending_request_count"
GPU_FIELDS = {
    "nv_gpu_utilization": ("util_pct", 100),
    "nv_gpu_memory_used_bytes": ("memory_bytes", 1),
    "nv_gpu_power_usage": ("power_w", 1),
    "nv_energy_consumption": ("energy_j", 1),
}
"""Our field, and how many of its units make one of Triton's."""
OPTIONS = {"onnx": "onnx_metrics_url", "trt": "trt_metrics_url"}


def metrics_addresses(urls: Mapping[str, str], ready: Mapping[str, Any]) -> dict[str, str]:
    """`http://host:port/metrics` by backend, from the options' URLs and the embedded servers' `ready` event.

    Raises UsageError on an unreadable URL.
    """
    servers = ready.get("endpoints", {})
    found = {backend: server["metrics"] for backend, server in servers.items() if "metrics" in server}
    named = {backend: option for backend, option in OPTIONS.items() if urls.get(option)}
    return found | {backend: metrics_url(flag(option), urls[option]) for backend, option in named.items()}


def metrics_url(option: str, url: str) -> str:
    """The whole URL of one that may lack its scheme and its path. Raises UsageError.

    >>> metrics_url("--onnx-metrics-url", "gpu-host:8012")
    'http://gpu-host:8012/metrics'
    """
    check_secrets(option, url)
    scheme, _, rest = url.rpartition("://")
    place, _, path = rest.partition("/")
    try:
        if scheme not in ("", "http", "https"):
            raise UsageError
        return f"{scheme or 'http'}://{place_of(option, place).address}/{path or 'metrics'}"
    except UsageError:
        raise UsageError(
            f"{option} {url!r}: give host:port or http://host:port/metrics, https for TLS"
        ) from None


def check_metrics(urls: Mapping[str, str], security: Security = OPEN) -> None:
    """Can the metrics that the options name be read? Raises UsageError."""
    for backend, option in OPTIONS.items():
        if urls.get(option):
            url = metrics_url(flag(option), urls[option])
            try:
                secured = security_for(backend, security)
                with translated(), metrics_reader(url, (), PATIENCE_S, secured) as read:
                    read()
            except RequestError as error:
                raise UsageError(f"{flag(option)} {url}: cannot be read ({error})") from error


@contextmanager
def metrics_reader(
    url: str, models: Sequence[str], timeout_s: float, security: Security = OPEN
) -> Iterator[Read]:
    """Reads `parse` of the page at `url` over one connection. Readings raise RequestError or ValueError."""
    parts = urlsplit(url)
    with closing(Line(parts.netloc, timeout_s, parts.scheme == "https", security)) as line:
        yield lambda: parse(line.get(parts.path), models)


def parse(page: str, models: Sequence[str]) -> dict[str, Any]:
    """`{"pending_requests": n, "gpus": […]}`, either left out where the page does not tell.

    What is pending is summed over the models and their versions.
    """
    pending: list[float] = []
    gpus: list[tuple[str, str, float]] = []
    for sample in samples(page, {PENDING, *GPU_FIELDS}):
        if sample.name in GPU_FIELDS:
            field, factor = GPU_FIELDS[sample.name]
            gpus.append((sample.labels["gpu_uuid"], field, sample.value * factor))
        elif sample.labels["model"] in models:
            pending.append(sample.value)
    found: dict[str, Any] = {"pending_requests": int(sum(pending))} if pending else {}
    records = gpu_records(gpus)
    return found | ({"gpus": records} if records else {})
