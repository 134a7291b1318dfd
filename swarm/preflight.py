"""Is each target what it should be? Asked once, before any load, with one sentence where it is not."""

from __future__ import annotations

import socket
from collections.abc import Sequence

import gevent
import grpc
import numpy as np
import requests
from numpy.typing import NDArray
from tritonclient.grpc import service_pb2

from swarm.errors import UsageError
from swarm.query import PATIENCE_S, get, post, triton_stub
from swarm.targets import FLAGS
from users.check import check_form
from users.endpoint import Endpoint
from users.errors import RequestError
from users.images import ImageSet
from users.transport import Transport


def check_targets(
    endpoints: Sequence[Endpoint], transports: Sequence[type[Transport]], images: ImageSet
) -> dict[str, NDArray[np.float32]]:
    """The first picture's embedding from every endpoint, by its name: float32 of shape [512].

    All are asked at once. Raises UsageError with the sentence of the first, in order, that is not right.
    """
    jobs = [gevent.spawn(verdict, e, t, images) for e, t in zip(endpoints, transports, strict=True)]
    gevent.joinall(jobs)
    for job in jobs:
        if isinstance(job.value, UsageError):
            raise job.value
    return {endpoint.name: job.value for endpoint, job in zip(endpoints, jobs, strict=True)}


def verdict(
    endpoint: Endpoint, transport: type[Transport], images: ImageSet
) -> NDArray[np.float32] | UsageError:
    """What `check_target` returns or raises: a greenlet that raises would print its traceback."""
    try:
        return check_target(endpoint, transport, images)
    except UsageError as error:
        return error
    except (requests.RequestException, grpc.RpcError, ValueError, KeyError, TypeError) as error:
        flag = FLAGS.get(endpoint.name, endpoint.name)
        return UsageError(
            f"{flag} {endpoint.address}: answers, but not as it should ({type(error).__name__})"
        )


def check_target(endpoint: Endpoint, transport: type[Transport], images: ImageSet) -> NDArray[np.float32]:
    """One endpoint: reachable, of the right kind, its model there, and able to embed a picture."""
    name = f"{FLAGS.get(endpoint.name, endpoint.name)} {endpoint.address}"
    check_reachable(name, endpoint)
    if not endpoint.model:
        check_service(name, endpoint)
    elif endpoint.protocol == "http":
        check_triton_http(name, endpoint)
    else:
        check_triton_grpc(name, endpoint)
    try:
        with transport(endpoint, timeout_s=PATIENCE_S) as client:
            reply = client.send(transport.prepare(images, (0,), endpoint))
        check_form(reply, 1)
    except RequestError as error:
        raise UsageError(f"{name}: answers, but does not embed a picture ({error})") from error
    first: NDArray[np.float32] = reply.embeddings[0]
    return first


def check_reachable(name: str, endpoint: Endpoint) -> None:
    """Somebody listens. Raises UsageError with the reason."""
    try:
        socket.create_connection((endpoint.host, endpoint.port), PATIENCE_S).close()
    except OSError as error:
        reasons = {TimeoutError: f"no answer within {PATIENCE_S:g} s", socket.gaierror: "unknown host name"}
        reason = reasons.get(type(error), error.strerror or str(error)).lower()
        raise UsageError(
            f"{name}: cannot be reached ({reason}); check host and port, and that it runs"
        ) from error


def check_service(name: str, endpoint: Endpoint) -> None:
    """Speaks HTTP; and where it has a `/readyz`, says it is ready."""
    try:
        reply = get(endpoint, "/readyz")
    except requests.RequestException as error:
        raise UsageError(f"{name}: answers, but not over HTTP; give the service's HTTP port") from error
    if reply.status_code == 503:
        raise UsageError(
            f"{name}: the service is not ready, look at its /readyz ({reply.text[:160].strip()})"
        )


def check_triton_http(name: str, endpoint: Endpoint) -> None:
    """A Triton, and with the model ready."""
    try:
        extensions = get(endpoint, "/v2").json()["extensions"]
    except (requests.RequestException, ValueError, KeyError, TypeError):
        extensions = []
    if "statistics" not in extensions:
        raise UsageError(f"{name}: answers, but not as a Triton server; give Triton's HTTP port")
    if not get(endpoint, f"/v2/models/{endpoint.model}/ready").ok:
        index = post(endpoint, "/v2/repository/index")
        models = [row["name"] for row in index.json()] if index.ok else []
        raise UsageError(missing_model(name, endpoint, models))


def check_triton_grpc(name: str, endpoint: Endpoint) -> None:
    """A Triton, and with the model ready."""
    with triton_stub(endpoint) as stub:
        try:
            stub.ServerMetadata(service_pb2.ServerMetadataRequest(), timeout=PATIENCE_S)
        except grpc.RpcError as error:
            sentence = f"{name}: answers, but not as a Triton server; give Triton's gRPC port"
            raise UsageError(sentence) from error
        ready = stub.ModelReady(service_pb2.ModelReadyRequest(name=endpoint.model), timeout=PATIENCE_S)
        if not ready.ready:
            index = stub.RepositoryIndex(service_pb2.RepositoryIndexRequest(), timeout=PATIENCE_S)
            raise UsageError(missing_model(name, endpoint, [model.name for model in index.models]))


def missing_model(name: str, endpoint: Endpoint, models: Sequence[str]) -> str:
    """The sentence for a Triton without the model."""
    option = "--onnx-model" if endpoint.backend == "onnx" else "--trt-model"
    held = f"it holds {', '.join(sorted(models))}" if models else "it holds none"
    return f"{name}: has no model {endpoint.model!r} that is ready ({held}); name another by {option}"
