"""A Codec writes the requests of one endpoint before any load, and reads the vectors out of its answers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from users.codecs.packing import deflated, inflated
from users.endpoint import Endpoint
from users.endpoint import Protocol as Wire
from users.inputs.images import ImageSet
from users.result import NONE

PLACEHOLDER = "0" * 16
"""A placeholder in a prepared request for the id that it gets when sent; ids have this length."""
SPARE_BYTES, ITEM_BYTES = 1 << 20, 1 << 16
"""An embedding of 512 numbers in JSON takes a sixth of that."""
NUMBER_BYTES = 32
"""Bytes of a number in JSON, at most."""
LARGEST_BODY = (1 << 31) - 2
"""What gRPC takes at most, and more than any prepared body has."""


@dataclass(frozen=True, slots=True)
class PreparedRequest:
    """A request ready to send: its bytes, its own headers, and the indices of its pictures in the ImageSet.

    `body`: bytes, or a view of bytes that stay as they are; grpcio takes bytes alone. `id_at`: where in the
    body its id begins, or -1 where it has none. `dimension`: that of the vectors, 0 where it is not known.
    `packing`: how the body is compressed, empty where it is not; `id_at` is then its place before that.
    `wire_bytes`: how large grpcio makes it, 0 where it is sent as it is.
    `head`: the headers as HTTP writes them behind a request line and its Host, to the empty line before the
    body.
    """

    body: bytes | memoryview
    indices: tuple[int, ...]
    headers: Mapping[str, str] = field(default_factory=dict)
    id_at: int = -1
    dimension: int = 0
    packing: str = ""
    wire_bytes: int = 0
    head: bytes = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        lines = [f"{name}: {value}\r\n" for name, value in self.headers.items()]
        head = f"{''.join(lines)}Content-Length: {len(self.body)}\r\n\r\n".encode("latin-1")
        object.__setattr__(self, "head", head)

    @property
    def sent_bytes(self) -> int:
        """Of the body on the wire."""
        return self.wire_bytes or len(self.body)

    @property
    def largest_reply(self) -> int:
        """The most bytes that an answer to it may have."""
        return SPARE_BYTES + len(self.indices) * max(ITEM_BYTES, NUMBER_BYTES * self.dimension)

    def with_header(self, name: str, value: str) -> PreparedRequest:
        """The same request with one header more, over gRPC as metadata; its body is not copied."""
        return replace(self, headers={**self.headers, name: value})

    def renamed(self, request_id: str) -> PreparedRequest:
        """The same request under another id of the same length; the body is copied once.

        A compressed one is unpacked for that, and compressed again.
        """
        packed, end = self.packing, self.id_at + len(request_id)
        view = memoryview(inflated(self.body, packed, LARGEST_BODY) if packed else self.body)
        body = b"".join((view[: self.id_at], request_id.encode(), view[end:]))
        return replace(self, body=deflated(body, packed) if packed else body)


class Answer(Protocol):
    """What has come back: headers by their names in lower case, none of grpcio's, and the body."""

    @property
    def headers(self) -> Mapping[str, str]:
        """Of HTTP/1.1, or of HTTP/2 on the suite's own connections."""

    @property
    def body(self) -> bytes | bytearray:
        """All of it."""


class Codec(ABC):
    """How one endpoint is asked. Made once for each user of it; `endpoint` says all that it needs to know.

    `wire` is the protocol that it is of, `name` what `codec` is called in reports. `success` are the statuses
    of HTTP that mean an answer. `compression` is that of requests, and of answers where servers compress
    them, empty for none. `takes_places`: its inputs may lie in shared memory. Raises ValueError, with the end
    of a sentence, if the endpoint's settings are not valid.
    """

    name: ClassVar[str]
    wire: ClassVar[Wire]
    success: Collection[int] = frozenset((200,))
    compression: str = ""
    takes_places: ClassVar[bool] = False

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint

    @property
    @abstractmethod
    def path(self) -> str:
        """Where requests are POSTed, or the gRPC method: `/package.Service/Method`."""

    @abstractmethod
    def prepare(self, images: ImageSet, indices: tuple[int, ...], request_id: str = "") -> PreparedRequest:
        """Build the request for the items at `indices`, once, outside any measurement.

        `request_id` is for the server's own records, where the protocol has a place for it.
        """

    @abstractmethod
    def vectors(self, answer: Answer) -> NDArray[np.float32]:
        """float32 of shape [items, dimension], in the order of the request's items.

        May raise RequestError(bad-reply), or whatever an answer in another form leads to.
        """

    def vectors_by_library(self, answer: Answer) -> NDArray[np.float32]:
        """The same, as a plain client reads them, where that is another way."""
        return self.vectors(answer)

    def server_ns(self, answer: Answer) -> Mapping[str, int]:
        """The parts of its time that the server states with an answer, in nanoseconds."""
        return NONE


def id_place(body: bytes, request_id: str) -> int:
    """Where a request's id begins in its body: `PreparedRequest.id_at`."""
    return body.index(request_id.encode()) if request_id else -1


def rotation(count: int, batch: int) -> list[tuple[int, ...]]:
    """Batches of picture indices that use every one of `count` pictures, wrapping round at the end.

    >>> rotation(5, 2)
    [(0, 1), (2, 3), (4, 0)]
    """
    return [tuple((first + offset) % count for offset in range(batch)) for first in range(0, count, batch)]
