"""From options, or from the embedded servers' own words, to the endpoints of a study."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from swarm.errors import UsageError
from swarm.options import Options
from users.endpoint import EMULATED, Endpoint

FLAGS = {
    "pytorch-http": "--pytorch-url",
    "onnx-http": "--onnx-http-url",
    "onnx-grpc": "--onnx-grpc-url",
    "trt-http": "--trt-http-url",
    "trt-grpc": "--trt-grpc-url",
    "emulated-http": "--emulated-http-url",
    "emulated-grpc": "--emulated-grpc-url",
}
"""Which option names the target of an endpoint."""


def endpoints_from_options(options: Options) -> list[Endpoint]:
    """The endpoints whose URLs were given. Raises UsageError on an unreadable URL, or where none is left."""
    urls = options.urls
    made = [
        Endpoint("pytorch-http", "pytorch", "http", "jpeg", urls.get("pytorch_url", "")),
        Endpoint("onnx-http", "onnx", "http", "fp32", urls.get("onnx_http_url", ""), options.onnx_model),
        Endpoint("onnx-grpc", "onnx", "grpc", "fp32", urls.get("onnx_grpc_url", ""), options.onnx_model),
        Endpoint("trt-http", "trt", "http", "fp32", urls.get("trt_http_url", ""), options.trt_model),
        Endpoint("trt-grpc", "trt", "grpc", "fp32", urls.get("trt_grpc_url", ""), options.trt_model),
        Endpoint("emulated-http", EMULATED, "http", "fp32", urls.get("emulated_http_url", ""), EMULATED),
        Endpoint("emulated-grpc", EMULATED, "grpc", "fp32", urls.get("emulated_grpc_url", ""), EMULATED),
    ]
    given = [e for e in made if e.address and not (options.skip_trt and e.backend == "trt")]
    if not given:
        raise UsageError("no endpoint is left to test: give --pytorch-url, --onnx-http-url or another target")
    return [
        with_address(endpoint, parse_address(FLAGS[endpoint.name], endpoint.address)) for endpoint in given
    ]


def with_address(endpoint: Endpoint, address: str) -> Endpoint:
    """The same endpoint at another address."""
    return Endpoint.from_dict({**endpoint.to_dict(), "address": address})


def parse_address(flag: str, url: str) -> str:
    """`host:port` of a URL with or without its scheme. Raises UsageError."""
    try:
        parts = urlsplit(url if "//" in url else f"//{url}")
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    extra = parts.path.strip("/") or parts.query or parts.fragment or parts.username
    if parts.scheme not in ("", "http", "grpc") or not parts.hostname or port is None or extra:
        raise UsageError(f"{flag} {url!r}: give host:port or http://host:port, and no path")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{host}:{port}"


def endpoints_from_ready(ready: Mapping[str, Any], skip_trt: bool) -> list[Endpoint]:
    """The endpoints of the embedded servers, from their `ready` event."""
    servers = dict(ready["endpoints"])
    made = []
    if "pytorch" in servers:
        address = parse_address("pytorch", servers.pop("pytorch")["url"])
        made.append(Endpoint("pytorch-http", "pytorch", "http", "jpeg", address))
    for backend, server in servers.items():
        if not (skip_trt and backend not in ("onnx", EMULATED)):
            model = server["model"]
            made.append(Endpoint(f"{backend}-http", backend, "http", "fp32", server["http"], model))
            made.append(Endpoint(f"{backend}-grpc", backend, "grpc", "fp32", server["grpc"], model))
    return made
