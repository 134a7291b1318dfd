"""Where the targets are, told before the first request: addresses, what they stand for, TLS, and token."""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from users.endpoint import Endpoint


def record_of(endpoint: Endpoint, addresses: Sequence[str]) -> dict[str, Any]:
    """What the fingerprint keeps of a target; of its token only the variable's name."""
    return {
        "address": endpoint.address,
        "resolved": list(addresses),
        "tls": endpoint.tls,
        "token": endpoint.security.token,
    }


def told(endpoint: Endpoint, addresses: Sequence[str]) -> str:
    """The line for a person: `onnx-http: https://gpu:8010 is 10.0.0.5, over TLS, without a token`."""
    security = endpoint.security
    tls = f"over TLS{'' if security.verify else ', unverified'}" if endpoint.tls else "without TLS"
    token = f"token of {security.token}" if security.token else "without a token"
    where = ", ".join(addresses) or "unknown"
    return f"{endpoint.name}: {endpoint.shown} is {where}, {tls}, {token}"


def in_clear(targets: Mapping[str, Mapping[str, Any]]) -> str:
    """The sentence where a token is sent to another machine without TLS; empty where none is."""
    bare = [
        name
        for name, target in targets.items()
        if target["token"] and not target["tls"] and not are_loopback(target["resolved"])
    ]
    if not bare:
        return ""
    return (
        f"WARNING: the token is sent in clear text to {', '.join(bare)}: whoever sees the network can read"
        " it; give https:// or grpcs:// addresses"
    )


def are_loopback(addresses: Collection[str]) -> bool:
    """Whether all are of this machine alone."""
    return bool(addresses) and all(
        ipaddress.ip_address(one.partition("%")[0]).is_loopback for one in addresses
    )


def elsewhere(
    here: Mapping[str, Sequence[str]], there: Mapping[str, Mapping[str, Sequence[str]]]
) -> dict[str, str]:
    """Endpoints whose host is another one for some workers, with a sentence: by worker, then by endpoint."""
    found: dict[str, str] = {}
    for worker, names in there.items():
        for name, addresses in names.items():
            if name in here and set(addresses) != set(here[name]):
                own, its = ", ".join(here[name]) or "unknown", ", ".join(addresses) or "unknown"
                found.setdefault(name, f"its address is {own} for the master and {its} for {worker}")
    return found


def doubts(endpoint: Endpoint, elsewhere: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Caveats, as code and text, of every run of an endpoint for where it is and who has proved that."""
    if endpoint.tls and not endpoint.security.verify:
        yield (
            "tls-unverified",
            f"--tls-no-verify: whoever answers at {endpoint.shown} has not proved its name",
        )
    floor_of = endpoint.floor_of or endpoint.name
    if floor_of in elsewhere:
        yield "targets-differ", elsewhere[floor_of]
