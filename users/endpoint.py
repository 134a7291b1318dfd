"""An Endpoint is one way to reach the model: backend × protocol × payload."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

Protocol = Literal["http", "grpc"]
Payload = Literal["jpeg", "fp32"]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where and how to ask for embeddings.

    `address` is `host:port`; `model` is Triton's model name, empty for the PyTorch service.

        Endpoint("onnx-grpc", "onnx", "grpc", "fp32", "127.0.0.1:8011", "openclip_vit_b32")
    """

    name: str
    backend: str
    protocol: Protocol
    payload: Payload
    address: str
    model: str = ""

    @property
    def host(self) -> str:
        """The host part of the address, without the brackets of IPv6."""
        return self.address.rpartition(":")[0].strip("[]")

    @property
    def port(self) -> int:
        """The port part of the address."""
        return int(self.address.rpartition(":")[2])

    def to_dict(self) -> dict[str, Any]:
        """Plain values, fit for JSON and msgpack."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Endpoint:
        """The inverse of `to_dict`."""
        return cls(**values)
