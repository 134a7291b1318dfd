"""gRPC as the suite sends it: prepared bytes on HTTP/2 streams of its own, each moment stamped."""

import errno
import ssl
import time
from collections.abc import Mapping
from typing import Any, ClassVar

import gevent
from gevent.lock import BoundedSemaphore

from users.codecs.base import PreparedRequest
from users.codecs.packing import inflated
from users.endpoint import Endpoint
from users.http2.call import Call, GrpcAnswer
from users.http2.connection import Http2Connection
from users.http2.figures import FIGURES
from users.http2.header_blocks import literals, request_block
from users.http2.sender import SCHEDULING
from users.http2.status import Unprocessed
from users.transport.base import Reply, Transport
from users.transport.connections import LeastLoaded, RefCounted, SharedPlace
from users.transport.headers import headers_of
from users.transport.size_limits import LARGEST_BYTES
from users.transport.sockets import Deadline, Socket, TlsSocket, connect

TRIES, CONNECTIONS = 2, 5
"""How often a call is sent that the server says it has not processed; how many connections are tried for one
that was not sent."""


class GrpcChannel:
    """Calls to an endpoint's server over one connection at a time, made by the first of them.

    A connection that the server ends, or whose stream ids have run out, finishes what is under way; the next
    call makes another. A call that the server has not processed is sent once more, there.
    """

    def __init__(self, endpoint: Endpoint, scheduling: str = SCHEDULING, first_stream: int = 1) -> None:
        self._endpoint, self._scheduling, self._first_stream = endpoint, scheduling, first_stream
        self._connecting = BoundedSemaphore(1)
        self._connection: Http2Connection | None = None
        self._resolve_ns = 0

    def call(
        self, path: str, body: bytes | memoryview, timeout_s: float, metadata: Mapping[str, str] | None = None
    ) -> GrpcAnswer:
        """One call. Raises StatusError, ValueError, OSError, gevent.Timeout."""
        with gevent.Timeout(timeout_s):
            return self.exchange(
                Call(block_of(self._endpoint, path, timeout_s, metadata), body, LARGEST_BYTES)
            )

    def exchange(self, call: Call) -> GrpcAnswer:
        """A call made elsewhere, as long as it takes. Raises StatusError, ValueError, OSError."""
        tries = connections = 0
        while True:
            try:
                return self._usable(call).exchange(call)
            except Unprocessed as error:
                tries, connections = tries + error.sent, connections + 1
                if tries == TRIES or connections == CONNECTIONS:
                    # As grpcio has it: the connection's fault, and no answer that refuses.
                    raise ConnectionResetError(errno.ECONNRESET, error.details) from error
            FIGURES.counts["retried"] += 1
            call.begin_again()

    def _usable(self, call: Call) -> Http2Connection:
        """The connection; the first caller makes one where there is none, and others wait for it."""
        connection = self._connection
        if connection is not None and connection.usable:
            return connection
        began_ns = time.perf_counter_ns()
        with self._connecting:
            if self._connection is None or not self._connection.usable:
                self._connection = self._connected()
            took_ns = time.perf_counter_ns() - began_ns
            call.connect_ns += took_ns
            call.resolve_ns += min(took_ns, self._resolve_ns)
            return self._connection

    def _connected(self) -> Http2Connection:
        socket = negotiated(connect(self._endpoint))
        self._resolve_ns = socket.resolve_ns
        connection = Http2Connection(socket, self._scheduling, self._first_stream)
        try:
            connection.open()
        except BaseException:
            connection.close()
            raise
        return connection

    def close(self) -> None:
        """Close the connection; calls under way fail."""
        if self._connection is not None:
            self._connection.close()


def negotiated(socket: Socket) -> Socket:
    """The same where HTTP/2 was agreed upon. Raises ssl.SSLError."""
    if isinstance(socket, TlsSocket) and socket.alpn != "h2":
        socket.close()
        raise ssl.SSLError(1, "the server does not offer HTTP/2 (ALPN h2), which gRPC needs")
    return socket


def block_of(
    endpoint: Endpoint, path: str, timeout_s: float, metadata: Mapping[str, str] | None = None
) -> bytes:
    """What each call of a method begins with: its token and headers included. Raises SecurityError."""
    named = {**headers_of(endpoint), **(metadata or {})}
    return request_block(path, endpoint.authority or endpoint.address, endpoint.tls, timeout_s, named)


def encodings(compression: str) -> dict[str, str]:
    """The metadata that says how messages are compressed, and may be in answers."""
    if not compression:
        return {}
    return {"grpc-encoding": compression, "grpc-accept-encoding": f"identity,{compression}"}


def unpacked(answer: GrpcAnswer, largest: int) -> GrpcAnswer:
    """The answer as its server made it, of at most `largest` bytes. Raises ValueError."""
    if not answer.packed:
        return answer
    return answer._replace(body=inflated(answer.body, answer.headers.get("grpc-encoding", ""), largest))


class GrpcTransport(Transport):
    """Calls the codec's method with the bytes that it has prepared."""

    shared: ClassVar[RefCounted[LeastLoaded[GrpcChannel]]] = RefCounted()
    _channel: GrpcChannel | SharedPlace[GrpcChannel] | None = None
    _block = b""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._deadline = Deadline(self.timeout_s)

    def open(self) -> None:
        """A channel of its own, or a place among shared ones; nothing is connected yet."""
        to, size = self.endpoint, self.channels.size
        self._block = block_of(to, self.codec.path, self.timeout_s, encodings(self.codec.compression))
        if size:
            name = (to.address, to.authority, to.tls, to.security, self.scheduling, size)
            self._channel = SharedPlace(self.shared, name, size, lambda: GrpcChannel(to, self.scheduling))
        else:
            self._channel = GrpcChannel(to, self.scheduling)

    def exchange(self, prepared: PreparedRequest) -> Reply:
        """Call and parse."""
        channel = self._channel
        assert channel is not None, "call open() before send()"
        if isinstance(channel, SharedPlace):
            channel = channel.thing
        packed, unpacks = bool(prepared.packing), bool(self.codec.compression)
        own = prepared.headers  # of this call alone: behind the block of all
        block = self._block + literals(own) if own else self._block
        call = Call(block, prepared.body, prepared.largest_reply, packed, unpacks)
        with self._deadline:
            answer = channel.exchange(call)
        received_ns = time.perf_counter_ns()
        phases_ns = call.phases_ns(received_ns)
        size, answer = len(answer.body), unpacked(answer, prepared.largest_reply)
        embeddings = self._vectors(answer)
        phases_ns["decode"] = time.perf_counter_ns() - received_ns
        return Reply(embeddings, size, phases_ns, self.codec.server_ns(answer))

    def close(self) -> None:
        """Close the channel, or leave the shared ones."""
        channel, self._channel = self._channel, None
        if channel is not None:
            channel.close()
