"""The ways of sending: a codec, its connections, and whether a library carries them."""

from dataclasses import replace

from tests.pictures import image_set
from users.backends.registry import backends
from users.codecs.base import Codec
from users.codecs.embed import Embed
from users.codecs.v2_grpc import V2Grpc
from users.endpoint import Endpoint
from users.tls import OPEN, Security
from users.transport.base import Reply, Transport
from users.transport.connections import PER_USER
from users.transport.transports import client

IMAGES = image_set(1)

Way = tuple[type[Codec], str, bool]
OWN: Way = (Embed, PER_USER, False)
LIBRARY: Way = (Embed, PER_USER, True)
GRPC: Way = (V2Grpc, PER_USER, False)
GRPC_LIBRARY: Way = (V2Grpc, PER_USER, True)


def preset_of(codec: type[Codec], address: str, model: str = "m") -> Endpoint:
    """The first endpoint of a backend of ours that is asked in this form, at an address."""
    known = [endpoint for backend in backends().values() for endpoint in backend.endpoints]
    found = next(endpoint for endpoint in known if endpoint.codec == codec.name)
    return replace(found, name="x", address=address, model=model if found.model else "")


def codec_at(codec: type[Codec], address: str = "127.0.0.1:1", model: str = "m") -> Codec:
    """The codec of such an endpoint."""
    return codec(preset_of(codec, address, model))


def endpoint_of(way: Way, address: str, security: Security = OPEN, tls: bool = True) -> Endpoint:
    """One that is asked so."""
    return replace(preset_of(way[0], address), security=security, tls=tls)


def user_of(way: Way, endpoint: Endpoint, timeout_s: float = 20) -> Transport:
    """One who asks so."""
    codec, channels, by_library = way
    return client(codec(endpoint), timeout_s, channels, by_library)


def ask(way: Way, address: str, security: Security = OPEN, tls: bool = True, times: int = 1) -> Reply:
    """The last answer to so many requests of one user."""
    with user_of(way, endpoint_of(way, address, security, tls)) as user:
        prepared = user.codec.prepare(IMAGES, (0,))
        return [user.send(prepared) for _ in range(times)][-1]
