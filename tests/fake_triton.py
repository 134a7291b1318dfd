"""A stand-in for Triton's gRPC: infers, and tells of its model, at next to no cost.

    python tests/fake_triton.py PORT [--delay-ms 5] [--no-statistics] [--token T] [--cert F --key F …]

Any picture's embedding is the first unit vector. The one execution so far was of 4 pictures and took 6 ns.
With --journal FILE, by which it is told to misbehave (tests/faults.py), it has one instance, no batcher,
and statistics of its own requests: whoever counts answers must know what a study asks before its load.
"""

import argparse
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import numpy as np
from numpy.typing import NDArray
from tritonclient.grpc import service_pb2

from tests.faults import GOOD, NO_FAULT, Commanded

SERVICE = "inference.GRPCInferenceService"
Floats = NDArray[np.float32]

STATUSES = {
    "unavailable": grpc.StatusCode.UNAVAILABLE,
    "internal": grpc.StatusCode.INTERNAL,
    "exhausted": grpc.StatusCode.RESOURCE_EXHAUSTED,
}
EMBEDDINGS: dict[str, Callable[[Floats], Floats]] = {
    NO_FAULT: lambda right: right,
    "511": lambda right: right[:, :511],
    "batch": lambda right: np.concatenate((right, right[:1])),
    "nan": lambda right: np.full_like(right, np.nan),
}


class Triton:
    """The methods that are asked of it, by Triton's names; the others are not implemented.

    Only `ModelInfer` meets faults, and it is of bytes, so that an answer may be no message at all.
    """

    def __init__(self, delay_s: float, statistics: bool, journal: str) -> None:
        self.delay_s, self.statistics = delay_s, statistics
        self.commanded, self.counted = Commanded(journal), journal != os.devnull
        self.success = self.fail = 0
        self.lock = threading.Lock()

    def ModelInfer(self, sent: bytes, context: Any) -> bytes:
        """The embeddings after the delay, or what was commanded at once."""
        request, fault = service_pb2.ModelInferRequest.FromString(sent), self.commanded.take()
        with self.lock:
            self.success, self.fail = self.success + (not fault), self.fail + bool(fault)
        if not fault:
            time.sleep(self.delay_s)
        self.commanded.note(fault or GOOD)
        if fault in STATUSES:
            context.abort(STATUSES[fault], "planted")
        if fault == "junk":
            return b"\xff" + os.urandom(2048)
        right = np.zeros((request.inputs[0].shape[0], 512), np.float32)
        right[:, 0] = 1
        return packed(request.model_name, EMBEDDINGS[fault](right))

    def ServerReady(self, request: Any, context: Any) -> Any:
        return service_pb2.ServerReadyResponse(ready=True)

    def ServerMetadata(self, request: Any, context: Any) -> Any:
        return service_pb2.ServerMetadataResponse(name="triton", version="2.51.0")

    def ModelReady(self, request: Any, context: Any) -> Any:
        return service_pb2.ModelReadyResponse(ready=True)

    def ModelConfig(self, request: Any, context: Any) -> Any:
        answer = service_pb2.ModelConfigResponse()
        answer.config.name, answer.config.max_batch_size = request.name, 32
        answer.config.instance_group.add(count=1 if self.counted else 2)
        if not self.counted:
            answer.config.dynamic_batching.max_queue_delay_microseconds = 500
        answer.config.parameters["weights"].string_value = "random (seed 3)"
        return answer

    def ModelStatistics(self, request: Any, context: Any) -> Any:
        if not self.statistics:
            context.abort(grpc.StatusCode.UNIMPLEMENTED, "the statistics extension is off")
        answer = service_pb2.ModelStatisticsResponse()
        stats = answer.model_stats.add(name=request.name, inference_count=4, execution_count=1)
        stats.inference_stats.success.count = 2
        if self.counted:
            stats.inference_count = stats.execution_count = self.success
            stats.inference_stats.success.count, stats.inference_stats.fail.count = self.success, self.fail
            stats.inference_stats.compute_infer.count = self.success
            stats.inference_stats.compute_infer.ns = self.success * round(self.delay_s * 1e9)
            return answer
        batch = stats.batch_stats.add(batch_size=4)
        for number, part in enumerate((batch.compute_input, batch.compute_infer, batch.compute_output), 1):
            part.count, part.ns = 1, number
        return answer

    def handlers(self) -> grpc.GenericRpcHandler:
        """All of them, as gRPC takes them."""
        found = {"ModelInfer": grpc.unary_unary_rpc_method_handler(self.ModelInfer)}
        for name in ("ServerReady", "ServerMetadata", "ModelReady", "ModelConfig", "ModelStatistics"):
            sent = getattr(service_pb2, f"{name}Request")
            found[name] = grpc.unary_unary_rpc_method_handler(
                getattr(self, name), sent.FromString, lambda answer: answer.SerializeToString()
            )
        return grpc.method_handlers_generic_handler(SERVICE, found)


def packed(model: str, embeddings: Floats) -> bytes:
    """A serialised `ModelInferResponse`."""
    answer = service_pb2.ModelInferResponse(model_name=model)
    answer.outputs.add(name="embedding", datatype="FP32", shape=embeddings.shape)
    answer.raw_output_contents.append(np.ascontiguousarray(embeddings).tobytes())
    sent: bytes = answer.SerializeToString()
    return sent


class Door(grpc.ServerInterceptor):
    """Calls without the token are refused, and told imprudently what they came with."""

    def __init__(self, token: str) -> None:
        self.token = token

    def intercept_service(self, continuation: Any, call: Any) -> Any:
        came = dict(call.invocation_metadata).get("authorization", "")
        if came == f"Bearer {self.token}":
            return continuation(call)
        return grpc.unary_unary_rpc_method_handler(
            lambda _, context: context.abort(grpc.StatusCode.UNAUTHENTICATED, f"not for {came}")
        )


def main() -> None:
    """Serve until killed, or with --journal until the standard input ends."""
    parser = argparse.ArgumentParser()
    parser.add_argument("port", type=int)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--delay-ms", type=float, default=2)
    parser.add_argument("--journal", default=os.devnull)
    parser.add_argument("--no-statistics", action="store_true")
    for option in ("--token", "--cert", "--key", "--client-ca"):
        parser.add_argument(option)
    options = parser.parse_args()
    unlimited = (("grpc.max_receive_message_length", -1), ("grpc.so_reuseport", 0))
    doors = [Door(options.token)] if options.token else []
    server = grpc.server(ThreadPoolExecutor(32), options=unlimited, interceptors=doors)
    made = Triton(options.delay_ms / 1000, not options.no_statistics, options.journal)
    server.add_generic_rpc_handlers((made.handlers(),))
    place = f"{options.host}:{options.port}"
    if options.cert:
        ca = Path(options.client_ca).read_bytes() if options.client_ca else None
        own = [(Path(options.key).read_bytes(), Path(options.cert).read_bytes())]
        proof = grpc.ssl_server_credentials(own, ca, require_client_auth=ca is not None)
        server.add_secure_port(place, proof)
    else:
        server.add_insecure_port(place)
    server.start()
    if made.counted:
        made.commanded.listen()
    server.wait_for_termination()


if __name__ == "__main__":
    main()
