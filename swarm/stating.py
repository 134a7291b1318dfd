"""What a server by URL holds, by its own word: ours tell model and weights, and random ones are named."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import closing
from typing import Any

from swarm.query import PATIENCE_S, Line
from swarm.serving import computing
from users.endpoint import Endpoint
from users.errors import RequestError, translated
from users.redact import quoted

FACTS = ("model", "weights", "emulated")
MOST = 120
"""Characters of each."""


def stated(endpoint: Endpoint) -> dict[str, str]:
    """Those of `FACTS` that the server tells; nothing of one of another make, and it never raises."""
    try:
        with translated():
            told = of_triton(computing(endpoint)) if endpoint.model else of_service(endpoint)
            found = {name: told[name] for name in FACTS if isinstance(told.get(name), str)}
    except RequestError:
        return {}
    return {name: text for name, value in found.items() if (text := quoted(value, MOST))}


def of_triton(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The parameters that `python -m server up` and `export` write into a model's configuration."""
    return {name: value["string_value"] for name, value in config.get("parameters", {}).items()}


def of_service(endpoint: Endpoint) -> Mapping[str, Any]:
    """Of the PyTorch service or a gateway, by its `/readyz`."""
    with closing(Line.to(endpoint, PATIENCE_S)) as line:
        told: Mapping[str, Any] = json.loads(line.get("/readyz"))
        return told
