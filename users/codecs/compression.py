"""Compressed requests and answers: gzip and deflate, by HTTP's and gRPC's common names for them."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from users.codecs.base import Answer, Codec, PreparedRequest
from users.codecs.packing import DEFAULT_LEVEL, deflated
from users.inputs.images import ImageSet
from users.inputs.pause import give_way

HTTP_LEVELS = {"gzip": 9}
"""As tritonclient has it over HTTP, by Python's `gzip.compress`; all others compress at zlib's default, 6."""


class Compressed(Codec):
    """Another codec's requests, compressed, and its answers, which the transport has unpacked.

    `by_library`: grpcio compresses itself what it sends. Over gRPC a message that would become no smaller is
    sent as it is, as gRPC's own libraries do.
    """

    def __init__(self, codec: Codec, algorithm: str, by_library: bool = False) -> None:
        super().__init__(codec.endpoint)
        self.name, self.wire = codec.name, codec.wire  # type: ignore[misc]
        self.success, self.compression = codec.success, algorithm
        self._codec, self._later = codec, by_library and codec.wire == "grpc"
        self._level = HTTP_LEVELS.get(algorithm, DEFAULT_LEVEL) if codec.wire == "http" else DEFAULT_LEVEL
        self._sizes: dict[tuple[int, ...], int] = {}

    @property
    def path(self) -> str:
        """The same."""
        return self._codec.path

    def prepare(self, images: ImageSet, indices: tuple[int, ...], request_id: str = "") -> PreparedRequest:
        """The same request with a compressed body, and over HTTP the fields that say so."""
        made = self._codec.prepare(images, indices, request_id)
        if self._later:
            return replace(made, wire_bytes=self._sizes.get(indices, 0))
        body = deflated(made.body, self.compression, self._level)
        if self.wire == "grpc":
            return made if len(body) >= len(made.body) else replace(made, body=body, packing=self.compression)
        both = dict.fromkeys(("Content-Encoding", "Accept-Encoding"), self.compression)
        return replace(made, body=body, headers={**made.headers, **both}, packing=self.compression)

    def weigh(self, images: ImageSet, batches: Iterable[tuple[int, ...]]) -> None:
        """Before any load: how large each request will be on the wire, where grpcio compresses it.

        It does not tell, and compresses by zlib at its default level.
        """
        for indices in batches if self._later else ():
            body = self._codec.prepare(images, indices).body
            self._sizes[indices] = min(len(body), len(deflated(body, self.compression)))
            give_way()

    def vectors(self, answer: Answer) -> NDArray[np.float32]:
        """The same."""
        return self._codec.vectors(answer)

    def vectors_by_library(self, answer: Answer) -> NDArray[np.float32]:
        """The same."""
        return self._codec.vectors_by_library(answer)

    def server_ns(self, answer: Answer) -> Mapping[str, int]:
        """The same."""
        return self._codec.server_ns(answer)
