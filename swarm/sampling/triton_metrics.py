"""Triton's Prometheus metrics: how many requests wait for a model, and what its GPUs do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any
from urllib.parse import urlsplit

from swarm.backends.admin_client import AdminConnection, Read, samples
from swarm.backends.statistics import gpu_records
from users.tls import OPEN, Security

PENDING = "nv_inference_pending_request_count"
GPU_FIELDS = {
    "nv_gpu_utilization": ("util_pct", 100),
    "nv_gpu_memory_used_bytes": ("memory_bytes", 1),
    "nv_gpu_power_usage": ("power_w", 1),
    "nv_energy_consumption": ("energy_j", 1),
}
"""Our field, and how many of its units make one of Triton's."""


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
