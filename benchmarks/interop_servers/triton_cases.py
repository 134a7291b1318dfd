"""The same cases asked of a tritonserver whose model sleeps: its own methods stand for the test service's."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import numpy as np
from tritonclient.grpc import service_pb2

from benchmarks.interop_servers.callers import Caller
from benchmarks.interop_servers.cases import (
    CALLS,
    FP32_CALLS,
    FP32_ROUNDS,
    LONG_S,
    SHORT_S,
    SOAK_CALLS,
    Case,
    at_once,
    ended_in_time,
    expect,
    status_of,
    unimplemented_service,
)
from benchmarks.interop_servers.messages import path_of
from users.http2.call import GrpcAnswer

SERVICE = "inference.GRPCInferenceService"
MODEL = "emulated"
PROFILE = "100+0"
"""Milliseconds that its model sleeps: `inferswarm up --emulate` takes it."""
LIVE = b"\x08\x01"
"""ServerLiveResponse(live=True)."""


@cache
def infer_request(model: str) -> bytes:
    """A picture's tensor of 602,112 bytes to a model."""
    request = service_pb2.ModelInferRequest(model_name=model)
    request.inputs.add(name="input", datatype="FP32", shape=(1, 3, 224, 224))
    request.raw_input_contents.append(np.zeros((1, 3, 224, 224), np.float32).tobytes())
    written: bytes = request.SerializeToString()
    return written


def infer(caller: Caller, model: str = MODEL, timeout_s: float = LONG_S) -> GrpcAnswer:
    """ModelInfer's answer."""
    return caller.call(path_of("ModelInfer", SERVICE), infer_request(model), timeout_s)


def is_vector(answer: GrpcAnswer) -> bool:
    """Whether it holds one of 512 floats."""
    (raw,) = service_pb2.ModelInferResponse.FromString(answer.body).raw_output_contents
    return len(raw) == 512 * 4


def live(caller: Caller) -> GrpcAnswer:
    """ServerLive's answer: the request is empty."""
    return caller.call(path_of("ServerLive", SERVICE), b"", LONG_S)


def empty_unary(caller: Caller) -> None:
    """ServerLive."""
    expect("the answer", live(caller).body, LIVE)


def large_unary(caller: Caller) -> None:
    """ModelInfer."""
    expect("whether it is a vector", is_vector(infer(caller)), True)


def status_code_and_message(caller: Caller) -> None:
    """A model that is not there."""
    found = status_of(lambda: infer(caller, "absent"))
    expect("the status", found.code, "NOT_FOUND")
    expect("whether it names the model", "'absent'" in found.details, True)


def special_status_message(caller: Caller) -> None:
    """A model that is not there, with a name that must be encoded."""
    found = status_of(lambda: infer(caller, "☺ 😈"))
    expect("the status", found.code, "NOT_FOUND")
    expect("whether it names the model", "'☺ 😈'" in found.details, True)


def timeout_on_sleeping_server(caller: Caller) -> None:
    """ModelInfer of a model that sleeps longer than the deadline."""
    ended_in_time(lambda: infer(caller, timeout_s=SHORT_S))
    empty_unary(caller)


def unimplemented_method(caller: Caller) -> None:
    """One that the service lacks."""
    path = path_of("UnimplementedCall", SERVICE)
    expect("the status", status_of(lambda: caller.call(path, b"", LONG_S)).code, "UNIMPLEMENTED")


def concurrent_large_unary(caller: Caller) -> None:
    """A thousand of ServerLive at once: its model would need 602 MB of shared memory."""
    at_once(CALLS, lambda: live(caller), lambda answer: answer.body == LIVE)


def concurrent_fp32(caller: Caller) -> None:
    """16 of ModelInfer at once."""
    for _ in range(FP32_ROUNDS):
        at_once(FP32_CALLS, lambda: infer(caller), is_vector)


def rpc_soak(caller: Caller) -> None:
    """ServerLive, call after call."""
    at_once(SOAK_CALLS, lambda: live(caller), lambda answer: answer.body == LIVE, abreast=FP32_CALLS)


TRITON_CASES: Mapping[str, Case] = {
    case.__name__: case
    for case in (
        *(empty_unary, large_unary, status_code_and_message, special_status_message),
        *(timeout_on_sleeping_server, unimplemented_method, unimplemented_service),
        *(concurrent_large_unary, concurrent_fp32, rpc_soak),
    )
}
