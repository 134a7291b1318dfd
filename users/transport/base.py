"""How a way of sending presents itself: prepare once, then open, send many times, close."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Self

import gevent
import numpy as np
from numpy.typing import NDArray

from users.endpoint import Endpoint
from users.errors import RequestError, request_error
from users.inputs.images import ImageSet
from users.result import NONE
from users.transport.connections import PER_USER, parse
from users.transport.size_limits import IMAGE_BYTES, SPARE_BYTES

EMBEDDING_SIZE = 512
PLACEHOLDER = "0" * 16
"""Stands in a prepared request for the id that it is given when it is sent; ids are as long."""


@dataclass(frozen=True, slots=True)
class PreparedRequest:
    """A request ready to send: its bytes, its headers, and the indices of its pictures in the ImageSet.

    `body`: bytes where gRPC sends it, which takes nothing else; over HTTP a view of bytes will do.
    `id_at`: where in the body its id begins, or -1 where it has none. `head`: the headers as HTTP writes them
    behind a request line and its Host, to the empty line before the body.
    """

    body: bytes | memoryview
    indices: tuple[int, ...]
    headers: Mapping[str, str] = field(default_factory=dict)
    id_at: int = -1
    head: bytes = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        lines = [f"{name}: {value}\r\n" for name, value in self.headers.items()]
        head = f"{''.join(lines)}Content-Length: {len(self.body)}\r\n\r\n".encode("latin-1")
        object.__setattr__(self, "head", head)

    @property
    def largest_reply(self) -> int:
        """The most bytes that an answer to it may have."""
        return SPARE_BYTES + len(self.indices) * IMAGE_BYTES

    def renamed(self, request_id: str) -> PreparedRequest:
        """The same request under another id of the same length; the body is copied once."""
        view = memoryview(self.body)
        end = self.id_at + len(request_id)
        return replace(self, body=b"".join((view[: self.id_at], request_id.encode(), view[end:])))


class Reply(NamedTuple):
    """The server's answer: float32 of shape [batch, 512], its size on the wire, and the parts it stated.

    `phases_ns`: the parts of the request's time that this client saw, by their names: encode, send,
    wait, receive, decode.
    """

    embeddings: NDArray[np.float32]
    response_bytes: int
    phases_ns: Mapping[str, int] = NONE
    server_ns: Mapping[str, int] = NONE


class Transport(ABC):
    """One user's way to one endpoint. Opened and closed by the greenlet that uses it.

    `channels`: whether users have connections of their own, or share them, in the words of
    users.transport.connections.
    `by_library`: send as a plain client does, by tritonclient's codec and the HTTP library it stands on, and
    not by the suite's own client. Raises ValueError where channels are others.
    """

    def __init__(
        self, endpoint: Endpoint, timeout_s: float, channels: str = PER_USER, by_library: bool = False
    ) -> None:
        self.endpoint = endpoint
        self.timeout_s = timeout_s
        self.channels = parse(channels)
        self.by_library = by_library

    @classmethod
    def connections(cls, users: int, channels: str, tls: bool = False) -> int:
        """How many TCP connections so many users of one process should have, once each has sent."""
        return min(users, parse(channels).size or users)

    @classmethod
    @abstractmethod
    def prepare(
        cls, images: ImageSet, indices: tuple[int, ...], endpoint: Endpoint, request_id: str = ""
    ) -> PreparedRequest:
        """Build the request for the pictures at `indices`, once, outside any measurement.

        `request_id` is for the server's own records, where the protocol has a place for it.
        """

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


def id_place(body: bytes, request_id: str) -> int:
    """Where a request's id begins in its body: `PreparedRequest.id_at`."""
    return body.index(request_id.encode()) if request_id else -1


def rotation(count: int, batch: int) -> list[tuple[int, ...]]:
    """Batches of picture indices that use every one of `count` pictures, wrapping round at the end.

    >>> rotation(5, 2)
    [(0, 1), (2, 3), (4, 0)]
    """
    return [tuple((first + offset) % count for offset in range(batch)) for first in range(0, count, batch)]
