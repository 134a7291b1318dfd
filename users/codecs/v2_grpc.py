"""Triton over gRPC: the KServe v2 protocol, on channels that users have of their own or share."""

import time
from collections.abc import Callable
from typing import Any, ClassVar

import grpc
import numpy as np
from numpy.typing import NDArray
from tritonclient.grpc.service_pb2 import ModelInferRequest, ModelInferResponse
from tritonclient.utils import np_to_triton_dtype, serialize_byte_tensor

from users.endpoint import Endpoint
from users.errors import ErrorKind, RequestError
from users.inputs.images import ImageSet
from users.transport.base import EMBEDDING_SIZE, PreparedRequest, Reply, Transport, id_place
from users.transport.connections import SAME_ARGS
from users.transport.grpc import (
    CHANNEL_OPTIONS,
    JOINED_OPTIONS,
    Metadata,
    SharedChannel,
    metadata_of,
    open_channel,
    patch_grpc,
    size_thread_pool,
)

METHOD = "/inference.GRPCInferenceService/ModelInfer"


class TritonGrpc(Transport):
    """The endpoint's payload as a tensor: of float32, [3, 224, 224], 602,112 bytes a picture on the wire."""

    users: ClassVar[int] = 0
    """How many of this process are open."""
    _channel: grpc.Channel | SharedChannel | None = None
    _infer: Callable[..., bytes] | None = None
    _metadata: Metadata = None

    @classmethod
    def prepare(
        cls, images: ImageSet, indices: tuple[int, ...], endpoint: Endpoint, request_id: str = ""
    ) -> PreparedRequest:
        """A serialised `ModelInferRequest`."""
        tensor = images.batch(endpoint.payload, indices)
        request = ModelInferRequest(model_name=endpoint.model, id=request_id)
        request.inputs.add(name="input", datatype=np_to_triton_dtype(tensor.dtype), shape=tensor.shape)
        request.outputs.add(name="embedding")
        request.raw_input_contents.append(raw(tensor))
        body = request.SerializeToString()
        return PreparedRequest(body, indices, id_at=id_place(body, request_id))

    @classmethod
    def connections(cls, users: int, channels: str, tls: bool = False) -> int:
        """As many as there are channels, save that gRPC joins those made with the same arguments.

        Over TLS it has none to join: grpcio makes each channel's credentials anew, which are other arguments.
        """
        joined = channels == SAME_ARGS and not tls
        return min(users, 1) if joined else super().connections(users, channels, tls)

    def open(self) -> None:
        """Make a channel of its own, or take a place among the shared ones."""
        patch_grpc()
        TritonGrpc.users += 1
        size_thread_pool(TritonGrpc.users)
        endpoint, channels = self.endpoint, self.channels
        self._metadata = metadata_of(endpoint)
        if channels.size:
            self._channel = SharedChannel(endpoint, channels.size)
        else:
            joined = channels.kind == SAME_ARGS
            self._channel = open_channel(endpoint, JOINED_OPTIONS if joined else CHANNEL_OPTIONS)

    def exchange(self, prepared: PreparedRequest) -> Reply:
        """Call and parse. `wait` is the whole call in flight: gRPC shows neither sending nor receiving, nor
        how long a call stood behind others of its channel.
        """
        infer = self._infer or self._first_infer()
        began_ns = time.perf_counter_ns()
        body = infer(prepared.body, timeout=self.timeout_s, metadata=self._metadata)
        received_ns = time.perf_counter_ns()
        if len(body) > prepared.largest_reply:
            raise ValueError(f"an answer of {len(body):,} bytes")
        embeddings = embeddings_of(ModelInferResponse.FromString(body))
        decode_ns = time.perf_counter_ns() - received_ns
        return Reply(embeddings, len(body), {"wait": received_ns - began_ns, "decode": decode_ns})

    def _first_infer(self) -> Callable[..., bytes]:
        """The method on this user's channel, kept for the requests to come."""
        channel = self._channel
        assert channel is not None, "open() comes before send()"
        if isinstance(channel, SharedChannel):
            channel = channel.take()
        self._infer = channel.unary_unary(METHOD, request_serializer=None, response_deserializer=None)
        return self._infer

    def close(self) -> None:
        """Close the channel: one left to the garbage collector can hang the process under gevent."""
        channel, self._channel, self._infer = self._channel, None, None
        if channel is not None:
            TritonGrpc.users -= 1
            channel.close()


def raw(tensor: NDArray[Any]) -> bytes:
    """Triton's binary form of a tensor; a file goes behind its length in 4 bytes, the lowest first."""
    return bytes(serialize_byte_tensor(tensor).item()) if tensor.dtype == np.object_ else tensor.tobytes()


def embeddings_of(response: ModelInferResponse) -> NDArray[np.float32]:
    """float32 of shape [batch, 512] from the answer's raw bytes; raises RequestError(bad-reply)."""
    names = [output.name for output in response.outputs]
    if "embedding" not in names or len(response.raw_output_contents) != len(names):
        raise RequestError(ErrorKind.BAD_REPLY, f"outputs {names} without a raw 'embedding'")
    data = response.raw_output_contents[names.index("embedding")]
    return np.frombuffer(data, dtype=np.float32).reshape(-1, EMBEDDING_SIZE)
