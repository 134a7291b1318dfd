"""A stand-in for Triton's gRPC that answers wrongly on command; no gevent here.

python -m benchmarks.drilling.grpc_server JOURNAL PORT [--host 127.0.0.1] [--delay-ms 200]

Every picture's embedding is the first unit vector.
"""

from __future__ import annotations

import argparse
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import numpy as np
from numpy.typing import NDArray
from tritonclient.grpc import service_pb2

from benchmarks.drilling.commanded import GOOD, NO_FAULT, Commanded

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
    """The methods that a study asks for, by Triton's names; `ModelInfer` meets faults."""

    def __init__(self, commanded: Commanded, delay_s: float) -> None:
        self.commanded, self.delay_s = commanded, delay_s
        self.counts = {"success": 0, "fail": 0}
        self.lock = threading.Lock()

    def ModelInfer(self, sent: bytes, context: Any) -> bytes:
        """The embeddings after the delay, or what was commanded at once."""
        images = service_pb2.ModelInferRequest.FromString(sent).inputs[0].shape[0]
        fault = self.commanded.take()
        with self.lock:
            self.counts["fail" if fault else "success"] += 1
        if not fault:
            time.sleep(self.delay_s)
        self.commanded.note(fault or GOOD)
        if fault in STATUSES:
            context.abort(STATUSES[fault], "planted")
        if fault == "junk":
            return b"\xff" + os.urandom(2048)
        right = np.zeros((images, 512), np.float32)
        right[:, 0] = 1
        return packed(EMBEDDINGS[fault](right))

    def ServerReady(self, request: Any, context: Any) -> Any:
        return service_pb2.ServerReadyResponse(ready=True)

    def ServerMetadata(self, request: Any, context: Any) -> Any:
        return service_pb2.ServerMetadataResponse(name="triton")

    def ModelReady(self, request: Any, context: Any) -> Any:
        return service_pb2.ModelReadyResponse(ready=True)

    def ModelConfig(self, request: Any, context: Any) -> Any:
        answer = service_pb2.ModelConfigResponse()
        answer.config.name, answer.config.max_batch_size = request.name, 32
        answer.config.instance_group.add(count=1)
        return answer

    def ModelStatistics(self, request: Any, context: Any) -> Any:
        """Counts, and a compute time of the delay for each success."""
        answer = service_pb2.ModelStatisticsResponse()
        done, delay_ns = self.counts["success"], round(self.delay_s * 1e9)
        stats = answer.model_stats.add(name=request.name, inference_count=done, execution_count=done)
        stats.inference_stats.success.count, stats.inference_stats.fail.count = done, self.counts["fail"]
        stats.inference_stats.compute_infer.count = done
        stats.inference_stats.compute_infer.ns = done * delay_ns
        return answer


def packed(embeddings: Floats) -> bytes:
    """A serialised `ModelInferResponse`."""
    answer = service_pb2.ModelInferResponse()
    answer.outputs.add(name="embedding", datatype="FP32", shape=embeddings.shape)
    answer.raw_output_contents.append(np.ascontiguousarray(embeddings).tobytes())
    sent: bytes = answer.SerializeToString()
    return sent


def methods(made: Triton) -> dict[str, Any]:
    """As gRPC takes them; `ModelInfer` in bytes, so that an answer may be no message at all."""
    found: dict[str, Any] = {"ModelInfer": grpc.unary_unary_rpc_method_handler(made.ModelInfer)}
    for name in ("ServerReady", "ServerMetadata", "ModelReady", "ModelConfig", "ModelStatistics"):
        sent = getattr(service_pb2, f"{name}Request")
        found[name] = grpc.unary_unary_rpc_method_handler(
            getattr(made, name), sent.FromString, lambda answer: answer.SerializeToString()
        )
    return found


def main() -> None:
    """Serve until the standard input ends."""
    parser = argparse.ArgumentParser()
    parser.add_argument("journal")
    parser.add_argument("port", type=int)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--delay-ms", type=float, default=200)
    options = parser.parse_args()
    made = Triton(Commanded(options.journal), options.delay_ms / 1_000)
    unlimited = (("grpc.max_receive_message_length", -1), ("grpc.so_reuseport", 0))
    server = grpc.server(ThreadPoolExecutor(32), options=unlimited)
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, methods(made)),))
    server.add_insecure_port(f"{options.host}:{options.port}")
    server.start()
    made.commanded.obey()


if __name__ == "__main__":
    main()
