"""Asking a target about itself: over HTTP, and over Triton's gRPC. Embeddings are the users' business."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import gevent
import gevent.socket
import grpc
import requests
from geventhttpclient import HTTPClient
from geventhttpclient.connectionpool import ConnectionPool
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample
from tritonclient.grpc import service_pb2_grpc

from swarm.mark import GRPC_MARK, mark
from users.endpoint import Endpoint
from users.errors import status_error, translated
from users.grpc_channels import CHANNEL_OPTIONS, patch_grpc

PATIENCE_S = 5.0

Read = Callable[[], dict[str, Any]]
"""Asks once more, over what is open already, and gives keys of a ledger's record."""


def get(endpoint: Endpoint, path: str) -> requests.Response:
    """GET a path of the endpoint's server. Raises requests.RequestException."""
    return _ask("GET", endpoint, path)


def post(
    endpoint: Endpoint, path: str, body: Any = None, patience_s: float = PATIENCE_S
) -> requests.Response:
    """POST nothing, or a body as JSON, to a path of the endpoint's server.

    Raises requests.RequestException.
    """
    return _ask("POST", endpoint, path, body, patience_s)


def _ask(
    method: str, endpoint: Endpoint, path: str, body: Any = None, patience_s: float = PATIENCE_S
) -> requests.Response:
    """Straight to the target: a proxy from the environment is no part of what is tested."""
    with requests.Session() as session:
        session.trust_env = False
        # A connection is made at once or never; an answer may take longer.
        patience = (PATIENCE_S, patience_s)
        return session.request(method, f"http://{endpoint.address}{path}", json=body, timeout=patience)


class MarkedPool(ConnectionPool):
    """geventhttpclient's pool, on marked sockets."""

    def after_connect(self, sock: gevent.socket.socket) -> None:
        """Mark it."""
        mark(sock)


class Line:
    """One kept-alive HTTP connection for asking every second: `get` costs a sixth of what `requests` does.

    `address` is `host:port`; `timeout_s` is for a whole answer, however slowly it trickles in.
    """

    def __init__(self, address: str, timeout_s: float) -> None:
        self._place, self._timeout_s = urlsplit(f"//{address}"), timeout_s
        self._client = self._new_client()

    def _new_client(self) -> HTTPClient:
        host, port, timeout_s = self._place.hostname or "", self._place.port or 80, self._timeout_s
        client = HTTPClient(host, port=port)
        # The library has no hook for the sockets of its pool; the pool itself has connected nothing yet.
        client._connection_pool = MarkedPool(
            host, port, host, port, size=1, connection_timeout=timeout_s, network_timeout=timeout_s
        )
        return client

    def get(self, path: str) -> str:
        """The answer's text. Raises RequestError, on any status but 200 too."""
        with translated():
            try:
                with gevent.Timeout(self._timeout_s):
                    response = self._client.get(path)
                    data = bytes(response.read())
            except BaseException:
                # Cut off in the middle, the connection is of no more use.
                self.close()
                self._client = self._new_client()
                raise
            if response.status_code != 200:
                raise status_error(response.status_code, data)
            return data.decode()

    def close(self) -> None:
        """Close the connection."""
        self._client.close()


def samples(page: str, names: Collection[str]) -> Iterator[Sample]:
    """The samples of these names on a page in Prometheus' text format. Raises ValueError if it is none.

    Lines are chosen before they are parsed: to parse them all is ten times the work, and beside the load.
    """
    starts = tuple(names)
    lines = [line for line in page.splitlines() if line.startswith(starts)]
    for family in text_string_to_metric_families("\n".join(lines) + "\n"):
        yield from (sample for sample in family.samples if sample.name in names)


@contextmanager
def triton_stub(endpoint: Endpoint) -> Iterator[Any]:
    """Triton's gRPC methods on a channel that is closed at the end. Calls raise grpc.RpcError."""
    patch_grpc()
    with grpc.insecure_channel(endpoint.address, options=(*CHANNEL_OPTIONS, *GRPC_MARK)) as channel:
        yield service_pb2_grpc.GRPCInferenceServiceStub(channel)
