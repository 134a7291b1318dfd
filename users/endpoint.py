"""An Endpoint is one way to reach the model: backend × protocol × payload."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from users.tls import OPEN, Security

Protocol = Literal["http", "grpc"]
Payload = Literal["jpeg", "fp32", "json", "uint8"]

NULL, EMULATED = "null", "emulated"
"""Backends behind which no model computes."""
FLOOR = "-floor"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where and how to ask for embeddings.

    `address` is `host:port`; `model` is Triton's model name, empty for the PyTorch service. `tls`: whether
    its server is reached over TLS; `security` says how, and has the name of the token's variable.

        Endpoint("onnx-grpc", "onnx", "grpc", "fp32", "127.0.0.1:8011", "openclip_vit_b32")
    """

    name: str
    backend: str
    protocol: Protocol
    payload: Payload
    address: str
    model: str = ""
    tls: bool = False
    security: Security = OPEN

    @property
    def host(self) -> str:
        """The host part of the address, without the brackets of IPv6."""
        return self.address.rpartition(":")[0].strip("[]")

    @property
    def port(self) -> int:
        """The port part of the address."""
        return int(self.address.rpartition(":")[2])

    @property
    def shown(self) -> str:
        """The address as reports have it: over TLS with the scheme that asks for it."""
        scheme = {"http": "https", "grpc": "grpcs"}[self.protocol]
        return f"{scheme}://{self.address}" if self.tls else self.address

    @property
    def computes(self) -> bool:
        """Whether its answers are embeddings of the pictures sent."""
        return self.backend not in (NULL, EMULATED)

    @property
    def floor_of(self) -> str:
        """The endpoint whose floor this is, or nothing."""
        return self.name.removesuffix(FLOOR) if self.name.endswith(FLOOR) else ""

    @property
    def server(self) -> str:
        """The server behind it by its backend's name: a floor lies on the server whose floor it is."""
        ways = (f"-{self.protocol}", f"-{self.payload}")
        return self.floor_of.removesuffix(ways[0]).removesuffix(ways[1]) or self.backend

    @property
    def has_floor(self) -> bool:
        """Whether a null model takes its payload: not the models that turn another into what theirs takes."""
        return not self.model or self.payload in ("fp32", "json")

    def floor(self) -> Endpoint:
        """The same server's null model: what a request costs without a model's work."""
        return replace(self, name=f"{self.name}{FLOOR}", backend=NULL, model=NULL if self.model else "")

    def at(self, host: str) -> Endpoint:
        """The same endpoint on another host's address, at the same port."""
        bracketed = f"[{host}]" if ":" in host else host
        return replace(self, address=f"{bracketed}:{self.port}")

    def to_dict(self) -> dict[str, Any]:
        """Plain values, fit for JSON and msgpack."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Endpoint:
        """The inverse of `to_dict`; older records say nothing of TLS."""
        return cls(**{**values, "security": Security(**values.get("security", {}))})
