"""Is it a Triton, and is the endpoint's model ready there?"""

from collections.abc import Collection

import grpc
from tritonclient.grpc import service_pb2

from users.endpoint import Endpoint
from users.errors import RequestError, TargetError
from users.transport.admin_connection import PATIENCE_S, check_taken, get, no_token, refuses_token
from users.triton.api import triton_stub

TENSORS = "triton_repo/tensors.py"
"""What every model.py of triton_repo imports."""
STEPS = {"jpeg": "decode_jpeg", "uint8": "normalise_uint8"}
"""What stands before a Triton's model, by payload."""


def check(endpoint: Endpoint, mend: str = "") -> None:
    """Raises TargetError where it is not; `mend`: what to do where the backend's own model is missing."""
    (check_grpc if endpoint.protocol == "grpc" else check_http)(endpoint, mend)


def check_http(endpoint: Endpoint, mend: str) -> None:
    """A Triton, and with the model ready."""
    try:
        reply = get(endpoint, "/v2")
        check_taken(endpoint, reply)
        extensions = reply.json()["extensions"]
    except (RequestError, ValueError, KeyError, TypeError):
        extensions = []
    if "binary_tensor_data" not in extensions:
        raise TargetError("answers, but not as a Triton server; give Triton's HTTP port")
    if not get(endpoint, f"/v2/models/{endpoint.model}/ready").ok:
        # Its index of models may be for those who may load them.
        told = get(endpoint, "/v2/models/stats")
        models = {row["name"] for row in told.json()["model_stats"]} if told.ok else None
        raise TargetError(missing_model(endpoint, models, mend))


def check_grpc(endpoint: Endpoint, mend: str) -> None:
    """A Triton, and with the model ready."""
    with triton_stub(endpoint) as stub:
        try:
            stub.ServerMetadata(service_pb2.ServerMetadataRequest(), timeout=PATIENCE_S)
        except grpc.RpcError as error:
            if refuses_token(error):
                raise TargetError(no_token(endpoint)) from error
            sentence = "answers, but not as a Triton server; give Triton's gRPC port"
            raise TargetError(sentence) from error
        ready = stub.ModelReady(service_pb2.ModelReadyRequest(name=endpoint.model), timeout=PATIENCE_S)
        if not ready.ready:
            try:
                told = stub.ModelStatistics(service_pb2.ModelStatisticsRequest(), timeout=PATIENCE_S)
                models = {model.name for model in told.model_stats}
            except grpc.RpcError:
                models = None
            raise TargetError(missing_model(endpoint, models, mend))


def missing_model(endpoint: Endpoint, models: Collection[str] | None, mend: str = "") -> str:
    """The sentence for a Triton without the model; None: it does not tell us which ones it has."""
    if step := STEPS.get(endpoint.payload):
        mend = (
            f"copy {step} and {endpoint.payload} of triton_repo/payloads into its repository, {TENSORS} "
            f"into the folder 1 of the former, the latter as {endpoint.model} with an empty folder 1, "
            "or leave the endpoint out by --endpoints"
        )
    elif endpoint.floor_of or not mend:
        own = f"triton_repo/{endpoint.behind}/{endpoint.model}"
        mend = f"copy {own} into its repository, and {TENSORS} into its folder 1"
        mend += ", or leave --floor out" if endpoint.floor_of else ""
    held = f"it holds {', '.join(sorted(models))}" if models else "it holds none"
    held = "it does not say which it holds" if models is None else held
    return f"has no model {endpoint.model!r} that is ready ({held}); {mend}"
