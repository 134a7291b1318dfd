"""The kinds of request, and their bodies: the same bytes, from the same pictures, for every arm."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar

Item = TypeVar("Item")
GRPC_METHOD = "/inference.GRPCInferenceService/ModelInfer"
SERVICE_PATH = "/embed"
MODEL, JPEG_MODEL = "null", "null_jpeg"
"""The null servers' models, of tensors and of JPEG files."""
TENSORS, PICTURES, MACHINE = "tensors.npy", "pictures", "machine.json"
"""What lies beside the bodies: the pictures as one array and as JPEG files, and what they were written on."""


@dataclass(frozen=True)
class Kind:
    """One kind of request: what its pictures are sent as, its protocol, and where it is sent to."""

    name: str
    payload: Literal["jpeg", "fp32"]
    protocol: Literal["http", "grpc"]
    batch: int
    path: str
    described: str

    @property
    def is_service(self) -> bool:
        """Whether it goes to the project's own service, and not to Triton."""
        return self.path == SERVICE_PATH

    @property
    def model(self) -> str:
        """The null server's model, as Triton's requests name it."""
        return JPEG_MODEL if self.payload == "jpeg" else MODEL


INFER = f"/v2/models/{MODEL}/infer"
KINDS = {
    kind.name: kind
    for kind in (
        Kind("jpeg-http", "jpeg", "http", 1, SERVICE_PATH, "base64 JPEG in JSON, 14 KB"),
        Kind("jpeg-grpc", "jpeg", "grpc", 1, GRPC_METHOD, "JPEG as a BYTES tensor, 10 KB"),
        Kind("fp32-http", "fp32", "http", 1, INFER, "float32 tensor, 602 KB"),
        Kind("fp32-grpc", "fp32", "grpc", 1, GRPC_METHOD, "float32 tensor, 602 KB"),
        Kind("fp32-http-b32", "fp32", "http", 32, INFER, "32 float32 tensors, 19.3 MB"),
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
