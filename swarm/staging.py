"""From the master's message about a cell to the stage that a worker's users find themselves on."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from typing import Any

import numpy as np

from swarm.errors import StudyError
from swarm.launch import HOST_VARIABLE
from users.base import InferenceUser
from users.endpoint import Endpoint
from users.images import ImageSet
from users.stage import LIBRARY, Stage, prepare_pool
from users.transport import PLACEHOLDER

REACH_S = 5.0


def user_class_for(endpoint: Endpoint, classes: list[type[Any]]) -> type[InferenceUser]:
    """The locustfile's user class that speaks the endpoint's protocol and payload. Raises StudyError."""
    for made in classes:
        transport = getattr(made, "transport", None)
        if transport and (transport.protocol, transport.payload) == (endpoint.protocol, endpoint.payload):
            found: type[InferenceUser] = made
            return found
    raise StudyError(f"the locustfile has no user class for {endpoint.payload} over {endpoint.protocol}")


def own_host() -> str:
    """The name of the client host that this process runs on: as the launcher calls it, or the machine's."""
    return os.environ.get(HOST_VARIABLE) or socket.gethostname()


def located(endpoint: Mapping[str, Any], addresses: Mapping[str, str]) -> Endpoint:
    """An endpoint from its dict, where this host reaches it: `addresses` has a server's address by host."""
    made = Endpoint.from_dict(dict(endpoint))
    return made.at(addresses[own_host()]) if own_host() in addresses else made


def stage_of(
    data: Mapping[str, Any], study: Mapping[str, Any], images: ImageSet, user_class: type[InferenceUser]
) -> Stage:
    """A stage with every request prepared, from the messages about the cell and the study."""
    endpoint = located(data["endpoint"], data["addresses"])
    golden = np.frombuffer(study["golden"], dtype=np.float32).reshape(len(images), -1)
    request_id = PLACEHOLDER if study["trace"] else ""
    return Stage(
        endpoint,
        prepare_pool(user_class.transport, images, data["batch"], endpoint, request_id),
        study["timeout_s"],
        cell=data["cell"],
        repeat=data["repeat"],
        golden=golden if endpoint.computes and golden.size > 0 else None,
        min_cosine=study["min_cosine"],
        images=images if data["client"] == LIBRARY else None,
        channels=data["channels"],
    )


def check_reach(endpoint: Endpoint) -> None:
    """Raises StudyError where this host gets no connection to an endpoint."""
    try:
        socket.create_connection((endpoint.host, endpoint.port), REACH_S).close()
    except OSError as error:
        raise StudyError(
            f"host {own_host()} gets no connection to {endpoint.name} at {endpoint.address}"
            f" ({error.strerror or error}); give a URL that every host can reach"
        ) from error
