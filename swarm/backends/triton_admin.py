"""Triton's configuration of a model, and which models a model is made of."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from typing import Any

from google.protobuf.json_format import MessageToDict
from tritonclient.grpc import service_pb2

from swarm.backends.admin_client import PATIENCE_S, Line, triton_stub
from users.endpoint import Endpoint
from users.errors import RequestError, translated

OF_THE_MODEL = ("fp32", "json")
"""Payloads that a model of ours takes itself; before others stand steps that turn them into its own."""


def plain(answer: Any) -> Mapping[str, Any]:
    """A protobuf message in the form of Triton's HTTP answers."""
    made: dict[str, Any] = MessageToDict(answer, preserving_proto_field_name=True)
    return made


def model_config(endpoint: Endpoint) -> Mapping[str, Any]:
    """Triton's configuration of the endpoint's model, in the form of its HTTP answers.

    Raises RequestError, grpc.RpcError, or what an answer in another form than expected leads to.
    """
    if endpoint.protocol == "grpc":
        request = service_pb2.ModelConfigRequest(name=endpoint.model)
        with triton_stub(endpoint) as stub:
            made: Mapping[str, Any] = plain(stub.ModelConfig(request, timeout=PATIENCE_S))["config"]
            return made
    with closing(Line.to(endpoint, PATIENCE_S)) as line:
        read: Mapping[str, Any] = line.get_json(f"/v2/models/{endpoint.model}/config")
        return read


def steps_of(config: Mapping[str, Any]) -> tuple[str, ...]:
    """The models that an ensemble is made of, the one that computes last; none of any other model."""
    steps = config.get("ensemble_scheduling", {}).get("step") or ()
    return tuple(str(step["model_name"]) for step in steps)


def steps_behind(endpoint: Endpoint) -> tuple[str, ...]:
    """The same of the endpoint's model, which is asked only where its payload is not the model's own.

    Raises as `model_config` does.
    """
    return () if endpoint.payload in OF_THE_MODEL else steps_of(model_config(endpoint))


def queues_of(endpoint: Endpoint) -> tuple[str, ...]:
    """The models in whose queues a request waits; none where that cannot be read, and it never raises."""
    try:
        with translated():
            return steps_behind(endpoint) or (endpoint.model,)
    except RequestError:
        return ()
