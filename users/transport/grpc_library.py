"""gRPC by grpcio, for studies of plain clients: unary calls on a user's own channel, or on a shared one."""

import functools
import time
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

import gevent
import grpc
from grpc.experimental import gevent as grpc_gevent

from users.codecs.base import PreparedRequest
from users.endpoint import Endpoint
from users.http2.call import GrpcAnswer
from users.tls import Security
from users.transport.base import Reply, Transport
from users.transport.connections import SAME_ARGS, LeastLoaded, RefCounted, SharedPlace
from users.transport.headers import bytes_of, headers_of, is_binary
from users.transport.size_limits import LARGEST_BYTES

Options = tuple[tuple[str, int | str], ...]
Metadata = tuple[tuple[str, str | bytes], ...] | None

JOINED_OPTIONS = (
    ("grpc.max_send_message_length", -1),
    ("grpc.max_receive_message_length", LARGEST_BYTES),
    ("grpc.enable_http_proxy", 0),
    ("grpc.per_message_decompression", 0),
    ("grpc.compression_enabled_algorithms_bitset", 1),
)
"""All channels of a process to the same address with the same options share one TCP connection.

Compressed answers are neither requested nor unpacked: the limit holds for bytes on the wire. A
proxy from the environment is not part of what is tested, and must not get the token.
"""
CHANNEL_OPTIONS = (*JOINED_OPTIONS, ("grpc.use_local_subchannel_pool", 1))
"""Each channel with these has its own TCP connection."""
COMPRESSIONS = {"": None, "gzip": grpc.Compression.Gzip, "deflate": grpc.Compression.Deflate}
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

    gRPC always verifies; without the user's own authorities it trusts its built-in ones.
    """
    paths = (security.ca, security.key, security.cert)
    return grpc.ssl_channel_credentials(*(Path(path).read_bytes() if path else None for path in paths))


def open_channel(endpoint: Endpoint, options: Options) -> grpc.Channel:
    """A channel to an endpoint's server, over TLS where its URL says so."""
    patch_grpc()
    if endpoint.authority:
        options = (*options, ("grpc.default_authority", endpoint.authority))
    if endpoint.tls:
        return grpc.secure_channel(endpoint.address, credentials_of(endpoint.security), options=options)
    return grpc.insecure_channel(endpoint.address, options=options)


def compressing(options: Options, compression: str) -> Options:
    """The options of a channel whose messages may be compressed both ways, if any are.

    The limit of an answer then holds for its bytes on the wire, before grpcio unpacks it.
    """
    if not compression:
        return options
    return tuple((name, value) for name, value in options if "compress" not in name)


def metadata_of(endpoint: Endpoint) -> Metadata:
    """What every call to an endpoint carries: token and headers; None without any. Raises SecurityError.

    grpcio takes bytes for names that end in `-bin`, and writes them in base64.
    """
    named = headers_of(endpoint).items()
    return tuple((name, bytes_of(name, value) if is_binary(name) else value) for name, value in named) or None


class GrpcLibrary(Transport):
    """Calls the codec's method with the bytes that it has prepared."""

    users: ClassVar[int] = 0
    """How many are open in this process."""
    shared: ClassVar[RefCounted[LeastLoaded[grpc.Channel]]] = RefCounted()
    _channel: grpc.Channel | SharedPlace[grpc.Channel] | None = None
    _call: Callable[..., bytes] | None = None
    _metadata: Metadata = None

    @classmethod
    def connections(cls, users: int, channels: str, tls: bool = False) -> int:
        """As many as there are channels, except that gRPC joins those made with the same arguments.

        Over TLS it has none to join: grpcio makes new credentials for each channel, which are different
        arguments.
        """
        joined = channels == SAME_ARGS and not tls
        return min(users, 1) if joined else super().connections(users, channels, tls)

    def open(self) -> None:
        """Make a channel of its own, or take a place among the shared ones."""
        patch_grpc()
        GrpcLibrary.users += 1
        size_thread_pool(GrpcLibrary.users)
        endpoint, channels, compression = self.endpoint, self.channels, self.codec.compression
        self._metadata = metadata_of(endpoint)
        joined = channels.kind == SAME_ARGS
        options = compressing(JOINED_OPTIONS if joined else CHANNEL_OPTIONS, compression)
        if channels.size:
            place = endpoint.address, endpoint.authority, endpoint.tls, endpoint.security
            name = (*place, compression, channels.size)
            self._channel = SharedPlace(
                self.shared, name, channels.size, lambda: open_channel(endpoint, options)
            )
        else:
            self._channel = open_channel(endpoint, options)

    def exchange(self, prepared: PreparedRequest) -> Reply:
        """Call and parse. `wait` is the whole call in flight: gRPC shows neither sending nor receiving, nor
        how long a call stood behind others of its channel, nor what compression took, nor how large a
        compressed answer was.
        """
        call = self._call or self._first_call()
        began_ns = time.perf_counter_ns()
        metadata, own = self._metadata, prepared.headers
        if own:  # of this call alone
            metadata = (*(metadata or ()), *own.items())
        how = {"timeout": self.timeout_s, "metadata": metadata}
        body = call(bytes(prepared.body), compression=COMPRESSIONS[self.codec.compression], **how)
        received_ns = time.perf_counter_ns()
        if len(body) > prepared.largest_reply:
            raise ValueError(f"an answer of {len(body):,} bytes")
        embeddings = self._vectors(GrpcAnswer(body))
        decode_ns = time.perf_counter_ns() - received_ns
        return Reply(embeddings, len(body), {"wait": received_ns - began_ns, "decode": decode_ns})

    def _first_call(self) -> Callable[..., bytes]:
        """The method on this user's channel, kept for the requests to come."""
        channel = self._channel
        assert channel is not None, "call open() before send()"
        if isinstance(channel, SharedPlace):
            channel = channel.thing
        self._call = channel.unary_unary(self.codec.path, request_serializer=None, response_deserializer=None)
        return self._call

    def close(self) -> None:
        """Close the channel: one left to the garbage collector can hang the process under gevent."""
        channel, self._channel, self._call = self._channel, None, None
        if channel is not None:
            GrpcLibrary.users -= 1
            channel.close()
