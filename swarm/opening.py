"""The opening of a study: workers there, golden embeddings fetched, and both handed to every worker."""

from __future__ import annotations

import time
from collections.abc import Callable

import gevent

from swarm.conductor import PREPARE_S
from swarm.crew import Crew
from swarm.errors import StudyError
from swarm.golden import golden_embeddings
from swarm.options import Options
from users.endpoint import Endpoint
from users.images import ImageSet
from users.transport import Transport

WORKERS_S = 60.0


def wait_for_workers(crew: Crew, say: Callable[[str], None]) -> int:
    """How many there are, once there is one. Raises StudyError."""
    deadline = time.monotonic() + WORKERS_S
    if not crew.workers():
        say("waiting for a worker to connect")
    while not crew.workers():
        if time.monotonic() > deadline:
            raise StudyError("no worker has connected; start one with --worker")
        gevent.sleep(0.1)
    return len(crew.workers())


def hand_out(
    crew: Crew, reference: Endpoint, transport: type[Transport], images: ImageSet, options: Options
) -> None:
    """Fetch the golden embeddings from `reference`; give every worker what it needs. Raises SwarmError.

    Where no model computes there are none, and answers are checked for their form alone.
    """
    golden = b""
    if reference.computes:
        golden = golden_embeddings(reference, transport, images, options.request_timeout).tobytes()
    study = {
        "images": options.images,
        "sha256": images.sha256,
        "golden": golden,
        "min_cosine": options.min_cosine,
        "timeout_s": options.request_timeout,
        "client": options.client,
        "channels": options.channels,
        "raw_results": options.raw_results,
        "trace": options.trace,
    }
    answers = crew.ask("study", study, PREPARE_S)
    if answers.errors or not answers.replies:
        raise StudyError("; ".join(answers.errors) or "no worker took the study")
