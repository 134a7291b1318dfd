"""Which transport speaks which protocol."""

from collections.abc import Mapping

from users.codecs.base import Codec
from users.endpoint import Protocol
from users.transport.base import Transport
from users.transport.connections import PER_USER
from users.transport.grpc_library import GrpcLibrary
from users.transport.http import HttpTransport

TRANSPORTS: Mapping[Protocol, type[Transport]] = {"http": HttpTransport, "grpc": GrpcLibrary}


def client(codec: Codec, timeout_s: float, channels: str = PER_USER, by_library: bool = False) -> Transport:
    """One user's way to the codec's endpoint, not open yet. Raises ValueError where channels are others."""
    return TRANSPORTS[codec.wire](codec, timeout_s, channels, by_library)
