"""gRPC channels on gevent: a user's own, or his place among those that the users of a process share."""

import functools
from pathlib import Path
from typing import ClassVar

import gevent
import grpc
from grpc.experimental import gevent as grpc_gevent

from users.endpoint import Endpoint
from users.tls import Security, authorization
from users.transport.connections import LeastLoaded, RefCounted
from users.transport.size_limits import LARGEST_BYTES

Options = tuple[tuple[str, int], ...]
Metadata = tuple[tuple[str, str], ...] | None

JOINED_OPTIONS = (
    ("grpc.max_send_message_length", -1),
    ("grpc.max_receive_message_length", LARGEST_BYTES),
    ("grpc.enable_http_proxy", 0),
    ("grpc.per_message_decompression", 0),
    ("grpc.compression_enabled_algorithms_bitset", 1),
)
"""All channels of a process to the same address with the same options share one TCP connection.

Compressed answers are neither asked for nor unpacked: the limit holds for what comes over the wire.
A proxy from the environment is no part of what is tested, and the token is not for it.
"""
CHANNEL_OPTIONS = (*JOINED_OPTIONS, ("grpc.use_local_subchannel_pool", 1))
"""Each channel with these has a TCP connection of its own."""
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


@functools.lru_cache(maxsize=16)
def credentials_of(security: Security) -> grpc.ChannelCredentials:
    """TLS as secured so; made once, since files are read for it. Raises OSError.

    gRPC always verifies; without authorities of ours it trusts those it comes with.
    """
    paths = (security.ca, security.key, security.cert)
    return grpc.ssl_channel_credentials(*(Path(path).read_bytes() if path else None for path in paths))


def open_channel(endpoint: Endpoint, options: Options) -> grpc.Channel:
    """A channel to an endpoint's server, over TLS where its URL says so."""
    patch_grpc()
    if endpoint.tls:
        return grpc.secure_channel(endpoint.address, credentials_of(endpoint.security), options=options)
    return grpc.insecure_channel(endpoint.address, options=options)


def metadata_of(endpoint: Endpoint) -> Metadata:
    """What every call to an endpoint carries, which is the token; None without one. Raises SecurityError."""
    return tuple(authorization(endpoint.security).items()) or None


class SharedChannel:
    """A user's place among up to `size` channels to an address, which stay open until their last user."""

    shared: ClassVar[RefCounted[LeastLoaded[grpc.Channel]]] = RefCounted()
    _channel: grpc.Channel | None = None

    def __init__(self, endpoint: Endpoint, size: int) -> None:
        self._name = (endpoint.address, endpoint.tls, endpoint.security, size)
        self._pool = self.shared.join(
            self._name, lambda: LeastLoaded(size, lambda: open_channel(endpoint, CHANNEL_OPTIONS))
        )

    def take(self) -> grpc.Channel:
        """The channel with fewest users, for good; asked for by each user's first request, if any."""
        self._channel = self._pool.take()
        return self._channel

    def close(self) -> None:
        """Leave it to the others."""
        if self._channel is not None:
            self._pool.give_back(self._channel)
        self.shared.leave(self._name)
