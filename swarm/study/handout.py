"""The beginning of a study: waits for workers, fetches golden embeddings, and sends them to every worker."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gevent

from swarm.distributed.workers import Answers, Workers
from swarm.errors import StudyError
from swarm.options.model import Options
from swarm.study.conductor import PREPARE_S
from swarm.targets.golden import golden_embeddings
from swarm.targets.request_forms import prefix
from users.endpoint import Endpoint
from users.inputs.images import ImageSet

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


def hand_out(
    workers: Workers,
    endpoints: Sequence[Endpoint],
    images: ImageSet,
    options: Options,
    say: Callable[[str], None],
) -> None:
    """Fetch the golden embeddings; give every worker what it needs. Raises SwarmError.

    Where no model computes there are none, and answers are checked for their form alone.
    """
    golden = golden_embeddings(endpoints, images, options.request_timeout, options.golden, say)
    study = {
        "images": options.images,
        "texts": options.texts,
        "pool_bytes": options.pool_bytes,
        "kinds": list(images.groups),
        "sha256": images.sha256,
        "golden": {space: rows.tobytes() for space, rows in golden.items()},
        "min_cosine": options.min_cosine,
        "timeout_s": options.request_timeout,
        "scheduling": options.grpc_scheduling,
        "slo": options.slo,
        "raw_results": options.raw_results,
        "trace": options.trace,
        "traceparent": options.traceparent,
        "regions": prefix(),
    }
    ask_all(workers, "study", study)


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
