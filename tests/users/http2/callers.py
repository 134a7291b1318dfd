"""Users of the own gRPC wire who send bytes as they are, so that tests choose every byte of both ways."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager

import gevent
import numpy as np
from gevent import socket
from numpy.typing import NDArray

from tests.processes import PATIENCE_S
from tests.users.http2.peer import Peer
from users.codecs.base import Answer, Codec, PreparedRequest
from users.endpoint import Endpoint
from users.errors import RequestError
from users.http2.sender import FIFO
from users.inputs.images import ImageSet
from users.result import NONE
from users.transport.base import Transport
from users.transport.transports import client

PICTURE_BYTES = 602_112
Outcome = bytes | RequestError


class Plain(Codec):
    """The request's body and the answer's are bytes, and nothing more."""

    name, wire = "plain", "grpc"
    path = "/test.Plain/Call"

    def prepare(self, images: ImageSet, indices: tuple[int, ...], request_id: str = "") -> PreparedRequest:
        """Not asked for here."""
        raise NotImplementedError

    def vectors(self, answer: Answer) -> NDArray[np.float32]:
        """Each byte a number."""
        return np.frombuffer(answer.body, np.uint8).astype(np.float32)[None]


class Asked(gevent.Greenlet):  # type: ignore[misc]
    """A call under way: it gives its Outcome, and has its phases and size once it is a good one."""

    phases_ns: Mapping[str, int] = NONE
    response_bytes = 0

    def __init__(self, user: Transport, body: bytes) -> None:
        super().__init__()
        self._user, self._prepared = user, PreparedRequest(body, (0,))

    def _run(self) -> Outcome:
        try:
            reply = self._user.send(self._prepared)
        except RequestError as error:
            return error
        self.phases_ns, self.response_bytes = reply.phases_ns, reply.response_bytes
        return reply.embeddings.astype(np.uint8).tobytes()


class Callers:
    """Users of one channel: each `call` is of the next one in turn, who must not be in a call."""

    def __init__(self, users: list[Transport]) -> None:
        self.users = users
        self._next = 0

    def call(self, body: bytes = b"a request") -> Asked:
        """Begin a call."""
        asked = Asked(self.users[self._next % len(self.users)], body)
        self._next += 1
        asked.start()
        gevent.sleep(0)
        return asked

    def calls(self, count: int, size: int = PICTURE_BYTES) -> list[Asked]:
        """So many calls at once, whose bodies differ."""
        return [self.call(bytes((number + 1,)) * size) for number in range(count)]


def ended(call: Asked) -> Outcome:
    """The Outcome of a call that must end now."""
    found: Outcome = call.get(timeout=PATIENCE_S)
    return found


def kinds(*calls: Asked) -> list[str]:
    """How calls have failed, and `good` for those that have not."""
    found = [ended(call) for call in calls]
    return [str(one.kind) if isinstance(one, RequestError) else "good" for one in found]


class Listener:
    """Where the client connects; each connection is a Peer for the test to drive."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._peers: list[Peer] = []
        self.address = f"127.0.0.1:{self._socket.getsockname()[1]}"

    def accept(self, receives_bytes: int = 0) -> Peer:
        """The next connection, of which nothing has been read; its kernel keeps about so many bytes."""
        with gevent.Timeout(PATIENCE_S):
            accepted, _ = self._socket.accept()
        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if receives_bytes:
            accepted.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receives_bytes)
        self._peers.append(Peer(accepted))
        return self._peers[-1]

    def forget(self) -> None:
        """Hang up on everybody."""
        for peer in self._peers:
            peer.close()
        self._peers.clear()

    def close(self) -> None:
        """And listen no more."""
        self.forget()
        self._socket.close()


@contextmanager
def callers(
    address: str,
    users: int = 1,
    timeout_s: float = PATIENCE_S,
    by_library: bool = False,
    scheduling: str = FIFO,
) -> Iterator[Callers]:
    """So many users of one shared channel to an address, by the own wire or by grpcio."""
    codec = Plain(Endpoint("x", "triton", "grpc", "fp32", address))
    with ExitStack() as stack:
        made = [client(codec, timeout_s, "shared", by_library, scheduling) for _ in range(users)]
        yield Callers([stack.enter_context(user) for user in made])
