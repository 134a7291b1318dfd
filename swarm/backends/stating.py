"""What a server by URL holds, by its own word: ours tell model and weights, and random ones are named."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from swarm.backends.server_info import computing, of_service
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
