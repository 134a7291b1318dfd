"""An Endpoint is one way to reach a model: a place, a codec, a contract and a backend, as data."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal
from urllib.parse import urlsplit

from users.contract import UNKNOWN, Contract
from users.tls import OPEN, Security

Protocol = Literal["http", "grpc"]
Payload = Literal["jpeg", "fp32", "fp16", "uint8", "json", "text", "random"]

NULL = "null"
"""The model that does no work, which floors use, and the name of a floor's backend in ledgers."""
FLOOR = "-floor"


def is_loopback(host: str) -> bool:
    """Whether an IP address is of this machine alone, or a name is `localhost`."""
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return host == "localhost"


def name_in(authority: str) -> str:
    """The host's name in what Host or gRPC's authority say, without a port; empty where they say nothing."""
    return (urlsplit(f"//{authority}").hostname or "").rstrip(".")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where and how to ask for embeddings; nothing is ever read out of its `name`, which is the user's.

    Place: `address` is `host:port`, `path` where requests are POSTed if the codec does not know that itself,
    `authority` what Host or gRPC's authority say where that is not the address, `headers` further ones, whose
    `${NAME}` are variables of the environment. `tls`: whether its server is reached over TLS; `security` says
    how, and has the name of the token's variable.

    `backend` is the name of one that is registered: what the server is. `codec` is the name of one, or the
    path of a file with one, then with its `codec_sha256`; empty for that of the backend for its payload, with
    whose `contract` then goes. `model` and `version` are what requests call the model, empty where they name
    none. `settings` are the codec's and the backend's own, as plain values.

    `server`: endpoints of one server have the same; `space`: vectors of one must agree. `stands_for`: the
    backend in whose place it is asked, `computes`: whether it embeds what is sent: both as its backend says
    where they are empty or None. `floor_of`: the endpoint whose floor this is, or nothing.

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
    version: str = ""
    path: str = ""
    authority: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    codec: str = ""
    codec_sha256: str = ""
    contract: Contract = UNKNOWN
    settings: Mapping[str, Any] = field(default_factory=dict, hash=False)
    server: str = ""
    space: str = ""
    stands_for: str = ""
    computes: bool | None = None

    @property
    def host(self) -> str:
        """The host part of the address, without the brackets of IPv6."""
        return self.address.rpartition(":")[0].strip("[]")

    @property
    def port(self) -> int:
        """The port part of the address."""
        return int(self.address.rpartition(":")[2])

    @property
    def tls_name(self) -> str:
        """The name that TLS asks for (SNI) and that the certificate must have: the authority's, or the host.

        >>> replace(Endpoint("e", "v2", "http", "fp32", "10.0.0.5:443"), authority="clip.test:443").tls_name
        'clip.test'
        """
        return name_in(self.authority) or self.host

    @property
    def shares(self) -> str:
        """What endpoints of one server have in common: what it is called, or else what stands behind it."""
        return self.server or self.backend

    @property
    def shown(self) -> str:
        """The address as reports have it: over TLS with the scheme that asks for it."""
        scheme = {"http": "https", "grpc": "grpcs"}[self.protocol]
        return f"{scheme}://{self.address}" if self.tls else self.address

    def url(self, path: str) -> str:
        """The URL of a path of its server over HTTP."""
        return f"{'https' if self.tls else 'http'}://{self.authority or self.address}{path}"

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
    def from_dict(cls, values: Mapping[str, Any]) -> Endpoint:
        """The inverse of `to_dict`; older records say less."""
        made = {
            **values,
            "security": Security(**values.get("security", {})),
            "headers": tuple((name, value) for name, value in values.get("headers", ())),
        }
        if "contract" in values:
            made["contract"] = Contract.from_dict(values["contract"])
        return cls(**made)
