"""The four kinds of request, and their bodies: the same bytes, from the same pictures, for every arm."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar

Item = TypeVar("Item")
GRPC_METHOD = "/inference.GRPCInferenceService/ModelInfer"
MODEL = "null"
TENSORS, PICTURES, MACHINE = "tensors.npy", "pictures", "machine.json"
"""What lies beside the bodies: the pictures as one array and as JPEG files, and what they were written on."""


@dataclass(frozen=True)
class Kind:
    """One kind of request: its protocol, its pictures, and where it is sent to."""

    name: str
    protocol: Literal["http", "grpc"]
    batch: int
    path: str
    described: str

    @property
    def is_jpeg(self) -> bool:
        """Whether it goes to the project's own service, and not to Triton."""
        return self.path == "/embed"


INFER = f"/v2/models/{MODEL}/infer"
KINDS = {
    kind.name: kind
    for kind in (
        Kind("jpeg-http", "http", 1, "/embed", "base64 JPEG in JSON, 14 KB"),
        Kind("fp32-http", "http", 1, INFER, "float32 tensor, 602 KB"),
        Kind("fp32-grpc", "grpc", 1, GRPC_METHOD, "float32 tensor, 602 KB"),
        Kind("fp32-http-b32", "http", 32, INFER, "32 float32 tensors, 19.3 MB"),
    )
}


@dataclass(frozen=True)
class Bodies:
    """The prepared requests of one kind: HTTP headers, and bodies in the order in which they are sent."""

    headers: dict[str, str]
    bodies: list[bytes]


def read_bodies(folder: Path, kind: str) -> Bodies:
    """What benchmarks.generating.bodies wrote."""
    headers = json.loads((folder / kind / "headers.json").read_text())
    return Bodies(headers, [path.read_bytes() for path in body_files(folder, kind)])


def in_turn(items: Sequence[Item], first: int) -> Iterator[Item]:
    """All of them, again and again; each user begins at another, `first` being which user it is.

    >>> list(itertools.islice(in_turn("abc", 4), 4))
    ['b', 'c', 'a', 'b']
    """
    shift = first % len(items)
    return itertools.cycle([*items[shift:], *items[:shift]])


def body_files(folder: Path, kind: str) -> list[Path]:
    """The files of the bodies, in order."""
    return sorted((folder / kind).glob("*.body"))


def http_head(kind: Kind, headers: dict[str, str], address: str, size: int) -> bytes:
    """The request line and the headers of a POST, with the empty line after them."""
    lines = [f"POST {kind.path} HTTP/1.1", f"Host: {address}", f"Content-Length: {size}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()
