"""Asking a target about itself: over HTTP, and over Triton's gRPC. Embeddings are the users' business."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import grpc
import requests
from tritonclient.grpc import service_pb2_grpc

from users.endpoint import Endpoint
from users.triton_grpc import CHANNEL_OPTIONS, patch_grpc

PATIENCE_S = 5.0


def get(endpoint: Endpoint, path: str) -> requests.Response:
    """GET a path of the endpoint's server. Raises requests.RequestException."""
    return _ask("GET", endpoint, path)


def post(endpoint: Endpoint, path: str) -> requests.Response:
    """POST nothing to a path of the endpoint's server. Raises requests.RequestException."""
    return _ask("POST", endpoint, path)


def _ask(method: str, endpoint: Endpoint, path: str) -> requests.Response:
    """Straight to the target: a proxy from the environment is no part of what is tested."""
    with requests.Session() as session:
        session.trust_env = False
        return session.request(method, f"http://{endpoint.address}{path}", timeout=PATIENCE_S)


@contextmanager
def triton_stub(endpoint: Endpoint) -> Iterator[Any]:
    """Triton's gRPC methods on a channel that is closed at the end. Calls raise grpc.RpcError."""
    patch_grpc()
    with grpc.insecure_channel(endpoint.address, options=CHANNEL_OPTIONS) as channel:
        yield service_pb2_grpc.GRPCInferenceServiceStub(channel)
