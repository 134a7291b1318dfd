"""Endpoints of our own backends, by their names."""

from dataclasses import replace
from typing import Any

from users.backends.registry import backends
from users.endpoint import Endpoint


def preset(name: str, address: str, model: str = "", **more: Any) -> Endpoint:
    """One at an address, such as `onnx-grpc`; its requests call its model otherwise where that is given."""
    known = {endpoint.name: endpoint for backend in backends().values() for endpoint in backend.endpoints}
    return replace(known[name], address=address, model=model or known[name].model, **more)
