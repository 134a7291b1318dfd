"""What a server holds and how it is set up, by its own word: model, weights, instances, largest batch."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from typing import Any

from swarm.backends.admin_client import PATIENCE_S, AdminConnection
from swarm.backends.triton_admin import model_config, steps_of
from users.endpoint import Endpoint
from users.errors import RequestError, translated
from users.redact import quoted

NS_PER_US = 1_000
FACTS = ("model", "weights", "emulated")
MOST = 120
"""Characters of each."""


def read_serving(endpoint: Endpoint) -> dict[str, Any]:
    """The fields of a ledger's `serving` record, or `{"error": sentence}`; it never raises."""
    try:
        with translated():
            return triton_serving(computing(endpoint)) if endpoint.model else service_serving(endpoint)
    except RequestError as error:
        return {"error": f"the configuration of {endpoint.name} cannot be read ({error.kind})"}


def computing(endpoint: Endpoint) -> Mapping[str, Any]:
    """Triton's configuration of the model that computes: an ensemble's last, or the endpoint's own."""
    config = model_config(endpoint)
    steps = steps_of(config)
    return model_config(replace(endpoint, model=steps[-1])) if steps else config


def triton_serving(config: Mapping[str, Any]) -> dict[str, Any]:
    """From a model's configuration; protobuf's JSON writes 64-bit numbers as text and leaves zeros out."""
    groups = config.get("instance_group", ())
    # Triton makes `count` instances on each GPU of a group.
    instances = sum(int(group.get("count", 1)) * max(1, len(group.get("gpus", ()))) for group in groups)
    batcher = config.get("dynamic_batching")
    delay_us = int((batcher or {}).get("max_queue_delay_microseconds", 0))
    return {
        "instances": instances or None,
        "max_batch": int(config.get("max_batch_size", 0)),
        "batching": batcher is not None,
        "batching_delay_ns": delay_us * NS_PER_US,
    }


def service_serving(endpoint: Endpoint) -> dict[str, Any]:
    """From the PyTorch service's own word; that one of another make does not tell is no error."""
    instances = of_service(endpoint).get("instances")
    alone = {"batching": False, "batching_delay_ns": 0} if instances else {}
    return {"instances": instances, "max_batch": None, "batching": None, "batching_delay_ns": None, **alone}


def of_service(endpoint: Endpoint) -> Mapping[str, Any]:
    """What the PyTorch service or a gateway says of itself by `/readyz`; nothing of one of another make."""
    with closing(AdminConnection.to(endpoint, PATIENCE_S)) as connection:
        try:
            told = connection.get_json("/readyz")
        except RequestError:
            return {}
    return told if isinstance(told, dict) else {}


def stated(endpoint: Endpoint) -> dict[str, str]:
    """Those of `FACTS` that the server tells; nothing of one of another make, and it never raises."""
    try:
        with translated():
            told = of_triton(computing(endpoint)) if endpoint.model else of_service(endpoint)
            found = {name: told[name] for name in FACTS if isinstance(told.get(name), str)}
    except RequestError:
        return {}
    return {name: text for name, value in found.items() if (text := quoted(value, MOST))}


def of_triton(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The parameters that `python -m server up` and `export` write into a model's configuration."""
    return {name: value["string_value"] for name, value in config.get("parameters", {}).items()}
