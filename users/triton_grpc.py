"""Triton over gRPC, on gevent: prepared bytes over the raw stub, on channels of each user's own or shared."""

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
from users.transport import EMBEDDING_SIZE, SHARED, Channels, Prepared, Reply, Transport, id_place

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


def size_thread_pool(users: int) -> None:
    """Room for one blocked call a user: each call in flight holds a thread of gevent's pool.

    At the pool's default of 10, a tenth call makes every other wait, unseen in the throughput.
    """
    pool = gevent.get_hub().threadpool
    pool.maxsize = max(pool.maxsize, users + SPARE_THREADS)


class SharedChannels:
    """One channel an address, for as long as anybody uses it."""

    def __init__(self) -> None:
        self._channels: dict[str, tuple[grpc.Channel, int]] = {}

    def take(self, address: str) -> grpc.Channel:
        """The address's channel, made for its first user."""
        channel, users = self._channels.get(address) or (new_channel(address), 0)
        self._channels[address] = (channel, users + 1)
        return channel

    def give_back(self, address: str) -> None:
        """Close the channel when its last user has given it back."""
        channel, users = self._channels[address]
        self._channels[address] = (channel, users - 1)
        if users == 1:
            del self._channels[address]
            channel.close()


def new_channel(address: str) -> grpc.Channel:
    """A channel with a TCP connection of its own."""
    patch_grpc()
    return grpc.insecure_channel(address, options=CHANNEL_OPTIONS)


class TritonGrpc(Transport):
    """602,112 bytes a picture on the wire: float32 of shape [3, 224, 224]."""

    protocol: ClassVar[Protocol] = "grpc"
    payload: ClassVar[Payload] = "fp32"
    users: ClassVar[int] = 0
    """How many of this process are open."""
    shared_channels: ClassVar[SharedChannels] = SharedChannels()
    _channel: grpc.Channel | None = None

    @classmethod
    def prepare(
        cls, images: ImageSet, indices: tuple[int, ...], endpoint: Endpoint, request_id: str = ""
    ) -> Prepared:
        """A serialised `ModelInferRequest`."""
        pixels = images.tensors[list(indices)]
        request = ModelInferRequest(model_name=endpoint.model, id=request_id)
        request.inputs.add(name="input", datatype="FP32", shape=pixels.shape)
        request.outputs.add(name="embedding")
        request.raw_input_contents.append(pixels.tobytes())
        body = request.SerializeToString()
        return Prepared(body, indices, id_at=id_place(body, request_id))

    @classmethod
    def connections(cls, users: int, channels: Channels) -> int:
        """One a user, or one for all of this process."""
        return min(users, 1) if channels == SHARED else users

    def open(self) -> None:
        """Take the shared channel, or make one of its own; each is one TCP connection."""
        patch_grpc()
        TritonGrpc.users += 1
        size_thread_pool(TritonGrpc.users)
        address = self.endpoint.address
        shared = self.channels == SHARED
        self._channel = self.shared_channels.take(address) if shared else new_channel(address)
        self._infer = self._channel.unary_unary(METHOD, request_serializer=None, response_deserializer=None)

    def exchange(self, prepared: Prepared) -> Reply:
        """Call and parse. `wait` is the whole call in flight: gRPC shows neither sending nor receiving."""
        began_ns = time.perf_counter_ns()
        body: bytes = self._infer(prepared.body, timeout=self.timeout_s)
        received_ns = time.perf_counter_ns()
        embeddings = embeddings_of(ModelInferResponse.FromString(body))
        decode_ns = time.perf_counter_ns() - received_ns
        return Reply(embeddings, len(body), {"wait": received_ns - began_ns, "decode": decode_ns})

    def close(self) -> None:
        """Close the channel: one left to the garbage collector can hang the process under gevent."""
        channel, self._channel = self._channel, None
        if channel is None:
            return
        TritonGrpc.users -= 1
        if self.channels == SHARED:
            self.shared_channels.give_back(self.endpoint.address)
        else:
            channel.close()


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
