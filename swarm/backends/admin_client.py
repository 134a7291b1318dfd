"""Asking a target about itself: over HTTP, and over Triton's gRPC. Embeddings are the users' business.

Our connections are marked, so that the users' can be told from them in one process. The mark is a
TCP_USER_TIMEOUT that nobody else asks for: it is the one socket option that gRPC lets one set (by its
keepalive arguments), and so long that it changes nothing.
"""

from __future__ import annotations

import functools
import json
import os
import re
import secrets
import socket
from collections.abc import Callable, Collection, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Literal
from urllib.parse import urlsplit

import gevent
import gevent.socket
from geventhttpclient import HTTPClient
from geventhttpclient.connectionpool import ConnectionPool
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample
from tritonclient.grpc import service_pb2_grpc

from swarm.errors import UsageError
from users.endpoint import Endpoint
from users.errors import status_error, translated
from users.tls import OPEN, Security, authorization, context_of
from users.transport.grpc import CHANNEL_OPTIONS, metadata_of, open_channel
from users.transport.http_library import TlsPool
from users.transport.size_limits import bound_library

PATIENCE_S = 5.0
Read = Callable[[], dict[str, Any]]
"""Asks once more, over what is open already, and gives keys of a ledger's record."""
VARIABLE = "INFERSWARM_MODEL_CONTROL"
"""`NAME=VALUE`, as behind the colon of tritonserver's --http-restricted-api."""
FORM = re.compile(r"[A-Za-z][A-Za-z0-9-]*=[!-~]+")
PREFIXES = {"http": "", "grpc": "triton-grpc-protocol-"}
"""What tritonserver looks for before the name."""
MARK_MS = 3_599_789
NEVER_MS = 2**31 - 2
"""A keepalive time that turns gRPC's user timeout on and its pings as good as off."""
GRPC_MARK = (("grpc.keepalive_time_ms", NEVER_MS), ("grpc.keepalive_timeout_ms", MARK_MS))
_OPTION = getattr(socket, "TCP_USER_TIMEOUT", None)


@dataclass(frozen=True)
class Told:
    """An answer: its status and its text."""

    status: int
    text: str

    @property
    def ok(self) -> bool:
        """Whether the server has done what it was asked."""
        return self.status == 200

    def json(self) -> Any:
        """Its text as JSON. Raises ValueError."""
        return parsed(self.text)


def parsed(text: str) -> Any:
    """A text as JSON. Raises ValueError."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("an answer that is nested too deeply") from None


class Marking:
    """Before a pool's class: its sockets are marked before they connect."""

    def _create_tcp_socket(self, *kind: int) -> gevent.socket.socket:
        made = super()._create_tcp_socket(*kind)  # type: ignore[misc]
        mark(made)
        return made


class MarkedPool(Marking, ConnectionPool):
    """geventhttpclient's pool, on marked sockets."""


class MarkedTlsPool(Marking, TlsPool):
    """The same over TLS."""


class AdminConnection:
    """One kept-alive HTTP connection for asking every second: `get` costs a sixth of what `requests` does.

    It goes straight to the target, and follows nobody elsewhere: the token is for this server alone.
    `address` is `host:port`; `timeout_s` is for a whole answer, however slowly it trickles in.
    """

    def __init__(self, address: str, timeout_s: float, tls: bool = False, security: Security = OPEN) -> None:
        self._place, self._timeout_s = urlsplit(f"//{address}"), timeout_s
        self._tls, self._security = tls, security
        self._client = self._new_client()

    @classmethod
    def to(cls, endpoint: Endpoint, timeout_s: float) -> AdminConnection:
        """To an endpoint's server."""
        return cls(endpoint.address, timeout_s, endpoint.tls, endpoint.security)

    def _new_client(self) -> HTTPClient:
        host, port, timeout_s = self._place.hostname or "", self._place.port or 80, self._timeout_s
        bound_library()
        client = HTTPClient(host, port=port, headers=authorization(self._security))
        # The library has no hook for the sockets of its pool; the pool itself has connected nothing yet.
        # A connection is made at once or never; an answer may take longer.
        connect_s = min(timeout_s, PATIENCE_S)
        if self._tls:
            pool: ConnectionPool = MarkedTlsPool(context_of(self._security), host, port, connect_s, timeout_s)
        else:
            pool = MarkedPool(
                host, port, host, port, size=1, connection_timeout=connect_s, network_timeout=timeout_s
            )
        client._connection_pool = pool
        return client

    def get(self, path: str) -> str:
        """The answer's text. Raises RequestError, on any status but 200 too."""
        told = self.ask("GET", path)
        if not told.ok:
            raise status_error(told.status, told.text.encode())
        return told.text

    def get_json(self, path: str) -> Any:
        """The answer as JSON. Raises RequestError where it is none, too."""
        with translated():
            return parsed(self.get(path))

    def ask(self, method: str, path: str, body: Any = None, control: bool = False) -> Told:
        """The answer to a request without a body, or with one as JSON. Raises RequestError.

        `control`: it changes the server, and carries the secret for that.
        """
        given = b"" if body is None else json.dumps(body).encode()
        named = headers("http") if control else {}
        named |= {"Content-Type": "application/json"} if given else {}
        with translated():
            try:
                with gevent.Timeout(self._timeout_s):
                    response = self._client.request(method, path, given, named)
                    data = bytes(response.read())
            except BaseException:
                # Cut off in the middle, the connection is of no more use.
                self.close()
                self._client = self._new_client()
                raise
            return Told(response.status_code, data.decode())

    def close(self) -> None:
        """Close the connection."""
        self._client.close()


def get(endpoint: Endpoint, path: str) -> Told:
    """GET a path of the endpoint's server, once. Raises RequestError."""
    with closing(AdminConnection.to(endpoint, PATIENCE_S)) as connection:
        return connection.ask("GET", path)


def samples(page: str, names: Collection[str]) -> Iterator[Sample]:
    """The samples of these names on a page in Prometheus' text format. Raises ValueError if it is none.

    Lines are chosen before they are parsed: to parse them all is ten times the work, and beside the load.
    """
    starts = tuple(names)
    lines = [line for line in page.splitlines() if line.startswith(starts)]
    for family in text_string_to_metric_families("\n".join(lines) + "\n"):
        yield from (sample for sample in family.samples if sample.name in names)


@contextmanager
def triton_stub(endpoint: Endpoint, control: bool = False) -> Iterator[Any]:
    """Triton's gRPC methods with our metadata, for `control` the secret, too. Calls raise grpc.RpcError."""
    secret = tuple(headers("grpc").items()) if control else ()
    with open_channel(endpoint, (*CHANNEL_OPTIONS, *GRPC_MARK)) as channel:
        stub = vars(service_pb2_grpc.GRPCInferenceServiceStub(channel))
        metadata = (*(metadata_of(endpoint) or ()), *secret) or None
        yield SimpleNamespace(**{name: functools.partial(stub[name], metadata=metadata) for name in stub})


def secret() -> str:
    """What the environment has, or what only this process and the servers that it starts know."""
    return os.environ.get(VARIABLE) or _own()


@functools.cache
def _own() -> str:
    return f"inferswarm-control={secrets.token_hex(32)}"


def headers(protocol: Literal["http", "grpc"]) -> dict[str, str]:
    """What a request carries that changes a server. Raises UsageError."""
    given = secret()
    if not FORM.fullmatch(given):
        raise UsageError(f"{VARIABLE} will not do: give NAME=VALUE, as tritonserver was given it")
    name, _, value = given.partition("=")
    return {f"{PREFIXES[protocol]}{name.lower()}": value}


def mark(connection: socket.socket) -> None:
    """Mark a TCP socket; does nothing on systems without the option."""
    if _OPTION is not None:
        connection.setsockopt(socket.IPPROTO_TCP, _OPTION, MARK_MS)


def is_marked(connection: socket.socket) -> bool:
    """Whether a TCP socket is one of ours. Raises OSError where it is no TCP socket."""
    return _OPTION is not None and connection.getsockopt(socket.IPPROTO_TCP, _OPTION) == MARK_MS
