"""Which transport speaks which protocol."""

from collections.abc import Mapping

from users.codecs.base import Codec
from users.endpoint import Protocol
from users.http2.sender import SCHEDULING
from users.transport.base import Transport
from users.transport.connections import PER_USER
from users.transport.grpc import GrpcTransport
from users.transport.grpc_library import GrpcLibrary
from users.transport.http import HttpTransport

TRANSPORTS: Mapping[tuple[Protocol, bool], type[Transport]] = {
    ("http", False): HttpTransport,
    ("http", True): HttpTransport,
    ("grpc", False): GrpcTransport,
    ("grpc", True): GrpcLibrary,
}
"""By the protocol, and whether requests are made and sent as a plain client does, by a library."""


def client(
    codec: Codec,
    timeout_s: float,
    channels: str = PER_USER,
    by_library: bool = False,
    scheduling: str = SCHEDULING,
) -> Transport:
    """One user's way to the codec's endpoint, not open yet. Raises ValueError where channels are others."""
    return TRANSPORTS[codec.wire, by_library](codec, timeout_s, channels, by_library, scheduling)
