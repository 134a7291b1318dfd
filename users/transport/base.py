"""How a way of sending presents itself: open, send many times what a codec has prepared, close."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import NamedTuple, Self

import gevent
import numpy as np
from numpy.typing import NDArray

from users.codecs.base import Codec, PreparedRequest
from users.errors import RequestError, request_error
from users.http2.sender import SCHEDULING
from users.result import NONE
from users.transport.connections import PER_USER, parse


class Reply(NamedTuple):
    """The server's answer: float32 of shape [batch, dimension], its size on the wire, the parts it stated.

    `phases_ns`: the parts of the request's time that this client saw, by their names: connect (where a
    connection was made for it) and of it resolve (the look-up of the host's name), encode, stream_wait and
    flow_wait (both of the suite's own gRPC), send, wait, receive, decode. `from_cache`: whether a cache
    answered, None where no header tells.
    """

    embeddings: NDArray[np.float32]
    response_bytes: int
    phases_ns: Mapping[str, int] = NONE
    server_ns: Mapping[str, int] = NONE
    from_cache: bool | None = None


class Transport(ABC):
    """One user's way to the endpoint of a codec. Opened and closed by the greenlet that uses it.

    `channels`: whether users have connections of their own, or share them, in the words of
    users.transport.connections.
    `by_library`: send as a plain client does, by tritonclient's codec and the library it stands on, and not
    by the suite's own client. `scheduling`: whose turn it is on a connection of the suite's own gRPC, one of
    users.http2.sender's. Raises ValueError where channels are others.
    """

    def __init__(
        self,
        codec: Codec,
        timeout_s: float,
        channels: str = PER_USER,
        by_library: bool = False,
        scheduling: str = SCHEDULING,
    ) -> None:
        self.codec, self.endpoint = codec, codec.endpoint
        self.timeout_s = timeout_s
        self.channels = parse(channels)
        self.by_library, self.scheduling = by_library, scheduling
        self._vectors = codec.vectors_by_library if by_library else codec.vectors

    @classmethod
    def connections(cls, users: int, channels: str, tls: bool = False) -> int:
        """How many TCP connections so many users of one process should have, once each has sent."""
        return min(users, parse(channels).size or users)

    @abstractmethod
    def open(self) -> None:
        """Make the client. Connections may be made lazily by the first request."""

    def send(self, prepared: PreparedRequest) -> Reply:
        """Send one request and wait for its answer. Raises RequestError and nothing else."""
        try:
            return self.exchange(prepared)
        except RequestError:
            raise
        except (Exception, gevent.Timeout) as error:
            raise request_error(error) from error

    @abstractmethod
    def exchange(self, prepared: PreparedRequest) -> Reply:
        """Send and receive; may raise whatever the client library raises."""

    @abstractmethod
    def close(self) -> None:
        """Close every connection. Safe to call twice."""

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
