"""Triton's API, over HTTP or gRPC as the endpoint is asked: what its models are, and which there are."""

import functools
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import grpc
from google.protobuf.json_format import MessageToDict
from tritonclient.grpc import service_pb2, service_pb2_grpc

from users.codecs.v2_http import model_path
from users.endpoint import Endpoint, Payload
from users.errors import ErrorKind, RequestError, TargetError, request_error, translated
from users.redact import quoted
from users.refusals import LONGEST_BACKOFF_S, ask_again, explain_refusal, wait_for
from users.tls import control_header
from users.transport.admin_connection import GRPC_MARK, PATIENCE_S, AdminConnection
from users.transport.grpc_library import CHANNEL_OPTIONS, metadata_of, open_channel

DIRECT: tuple[Payload, ...] = ("fp32", "json")
"""Payloads that the model itself takes; the others need a model in front that converts them."""
PREFIX = "triton-grpc-protocol-"
"""The prefix that tritonserver expects over gRPC before the name of the required key."""
PORTS = {"http": "HTTP", "grpc": "gRPC"}
QUESTIONS = {"http": "GET /v2", "grpc": "ServerMetadata"}
UNREADY, UNREADY_CODES = (400, 404), ("INVALID_ARGUMENT", "NOT_FOUND", "UNAVAILABLE")
"""How servers say that a model is not ready, by protocol."""
READY, LOADING = "READY", "LOADING"
"""States of a model in Triton's index of its repository."""
TENSORS = "triton_repo/tensors.py"
"""The module that every model.py of triton_repo imports."""
STEPS = {"jpeg": "decode_jpeg", "uint8": "normalise_uint8"}
"""The step in front of a Triton's model, by payload."""
STEPS_KNOWN = "steps"
"""The key of an endpoint's settings for the steps of its model's ensemble, read before any load."""
BESIDE = ("python", "dali")
"""Backends of Triton that prepare the input of others."""
REGIONS, REPOSITORY = "/v2/systemsharedmemory", "/v2/repository"
Answer = Mapping[str, Any]
"""An answer in its HTTP form."""


class OverHttp:
    """Raises RequestError, grpc.RpcError, or what an answer in another form than expected leads to."""

    def __init__(self, connection: AdminConnection) -> None:
        self._connection = connection

    def server(self) -> Answer:
        """Its name, version and extensions."""
        told: Answer = self._connection.get_json("/v2")
        return told

    def is_triton(self) -> bool:
        """Whether it says so."""
        told = self.server()
        extensions = told.get("extensions") if isinstance(told, dict) else None
        if isinstance(extensions, list) and "binary_tensor_data" in extensions:
            return True
        raise RequestError(ErrorKind.BAD_REPLY, f"HTTP 200 {quoted(json.dumps(told))}", "200")

    def unready(self, model: str, version: str = "") -> str:
        """How it says that a model answers no requests; empty where it does."""
        told = self._connection.ask("GET", f"{model_path(model, version)}/ready")
        if told.error is not None and told.status not in UNREADY:
            raise told.error
        return told.error.whole if told.error else ""

    def index(self) -> Sequence[Answer]:
        """The name, version and state of each model in its repository."""
        rows: Sequence[Answer] = self._asked("POST", "/v2/repository/index", {})
        return rows

    def metadata(self, model: str, version: str = "") -> Answer:
        """What a model takes and gives."""
        told: Answer = self._connection.get_json(model_path(model, version))
        return told

    def config(self, model: str, version: str = "") -> Answer:
        """How a model is set up."""
        told: Answer = self._connection.get_json(f"{model_path(model, version)}/config")
        return told

    def statistics(self, model: str = "") -> Answer:
        """What was counted of a model, or of each."""
        told: Answer = self._connection.get_json(f"{model_path(model) if model else '/v2/models'}/stats")
        return told

    def load(self, model: str, given: Mapping[str, str]) -> None:
        """Load a model with what is given. Raises TargetError with the server's words."""
        self._do(f"{model_path(model).replace('/v2', REPOSITORY, 1)}/load", {"parameters": given})

    def regions(self) -> list[str]:
        """The names of the regions of system shared memory that it knows. Raises TargetError."""
        told = self._asked("GET", f"{REGIONS}/status")
        return [str(one["name"]) for one in told]

    def register(self, name: str, key: str, size: int) -> None:
        """Have it map a region of that key and size. Raises TargetError with the server's words."""
        self._do(f"{REGIONS}/region/{name}/register", {"key": key, "offset": 0, "byte_size": size})

    def unregister(self, name: str) -> None:
        """Have it forget a region, which need not be there. Raises TargetError."""
        self._do(f"{REGIONS}/region/{name}/unregister", {})

    def _do(self, path: str, given: Mapping[str, Any]) -> None:
        self._asked("POST", path, given)

    def _asked(self, method: str, path: str, given: Mapping[str, Any] | None = None) -> Any:
        """The answer to a request with the secret; nothing where it has none. Raises TargetError."""
        answer = self._connection.ask(method, path, given, control=True)
        if not answer.ok:
            try:
                why = str(answer.json()["error"])
            except (ValueError, KeyError, TypeError):
                why = f"HTTP {answer.status} {answer.text}"
            raise TargetError(quoted(why))
        return answer.json() if answer.text else None


class OverGrpc:
    """The same over gRPC."""

    def __init__(self, stub: Any, timeout_s: float, address: str) -> None:
        self._stub, self._timeout_s, self._address = stub, timeout_s, address

    def _ask(self, method: str, **fields: Any) -> Answer:
        request = getattr(service_pb2, f"{method}Request")(**fields)
        ask = functools.partial(getattr(self._stub, method), request, timeout=self._timeout_s)
        answer = ask_again(self._address, ask)
        told: Answer = MessageToDict(answer, preserving_proto_field_name=True)
        return told

    def server(self) -> Answer:
        return self._ask("ServerMetadata")

    def is_triton(self) -> bool:
        return bool(self.server())

    def unready(self, model: str, version: str = "") -> str:
        try:
            if self._ask("ModelReady", name=model, version=version).get("ready"):
                return ""
            self.metadata(model, version)  # which says why
        except grpc.RpcError as error:
            refusal = request_error(error)
            if refusal.code in UNREADY_CODES:
                return refusal.whole
            raise
        return "its ModelReady says no"

    def index(self) -> Sequence[Answer]:
        rows: Sequence[Answer] = self._ask("RepositoryIndex").get("models", ())
        return rows

    def metadata(self, model: str, version: str = "") -> Answer:
        return self._ask("ModelMetadata", name=model, version=version)

    def config(self, model: str, version: str = "") -> Answer:
        told: Answer = self._ask("ModelConfig", name=model, version=version)["config"]
        return told

    def statistics(self, model: str = "") -> Answer:
        return self._ask("ModelStatistics", name=model)

    def load(self, model: str, given: Mapping[str, str]) -> None:
        typed = {
            name: service_pb2.ModelRepositoryParameter(string_param=text) for name, text in given.items()
        }
        self._ask("RepositoryModelLoad", model_name=model, parameters=typed)

    def regions(self) -> list[str]:
        return list(self._ask("SystemSharedMemoryStatus").get("regions", ()))

    def register(self, name: str, key: str, size: int) -> None:
        self._ask("SystemSharedMemoryRegister", name=name, key=key, byte_size=size)

    def unregister(self, name: str) -> None:
        self._ask("SystemSharedMemoryUnregister", name=name)


@contextmanager
def open_api(endpoint: Endpoint, timeout_s: float, control: bool = False) -> Iterator[OverHttp | OverGrpc]:
    """The API of the endpoint's server, for `control` with the secret; `timeout_s` is for each answer."""
    if endpoint.protocol == "grpc":
        with triton_stub(endpoint, control) as stub:
            yield OverGrpc(stub, timeout_s, endpoint.address)
    else:
        with closing(AdminConnection.to(endpoint, timeout_s)) as connection:
            yield OverHttp(connection)


@contextmanager
def triton_stub(endpoint: Endpoint, control: bool = False) -> Iterator[Any]:
    """Triton's gRPC methods with our metadata, for `control` the secret, too. Calls raise grpc.RpcError."""
    secret = tuple(control_header(PREFIX).items()) if control else ()
    with open_channel(endpoint, (*CHANNEL_OPTIONS, *GRPC_MARK)) as channel:
        stub = vars(service_pb2_grpc.GRPCInferenceServiceStub(channel))
        metadata = (*(metadata_of(endpoint) or ()), *secret) or None
        yield SimpleNamespace(**{name: functools.partial(stub[name], metadata=metadata) for name in stub})


def model_config(endpoint: Endpoint) -> Answer:
    """The configuration of the endpoint's model. Raises as `OverHttp` does."""
    with open_api(endpoint, PATIENCE_S) as api:
        return api.config(endpoint.model, endpoint.version)


def steps_of(config: Answer) -> tuple[str, ...]:
    """The models that an ensemble is made of, in its own order; none of any other model."""
    steps = config.get("ensemble_scheduling", {}).get("step") or ()
    return tuple(str(step["model_name"]) for step in steps)


def steps_behind(endpoint: Endpoint) -> tuple[str, ...]:
    """The same of the endpoint's model, the one that computes last.

    Of a model that was discovered they are known; a preset's is asked only where its payload is not its own.
    """
    if STEPS_KNOWN in endpoint.settings:
        return tuple(endpoint.settings[STEPS_KNOWN])
    return () if endpoint.payload in DIRECT else steps_of(model_config(endpoint))


def inner_last(endpoint: Endpoint, steps: Sequence[str]) -> tuple[str, ...]:
    """The steps, behind the others the one that computes: the last that does more than prepare, or the last.

    Raises as `OverHttp` does.
    """
    for step in reversed(steps):
        config = model_config(replace(endpoint, model=step, version=""))
        if config.get("backend") not in BESIDE and config.get("platform") != "ensemble":
            return (*(other for other in steps if other != step), step)
    return tuple(steps)


def queues_of(endpoint: Endpoint) -> tuple[str, ...]:
    """The models in whose queues a request waits; none where that cannot be read, and it never raises."""
    try:
        with translated():
            return steps_behind(endpoint) or (endpoint.model,)
    except RequestError:
        return ()


def describe(endpoint: Endpoint) -> dict[str, Any]:
    """As Backend says, of the model that computes, with what `python -m server` writes into it."""
    config = model_config(endpoint)
    instances: dict[str, int | None] = {}
    if steps := steps_of(config):
        steps = steps_behind(endpoint) or steps
        config = model_config(replace(endpoint, model=steps[-1], version=""))
        instances = {step: instances_of(endpoint, step) for step in steps[:-1]}
        instances[steps[-1]] = serving(config)["instances"]
    given = config.get("parameters")
    parameters = given.items() if isinstance(given, dict) else ()
    told = {name: value.get("string_value") for name, value in parameters if isinstance(value, dict)}
    told |= {"server_version": server_version(endpoint)}
    return {**told, "serving": serving(config) | ({"steps": instances} if instances else {})}


def server_version(endpoint: Endpoint) -> str | None:
    """As the server tells it; None where it does not, and it never raises."""
    try:
        with translated(), open_api(endpoint, PATIENCE_S) as api:
            found: str | None = api.server().get("version")
    except RequestError:
        return None
    return found


def instances_of(endpoint: Endpoint, step: str) -> int | None:
    """How many instances a step of the endpoint's ensemble has; None where that cannot be read."""
    try:
        with translated():
            found: int | None = serving(model_config(replace(endpoint, model=step, version="")))["instances"]
    except RequestError:
        return None
    return found


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


def check(endpoint: Endpoint, fix: str = "") -> None:
    """A Triton, and with the model ready; `fix`: what to do where the backend's own is not there."""
    other = f", or v2+{endpoint.protocol}:// for another server" if endpoint.settings else ""
    foreign = f"if it is no Triton, give Triton's {PORTS[endpoint.protocol]} port{other}"
    question, backoff_s = QUESTIONS[endpoint.protocol], LONGEST_BACKOFF_S
    with open_api(endpoint, PATIENCE_S) as api:
        try:
            api.is_triton()
            question = f"whether {endpoint.model!r} is ready"
            while why := api.unready(endpoint.model, endpoint.version):
                states = states_of(api)
                if LOADING not in (states or {}).get(endpoint.model, ""):
                    raise TargetError(missing_model(endpoint, why, states, fix))
                loading = RequestError(ErrorKind.SERVER_ERROR, f"{endpoint.model} is loading")
                if not wait_for(endpoint.address, loading, backoff_s):
                    raise TargetError(f"is still loading the model {endpoint.model!r} ({why}); wait for it")
        except (RequestError, grpc.RpcError) as error:
            raise TargetError(explain_refusal(endpoint, question, error, foreign)) from error


def states_of(api: OverHttp | OverGrpc) -> Mapping[str, str] | None:
    """The states of its models by their names, such as `LOADING`; None where it does not tell."""
    try:
        told = api.index()
    except (RequestError, TargetError, grpc.RpcError):
        try:
            # Its repository may be for those who may load models.
            told = [{"name": row["name"], "state": READY} for row in api.statistics().get("model_stats", ())]
        except (RequestError, grpc.RpcError):
            return None
    each = ((row["name"], f"{row.get('state', '')} {row.get('reason', '')}".strip()) for row in told)
    return {name: quoted(state) for name, state in each if state}


def missing_model(endpoint: Endpoint, why: str, states: Mapping[str, str] | None, fix: str = "") -> str:
    """The sentence for a Triton whose model is not ready, for which it gives `why`; `states` as it tells."""
    if step := STEPS.get(endpoint.payload) if not endpoint.settings else None:
        fix = (
            f"copy {step} and {endpoint.payload} of triton_repo/payloads into its repository, {TENSORS} "
            f"into the folder 1 of the former, the latter as {endpoint.model} with an empty folder 1, "
            "or exclude the endpoint with --endpoints"
        )
    elif endpoint.floor_of or not fix:
        own = f"triton_repo/{endpoint.behind}/{endpoint.model}"
        fix = f"copy {own} into its repository, and {TENSORS} into its folder 1"
        fix += ", or leave out --floor" if endpoint.floor_of else ""
    if state := (states or {}).get(endpoint.model, ""):
        return f"its model {endpoint.model!r} is not ready ({state}); look at the server's log"
    ready = sorted(name for name, state in (states or {}).items() if state.startswith(READY))
    held = f"it has {', '.join(ready)}" if ready else "it has none"
    held = "it does not list its models" if states is None else held
    return f"has no model {endpoint.model!r} that is ready ({why}; {held}); {fix}"
