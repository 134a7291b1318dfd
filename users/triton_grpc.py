"""Triton over gRPC, on gevent: prepared bytes over the raw stub, one TCP connection a user."""

from __future__ import annotations

import functools
import time
from typing import ClassVar

import gevent
import grpc
import numpy as np
from grpc.experimental import gevent as grpc_gevent
from tritonclient.grpc.service_pb2 import ModelInferRequest, ModelInferResponse

from users.base import InferenceUser
from users.endpoint import Endpoint, Payload, Protocol
from users.errors import ErrorKind, RequestError
from users.images import ImageSet
from users.transport import EMBEDDING_SIZE, Prepared, Reply, Transport

METHOD = "/inference.GRPCInferenceService/ModelInfer"
CHANNEL_OPTIONS = (
    ("grpc.max_send_message_length", -1),
    ("grpc.max_receive_message_length", -1),
    # Without this, all channels of a process to the same address share one TCP connection.
    ("grpc.use_local_subchannel_pool", 1),
)
SPARE_THREADS = 8


@functools.cache
def patch_grpc() -> None:
    """Let gRPC wait in gevent's thread pool and not in the event loop; once a process, before any channel."""
    grpc_gevent.init_gevent()


def size_thread_pool(channels: int) -> None:
    """Room for one blocked call a channel: each call in flight holds a thread of gevent's pool.

    At the pool's default of 10, a tenth call makes every other wait, unseen in the throughput.
    """
    pool = gevent.get_hub().threadpool
    pool.maxsize = max(pool.maxsize, channels + SPARE_THREADS)


class TritonGrpc(Transport):
    """602,112 bytes a picture on the wire: float32 of shape [3, 224, 224]."""

    protocol: ClassVar[Protocol] = "grpc"
    payload: ClassVar[Payload] = "fp32"
    open_channels: ClassVar[int] = 0
    _channel: grpc.Channel | None = None

    @classmethod
    def prepare(cls, images: ImageSet, indices: tuple[int, ...], endpoint: Endpoint) -> Prepared:
        """A serialised `ModelInferRequest`."""
        pixels = images.tensors[list(indices)]
        request = ModelInferRequest(model_name=endpoint.model)
        request.inputs.add(name="input", datatype="FP32", shape=pixels.shape)
        request.outputs.add(name="embedding")
        request.raw_input_contents.append(pixels.tobytes())
        return Prepared(request.SerializeToString(), indices)

    def open(self) -> None:
        """One channel, and so one TCP connection, of its own."""
        patch_grpc()
        TritonGrpc.open_channels += 1
        size_thread_pool(TritonGrpc.open_channels)
        self._channel = grpc.insecure_channel(self.endpoint.address, options=CHANNEL_OPTIONS)
        self._infer = self._channel.unary_unary(METHOD, request_serializer=None, response_deserializer=None)

    def exchange(self, prepared: Prepared) -> Reply:
        """Call and parse."""
        body: bytes = self._infer(prepared.body, timeout=self.timeout_s)
        received_ns = time.perf_counter_ns()
        embeddings = embeddings_of(ModelInferResponse.FromString(body))
        return Reply(embeddings, len(body), {"decode": time.perf_counter_ns() - received_ns})

    def close(self) -> None:
        """Close the channel: one left to the garbage collector can hang the process under gevent."""
        if self._channel is not None:
            self._channel.close()
            self._channel = None
            TritonGrpc.open_channels -= 1


def embeddings_of(response: ModelInferResponse) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    """float32 of shape [batch, 512] from the answer's raw bytes; raises RequestError(bad-reply)."""
    names = [output.name for output in response.outputs]
    if "embedding" not in names or len(response.raw_output_contents) != len(names):
        raise RequestError(ErrorKind.BAD_REPLY, f"outputs {names} without a raw 'embedding'")
    raw = response.raw_output_contents[names.index("embedding")]
    return np.frombuffer(raw, dtype=np.float32).reshape(-1, EMBEDDING_SIZE)


class TritonGrpcUser(InferenceUser):
    """A user who sends float32 tensors to Triton over gRPC."""

    abstract = True
    transport = TritonGrpc
