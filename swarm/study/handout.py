"""The beginning of a study: workers there, golden embeddings fetched, and both handed to every worker."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gevent
import numpy as np
from numpy.typing import NDArray

from swarm.distributed.workers import Answers, Workers
from swarm.errors import StudyError, UsageError
from swarm.options.model import Options
from swarm.study.conductor import PREPARE_S
from users.backends.registry import facts_of, transport_of
from users.endpoint import Endpoint
from users.errors import RequestError
from users.inputs.images import ImageSet
from users.load.check import check_form
from users.transport.base import EMBEDDING_SIZE, rotation

WORKERS_S = 60.0


def wait_for_workers(workers: Workers, say: Callable[[str], None], wanted: int = 1) -> int:
    """How many there are, once there are as many as wanted, or at least one when time is up.

    Raises StudyError where there is none.
    """
    deadline = time.monotonic() + WORKERS_S
    if not workers.taking_part():
        say("waiting for a worker to connect")
    while not workers.taking_part():
        if time.monotonic() > deadline:
            raise StudyError("no worker has connected; start one with --worker")
        gevent.sleep(0.1)
    while (len(workers.taking_part()) < wanted or workers.strangers) and time.monotonic() < deadline:
        gevent.sleep(0.01)
    return len(workers.taking_part())


def hand_out(workers: Workers, reference: Endpoint, images: ImageSet, options: Options) -> None:
    """Fetch the golden embeddings from `reference`; give every worker what it needs. Raises SwarmError.

    Where no model computes there are none, and answers are checked for their form alone.
    """
    golden = b""
    if facts_of(reference).computes:
        golden = golden_embeddings(reference, images, options.request_timeout).tobytes()
    study = {
        "images": options.images,
        "sha256": images.sha256,
        "golden": golden,
        "min_cosine": options.min_cosine,
        "timeout_s": options.request_timeout,
        "raw_results": options.raw_results,
        "trace": options.trace,
    }
    ask_all(workers, "study", study)


def golden_embeddings(endpoint: Endpoint, images: ImageSet, timeout_s: float) -> NDArray[np.float32]:
    """float32 of shape [n, 512], one row a picture. Raises UsageError where the endpoint does not answer."""
    transport = transport_of(endpoint)
    golden = np.zeros((len(images), EMBEDDING_SIZE), dtype=np.float32)
    try:
        with transport(endpoint, timeout_s) as client:
            # One by one: a batch would be the first of its size, and its cost would not be told.
            for indices in rotation(len(images), 1):
                reply = client.send(transport.prepare(images, indices, endpoint))
                check_form(reply, len(indices))
                golden[list(indices)] = reply.embeddings
    except RequestError as error:
        raise UsageError(
            f"{endpoint.name} {endpoint.shown}: no golden embeddings from it ({error})"
        ) from error
    return golden


def check_reach(
    workers: Workers, endpoints: Sequence[Endpoint], ways: Sequence[Mapping[str, str]]
) -> dict[str, dict[str, list[str]]]:
    """Every worker connects to every endpoint, by each way that cells will take. Raises StudyError.

    A way is the servers' address by host; one without any takes the endpoints' own. What comes back is, by
    worker and endpoint, which IP addresses its host has there.
    """
    answers = ask_all(
        workers, "reach", {"endpoints": [endpoint.to_dict() for endpoint in endpoints], "ways": list(ways)}
    )
    return {workers.name(worker): reply.get("resolved") or {} for worker, reply in answers.replies.items()}


def ask_all(workers: Workers, op: str, data: Mapping[str, Any]) -> Answers:
    """Ask every worker there is; what they say. Raises StudyError where one cannot do it, or none answers."""
    answers = workers.ask(op, data, PREPARE_S)
    if answers.errors or not answers.replies:
        raise StudyError("; ".join(answers.errors) or f"no worker answered ({op})")
    return answers
