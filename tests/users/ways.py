"""The ways of sending: a transport, its connections, and whether a library carries them."""

from __future__ import annotations

import numpy as np

from users.backends.embed_service import JpegHttp
from users.backends.registry import backends
from users.endpoint import Endpoint, Payload, Protocol
from users.inputs.images import ImageSet
from users.tls import OPEN, Security
from users.transport.base import Reply, Transport
from users.transport.connections import PER_USER
from users.codecs.v2_grpc import TritonGrpc

IMAGES = ImageSet((b"one",), np.zeros((1, 3, 224, 224), dtype=np.float32), "test")

Way = tuple[type[Transport], str, bool]
OWN: Way = (JpegHttp, PER_USER, False)
LIBRARY: Way = (JpegHttp, PER_USER, True)
GRPC: Way = (TritonGrpc, PER_USER, False)


def sent_by(transport: type[Transport]) -> tuple[Protocol, Payload]:
    """By which protocol a transport sends, and the first payload that a backend of ours has it send."""
    ways = [way for backend in backends().values() for way in backend.transports.items()]
    return next((protocol, payload) for (payload, protocol), sends in ways if sends is transport)


def endpoint_of(way: Way, address: str, security: Security = OPEN, tls: bool = True) -> Endpoint:
    """One that is asked so."""
    transport = way[0]
    model = "" if transport is JpegHttp else "m"
    kind = sent_by(transport)
    return Endpoint("x", "onnx", *kind, address, model, tls, security)


def user_of(way: Way, endpoint: Endpoint, timeout_s: float = 20) -> Transport:
    """One who asks so."""
    transport, channels, by_library = way
    return transport(endpoint, timeout_s, channels, by_library)


def ask(way: Way, address: str, security: Security = OPEN, tls: bool = True, times: int = 1) -> Reply:
    """The last answer to so many requests of one user."""
    endpoint = endpoint_of(way, address, security, tls)
    prepared = way[0].prepare(IMAGES, (0,), endpoint)
    with user_of(way, endpoint) as user:
        return [user.send(prepared) for _ in range(times)][-1]
