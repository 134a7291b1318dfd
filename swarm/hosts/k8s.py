"""Who may talk to whom in the cluster: a study's targets, and its NetworkPolicies."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from swarm.errors import UsageError
from swarm.options.addresses import check_secrets

Labels = dict[str, str]
MASTER_PORT = 5557
DNS = {"ports": [{"protocol": protocol, "port": 53} for protocol in ("UDP", "TCP")]}
"""To any address: clusters differ in where their DNS lives (a pod, the node, the cloud's metadata server)."""
_URL_OPTION = re.compile(r"--[a-z0-9-]+-url")
_SCHEME_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True)
class Target:
    """A server that the study was given: the option that named it, its host and TCP port."""

    option: str
    host: str
    port: int

    @property
    def network(self) -> str:
        """`10.0.0.7/32` where the host is an address; empty for a name, which the cluster looks up."""
        address = as_address(self.host)
        return f"{address}/{address.max_prefixlen}" if address else ""


def targets_of(options: Sequence[str]) -> list[Target]:
    """The servers that a study's `--…-url` options name. Raises UsageError where one is unfit, or none is."""
    found = [target_of(option, url) for option, url in url_options(options)]
    if all(target.option.endswith("-metrics-url") for target in found):
        raise UsageError(
            "no server is named, and the client image starts none: give --pytorch-url, --onnx-http-url"
            " or another target"
        )
    return found


def url_options(options: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Each `--…-url` with its value, whether typed `--x-url URL` or `--x-url=URL`."""
    for index, word in enumerate(options):
        option, equals, url = word.partition("=")
        if _URL_OPTION.fullmatch(option):
            yield option, url if equals else "".join(options[index + 1 : index + 2])


def target_of(option: str, url: str) -> Target:
    """The host and port of a URL, with or without its scheme. Raises UsageError."""
    check_secrets(option, url)
    try:
        parts = urlsplit(url if "//" in url else f"//{url}")
        host, port = parts.hostname, parts.port or _SCHEME_PORTS.get(parts.scheme)
    except ValueError:
        host, port = None, None
    if not host or not port:
        raise UsageError(f"{option} {url!r}: give host:port or http://host:port")
    address = as_address(host)
    if host == "localhost" or (address and (address.is_loopback or address.is_unspecified)):
        raise UsageError(
            f"{option} {url}: in a pod, {host} is the pod itself; name the server as pods reach it"
        )
    return Target(option, host, port)


def as_address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The host as an address, or None where it is a name."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def deny_all() -> dict[str, Any]:
    """The spec that closes every pod of the namespace, both ways; the others open what is needed."""
    return {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}


def to_targets(pods: Labels, targets: Iterable[Target]) -> dict[str, Any]:
    """The spec that lets `pods` out to DNS and the targets' ports, and nowhere else."""
    ports: dict[str, set[int]] = {}
    for target in targets:
        ports.setdefault(target.network, set()).add(target.port)
    rules = [to_network(network, sorted(numbers)) for network, numbers in sorted(ports.items())]
    return {"podSelector": {"matchLabels": pods}, "policyTypes": ["Egress"], "egress": [DNS, *rules]}


def to_network(network: str, ports: Iterable[int]) -> dict[str, Any]:
    """An egress rule: these TCP ports of a network, or of any address where `network` is empty."""
    to = {"to": [{"ipBlock": {"cidr": network}}]} if network else {}
    return {**to, "ports": [{"protocol": "TCP", "port": port} for port in ports]}


def into_master(master: Labels, workers: Labels) -> dict[str, Any]:
    """The spec that lets the workers, and nobody else, in to the master's port."""
    rule = {"from": [{"podSelector": {"matchLabels": workers}}], "ports": [master_port()]}
    return {"podSelector": {"matchLabels": master}, "policyTypes": ["Ingress"], "ingress": [rule]}


def to_master(master: Labels, workers: Labels) -> dict[str, Any]:
    """The spec that lets the workers out to the master's port."""
    rule = {"to": [{"podSelector": {"matchLabels": master}}], "ports": [master_port()]}
    return {"podSelector": {"matchLabels": workers}, "policyTypes": ["Egress"], "egress": [rule]}


def master_port() -> dict[str, Any]:
    """Locust's own port, as policies write it."""
    return {"protocol": "TCP", "port": MASTER_PORT}
