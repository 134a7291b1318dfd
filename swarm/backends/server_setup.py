"""What a server holds and how it is set up, by its own word; and Triton's model-control API to change it."""

import json
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace
from typing import Any

import grpc
from google.protobuf.json_format import MessageToDict
from tritonclient.grpc import service_pb2

from swarm.backends.admin_client import PATIENCE_S, AdminConnection, Told, get, triton_stub
from swarm.backends.registry import OF_THE_MODEL
from users.endpoint import Endpoint
from users.errors import RequestError, short, translated
from users.redact import quoted

LOAD_S = 900.0
"""How long a load may take: an engine that is built while it is loaded has been seen to need five minutes."""
READY_S, POLL_S = 30.0, 0.05
NOBODY = "inferswarm-asks-whether-models-can-be-loaded"
"""No model has this name, so that asking to load it changes nothing."""
FACTS = ("model", "weights", "emulated")
MOST = 120
"""Characters of each."""


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
    return () if endpoint.payload in OF_THE_MODEL else steps_of(model_config(endpoint))


def queues_of(endpoint: Endpoint) -> tuple[str, ...]:
    """The models in whose queues a request waits; none where that cannot be read, and it never raises."""
    try:
        with translated():
            return steps_behind(endpoint) or (endpoint.model,)
    except RequestError:
        return ()


class ModelControlError(Exception):
    """The server did not do it; the text is why, as part of a sentence."""


def inner(endpoint: Endpoint) -> Endpoint:
    """The endpoint of the model that computes: an ensemble's last step, or the endpoint's own model.

    Raises ModelControlError.
    """
    steps = steps_of(config_of(endpoint))
    return replace(endpoint, model=steps[-1]) if steps else endpoint


def config_of(endpoint: Endpoint) -> Mapping[str, Any]:
    """The configuration of the endpoint's own model. Raises ModelControlError."""
    try:
        with translated():
            return model_config(endpoint)
    except RequestError as error:
        raise ModelControlError(f"the configuration of {endpoint.model} cannot be read ({error})") from error


def refusal(endpoint: Endpoint) -> str:
    """Why the server would load no model, in its own words; empty where it would."""
    try:
        load(replace(endpoint, model=NOBODY))
    except ModelControlError as error:
        # One that is in explicit mode has looked for the model.
        return "" if NOBODY in str(error) else str(error)
    return ""


def load(endpoint: Endpoint, config: Mapping[str, Any] | None = None) -> None:
    """Load the endpoint's model, with this configuration if any, for as long as it takes.

    Raises ModelControlError.
    """
    given = {} if config is None else {"config": json.dumps(config)}
    try:
        if endpoint.protocol == "grpc":
            typed = {
                name: service_pb2.ModelRepositoryParameter(string_param=text) for name, text in given.items()
            }
            request = service_pb2.RepositoryModelLoadRequest(model_name=endpoint.model, parameters=typed)
            with triton_stub(endpoint, control=True) as stub:
                stub.RepositoryModelLoad(request, timeout=LOAD_S)
            return
        path = f"/v2/repository/models/{endpoint.model}/load"
        with closing(AdminConnection.to(endpoint, LOAD_S)) as connection:
            answer = connection.ask("POST", path, {"parameters": given}, control=True)
    except (grpc.RpcError, RequestError) as error:
        raise ModelControlError(short(error)) from error
    if not answer.ok:
        raise ModelControlError(said(answer))


def said(answer: Told) -> str:
    """What is wrong, by a server's answer over HTTP: Triton's `error`, or the status."""
    try:
        return str(answer.json()["error"])
    except (ValueError, KeyError, TypeError):
        return f"HTTP {answer.status}"


def wait_until_ready(endpoint: Endpoint, clock: Callable[[], float], sleep: Callable[[float], None]) -> None:
    """Return once the endpoint's model answers requests. Raises ModelControlError after `READY_S`."""
    over = clock() + READY_S
    while not is_ready(endpoint):
        if clock() > over:
            raise ModelControlError(f"{endpoint.model} is not ready {READY_S:g} s after it was loaded")
        sleep(POLL_S)


def is_ready(endpoint: Endpoint) -> bool:
    """Whether the endpoint's model answers requests. Raises ModelControlError where its server does not."""
    try:
        if endpoint.protocol == "grpc":
            with triton_stub(endpoint) as stub:
                request = service_pb2.ModelReadyRequest(name=endpoint.model)
                return bool(stub.ModelReady(request, timeout=PATIENCE_S).ready)
        return bool(get(endpoint, f"/v2/models/{endpoint.model}/ready").ok)
    except (grpc.RpcError, RequestError) as error:
        raise ModelControlError(short(error)) from error


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
        "batching_delay_ns": delay_us * 1_000,
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
