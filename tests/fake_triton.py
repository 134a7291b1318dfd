"""A stand-in for Triton's gRPC: infers, and tells of its model, at next to no cost; no gevent here.

    python tests/fake_triton.py PORT [--delay-ms 5] [--no-statistics] [--token T] [--cert F --key F …]

Any picture's embedding is the first unit vector. The one execution so far was of 4 pictures and took 6 ns.
"""

from __future__ import annotations

import argparse
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import numpy as np
from tritonclient.grpc import service_pb2, service_pb2_grpc


class Triton(service_pb2_grpc.GRPCInferenceServiceServicer):
    """The methods that are asked of it; the others are not implemented."""

    def __init__(self, delay_s: float, statistics: bool) -> None:
        self.delay_s, self.statistics = delay_s, statistics

    def ModelInfer(self, request: Any, context: Any) -> Any:
        time.sleep(self.delay_s)
        embeddings = np.zeros((request.inputs[0].shape[0], 512), dtype=np.float32)
        embeddings[:, 0] = 1
        answer = service_pb2.ModelInferResponse(model_name=request.model_name)
        answer.outputs.add(name="embedding", datatype="FP32", shape=embeddings.shape)
        answer.raw_output_contents.append(embeddings.tobytes())
        return answer

    def ServerReady(self, request: Any, context: Any) -> Any:
        return service_pb2.ServerReadyResponse(ready=True)

    def ServerMetadata(self, request: Any, context: Any) -> Any:
        return service_pb2.ServerMetadataResponse(name="triton")

    def ModelReady(self, request: Any, context: Any) -> Any:
        return service_pb2.ModelReadyResponse(ready=True)

    def ModelConfig(self, request: Any, context: Any) -> Any:
        answer = service_pb2.ModelConfigResponse()
        answer.config.name, answer.config.max_batch_size = request.name, 32
        answer.config.dynamic_batching.max_queue_delay_microseconds = 500
        answer.config.instance_group.add(count=2)
        answer.config.parameters["weights"].string_value = "random (seed 3)"
        return answer

    def ModelStatistics(self, request: Any, context: Any) -> Any:
        if not self.statistics:
            context.abort(grpc.StatusCode.UNIMPLEMENTED, "the statistics extension is off")
        answer = service_pb2.ModelStatisticsResponse()
        stats = answer.model_stats.add(name=request.name, inference_count=4, execution_count=1)
        stats.inference_stats.success.count = 2
        batch = stats.batch_stats.add(batch_size=4)
        for number, part in enumerate((batch.compute_input, batch.compute_infer, batch.compute_output), 1):
            part.count, part.ns = 1, number
        return answer


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
    """Serve until killed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("port", type=int)
    parser.add_argument("--delay-ms", type=float, default=2)
    parser.add_argument("--no-statistics", action="store_true")
    for option in ("--token", "--cert", "--key", "--client-ca"):
        parser.add_argument(option)
    options = parser.parse_args()
    unlimited = (("grpc.max_receive_message_length", -1),)
    doors = [Door(options.token)] if options.token else []
    server = grpc.server(ThreadPoolExecutor(32), options=unlimited, interceptors=doors)
    made = Triton(options.delay_ms / 1000, not options.no_statistics)
    service_pb2_grpc.add_GRPCInferenceServiceServicer_to_server(made, server)
    if options.cert:
        ca = Path(options.client_ca).read_bytes() if options.client_ca else None
        own = [(Path(options.key).read_bytes(), Path(options.cert).read_bytes())]
        proof = grpc.ssl_server_credentials(own, ca, require_client_auth=ca is not None)
        server.add_secure_port(f"127.0.0.1:{options.port}", proof)
    else:
        server.add_insecure_port(f"127.0.0.1:{options.port}")
    server.start()
    server.wait_for_termination()


if __name__ == "__main__":
    main()
