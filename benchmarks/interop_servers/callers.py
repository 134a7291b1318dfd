"""Clients that make unary calls with bytes: the suite's own, and grpcio, by which the servers are checked."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import gevent
import grpc

from users.endpoint import Endpoint
from users.errors import StatusError
from users.http2.call import GrpcAnswer
from users.transport.grpc import GrpcChannel
from users.transport.grpc_library import patch_grpc

BINARY = "-bin"
NO_METADATA: Mapping[str, str] = {}
UNLIMITED = (("grpc.max_receive_message_length", -1), ("grpc.use_local_subchannel_pool", 1))
THREADS = 64
"""Each call of grpcio's under way holds one."""


class Caller(Protocol):
    """One channel to a server. Metadata is as it is on the wire: that of `-bin` is base64."""

    def call(
        self, path: str, body: bytes, timeout_s: float, metadata: Mapping[str, str] = NO_METADATA
    ) -> GrpcAnswer:
        """A call's answer. Raises StatusError, and OSError where there is no connection."""

    def close(self) -> None:
        """End it."""


class Own:
    """The suite's channel."""

    def __init__(self, address: str) -> None:
        self._channel = GrpcChannel(Endpoint("interop", "interop", "grpc", "fp32", address))

    def call(
        self, path: str, body: bytes, timeout_s: float, metadata: Mapping[str, str] = NO_METADATA
    ) -> GrpcAnswer:
        """As Caller has it."""
        try:
            return self._channel.call(path, body, timeout_s, metadata)
        except gevent.Timeout as error:
            raise StatusError("DEADLINE_EXCEEDED", "the client's own deadline") from error

    def close(self) -> None:
        """Close the connection."""
        self._channel.close()


class Grpcio:
    """grpcio's channel."""

    def __init__(self, address: str) -> None:
        patch_grpc()
        gevent.get_hub().threadpool.maxsize = max(THREADS, gevent.get_hub().threadpool.maxsize)
        self._channel = grpc.insecure_channel(address, options=UNLIMITED)

    def call(
        self, path: str, body: bytes, timeout_s: float, metadata: Mapping[str, str] = NO_METADATA
    ) -> GrpcAnswer:
        """As Caller has it."""
        method = self._channel.unary_unary(path, request_serializer=None, response_deserializer=None)
        sent = [(name, unwired(name, value)) for name, value in metadata.items()]
        try:
            answer, call = method.with_call(body, timeout=timeout_s, metadata=sent)
        except grpc.RpcError as error:
            raise StatusError(error.code().name, error.details() or "") from error
        return GrpcAnswer(answer, wired(call.initial_metadata()), wired(call.trailing_metadata()))

    def close(self) -> None:
        """Close the channel."""
        self._channel.close()


def unwired(name: str, value: str) -> str | bytes:
    """Metadata as grpcio takes it."""
    return base64.b64decode(value + "==") if name.endswith(BINARY) else value


def wired(metadata: Any) -> dict[str, str]:
    """Metadata as it was on the wire."""
    return {
        name: base64.b64encode(value).decode().rstrip("=") if isinstance(value, bytes) else value
        for name, value in metadata or ()
    }


CALLERS: Mapping[str, Callable[[str], Caller]] = {"own": Own, "grpcio": Grpcio}
"""By what they are called on the command line; each is given `host:port`."""
