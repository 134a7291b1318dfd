"""A null server of gRPC: Python's grpcio with raw bytes in and out; a request is never parsed.

python -m benchmarks.generating.null_grpc PORT
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from typing import Any

import grpc
from google.protobuf import json_format
from tritonclient.grpc import model_config_pb2, service_pb2

from benchmarks.generating.answers import (
    CONFIG,
    JPEG_CONFIG,
    JPEG_METADATA,
    METADATA,
    SERVER,
    batch_of,
    rows,
    statistics,
)
from benchmarks.generating.children import server_options
from benchmarks.generating.kinds import JPEG_MODEL, MODEL

SERVICE = "inference.GRPCInferenceService"
THREADS = 4
UNLIMITED = (("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1))


class Null:
    """The methods that are asked of it, from bytes to bytes."""

    def __init__(self) -> None:
        self.served = 0

    def infer(self, request: bytes, _: Any) -> bytes:
        """The answer for as many pictures as the request's size says."""
        self.served += 1
        return infer_answer(batch_of(len(request)))

    def statistics(self, request: bytes, _: Any) -> bytes:
        """What it has served of both models, under the name of the one that is asked for."""
        return statistics_message(self.served, JPEG_MODEL if JPEG_MODEL.encode() in request else MODEL)

    def methods(self) -> dict[str, Callable[[bytes, Any], bytes]]:
        """By name; what is told of the server and of its models is said once."""
        fixed = {
            "ServerLive": service_pb2.ServerLiveResponse(live=True),
            "ServerReady": service_pb2.ServerReadyResponse(ready=True),
            "ModelReady": service_pb2.ModelReadyResponse(ready=True),
            "ServerMetadata": service_pb2.ServerMetadataResponse(**SERVER),
        }
        told = {name: answer.SerializeToString() for name, answer in fixed.items()}
        return {
            **{name: constant(answer) for name, answer in told.items()},
            "ModelMetadata": by_model(metadata_message(METADATA), metadata_message(JPEG_METADATA)),
            "ModelConfig": by_model(config_message(CONFIG), config_message(JPEG_CONFIG)),
            "ModelInfer": self.infer,
            "ModelStatistics": self.statistics,
        }


def constant(answer: bytes) -> Callable[[bytes, Any], bytes]:
    """A method with one answer."""
    return lambda _, __: answer


def by_model(tensors: bytes, jpegs: bytes) -> Callable[[bytes, Any], bytes]:
    """A method with an answer for each of the two models, whose names need not be parsed to be told apart."""
    return lambda request, _: jpegs if JPEG_MODEL.encode() in request else tensors


def metadata_message(told: dict[str, Any]) -> bytes:
    """A ModelMetadataResponse."""
    written: bytes = service_pb2.ModelMetadataResponse(**told).SerializeToString()
    return written


def config_message(told: dict[str, Any]) -> bytes:
    """A ModelConfigResponse."""
    config = json_format.ParseDict(told, model_config_pb2.ModelConfig())
    written: bytes = service_pb2.ModelConfigResponse(config=config).SerializeToString()
    return written


@cache
def infer_answer(batch: int) -> bytes:
    """A ModelInferResponse as Triton writes it."""
    answer = service_pb2.ModelInferResponse(model_name=MODEL, model_version="1")
    answer.outputs.add(name="embedding", datatype="FP32", shape=rows(batch).shape)
    answer.raw_output_contents.append(rows(batch).tobytes())
    written: bytes = answer.SerializeToString()
    return written


def statistics_message(served: int, model: str = MODEL) -> bytes:
    """A ModelStatisticsResponse."""
    answer = json_format.ParseDict(statistics(served, model), service_pb2.ModelStatisticsResponse())
    written: bytes = answer.SerializeToString()
    return written


def serve(port: int, threads: int = THREADS) -> grpc.Server:
    """A started server."""
    server = grpc.server(ThreadPoolExecutor(threads), options=UNLIMITED)
    handlers = {
        name: grpc.unary_unary_rpc_method_handler(method) for name, method in Null().methods().items()
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))
    server.add_insecure_port(f"127.0.0.1:{port}")
    server.start()
    return server


def main() -> None:
    """Serve until killed."""
    with suppress(KeyboardInterrupt):
        serve(server_options(__doc__)).wait_for_termination()


if __name__ == "__main__":
    main()
