"""Triton's API: the configuration and state of its models, over HTTP and over gRPC."""

import functools
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import grpc
from google.protobuf.json_format import MessageToDict
from tritonclient.grpc import service_pb2, service_pb2_grpc

from users.control import control_header
from users.endpoint import Endpoint, Payload
from users.errors import RequestError, TargetError, short, translated
from users.transport.admin_connection import GRPC_MARK, PATIENCE_S, AdminConnection, get
from users.transport.grpc import CHANNEL_OPTIONS, metadata_of, open_channel

DIRECT: tuple[Payload, ...] = ("fp32", "json")
"""Payloads that the model itself takes; before others stands a model that turns them into its own."""
PREFIX = "triton-grpc-protocol-"
"""What tritonserver looks for over gRPC before the name of what it demands."""


@contextmanager
def triton_stub(endpoint: Endpoint, control: bool = False) -> Iterator[Any]:
    """Triton's gRPC methods with our metadata, for `control` the secret, too. Calls raise grpc.RpcError."""
    secret = tuple(control_header(PREFIX).items()) if control else ()
    with open_channel(endpoint, (*CHANNEL_OPTIONS, *GRPC_MARK)) as channel:
        stub = vars(service_pb2_grpc.GRPCInferenceServiceStub(channel))
        metadata = (*(metadata_of(endpoint) or ()), *secret) or None
        yield SimpleNamespace(**{name: functools.partial(stub[name], metadata=metadata) for name in stub})


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
    with closing(AdminConnection.to(endpoint, PATIENCE_S)) as connection:
        read: Mapping[str, Any] = connection.get_json(f"/v2/models/{endpoint.model}/config")
        return read


def steps_of(config: Mapping[str, Any]) -> tuple[str, ...]:
    """The models that an ensemble is made of, the one that computes last; none of any other model."""
    steps = config.get("ensemble_scheduling", {}).get("step") or ()
    return tuple(str(step["model_name"]) for step in steps)


def steps_behind(endpoint: Endpoint) -> tuple[str, ...]:
    """The same of the endpoint's model, which is asked only where its payload is not the model's own.

    Raises as `model_config` does.
    """
    return () if endpoint.payload in DIRECT else steps_of(model_config(endpoint))


def queues_of(endpoint: Endpoint) -> tuple[str, ...]:
    """The models in whose queues a request waits; none where that cannot be read, and it never raises."""
    try:
        with translated():
            return steps_behind(endpoint) or (endpoint.model,)
    except RequestError:
        return ()


def is_ready(endpoint: Endpoint) -> bool:
    """Whether the endpoint's model answers requests. Raises TargetError where its server does not."""
    try:
        if endpoint.protocol == "grpc":
            with triton_stub(endpoint) as stub:
                request = service_pb2.ModelReadyRequest(name=endpoint.model)
                return bool(stub.ModelReady(request, timeout=PATIENCE_S).ready)
        return bool(get(endpoint, f"/v2/models/{endpoint.model}/ready").ok)
    except (grpc.RpcError, RequestError) as error:
        raise TargetError(short(error)) from error


def computing(endpoint: Endpoint) -> Mapping[str, Any]:
    """Triton's configuration of the model that computes: an ensemble's last, or the endpoint's own."""
    config = model_config(endpoint)
    steps = steps_of(config)
    return model_config(replace(endpoint, model=steps[-1])) if steps else config


def serving(config: Mapping[str, Any]) -> dict[str, Any]:
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
        "batching_delay_ns": delay_us * 1_000,
    }


def describe(endpoint: Endpoint) -> dict[str, Any]:
    """As Backend says, with what `python -m server up` and `export` write there."""
    config = computing(endpoint)
    given = config.get("parameters")
    parameters = given.items() if isinstance(given, dict) else ()
    told = {name: value.get("string_value") for name, value in parameters if isinstance(value, dict)}
    return {**told, "serving": serving(config)}
