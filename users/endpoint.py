"""An Endpoint is one way to reach the model: backend × protocol × payload."""

from __future__ import annotations

import ipaddress
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from users.tls import OPEN, Security

Protocol = Literal["http", "grpc"]
Payload = Literal["jpeg", "fp32", "json", "uint8"]

NULL = "null"
"""The model that does no work, which floors ask for, and what ledgers call a floor's backend."""
FLOOR = "-floor"


def is_loopback(host: str) -> bool:
    """Whether an IP address is of this machine alone, or a name is `localhost`."""
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return host == "localhost"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where and how to ask for embeddings.

    `backend` is the name of one that is registered. `address` is `host:port`; `model` is the name that
    requests have of the model, empty where the server has only one. `tls`: whether its server is reached over
    TLS; `security` says how, and has the name of the token's variable. `floor_of`: the endpoint whose floor
    this is, or nothing.

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
    floor_of: str = ""

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
    def behind(self) -> str:
        """What stands behind it as ledgers name it: its backend, or for a floor that there is no model."""
        return NULL if self.floor_of else self.backend

    def floor(self) -> Endpoint:
        """The same server's null model: what a request costs without a model's work."""
        model = NULL if self.model else ""
        return replace(self, name=f"{self.name}{FLOOR}", model=model, floor_of=self.name)

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
