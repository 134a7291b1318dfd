"""Asking a target about itself over HTTP, on connections that can be told from the users'.

Ours are marked by a TCP_USER_TIMEOUT that nobody else asks for: it is the one socket option that gRPC lets
one set (by its keepalive arguments), and so long that it changes nothing.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import gevent
from geventhttpclient import HTTPClient

from users.codecs.packing import decoded
from users.endpoint import Endpoint, name_in
from users.errors import ErrorKind, RequestError, kind_of, status_error, translated
from users.redact import quoted
from users.refusals import ask_again
from users.tls import OPEN, Security, authorization, context_of, control_header
from users.transport.headers import headers_of
from users.transport.http_library import one_connection
from users.transport.size_limits import LARGEST_BYTES

PATIENCE_S = 5.0
Read = Callable[[], dict[str, Any]]
"""Reads again, over the open connection, and returns keys of a ledger's record."""
MARK_MS = 3_599_789
NEVER_MS = 2**31 - 2
"""A keepalive time that turns on gRPC's user timeout, with practically no pings."""
GRPC_MARK = (("grpc.keepalive_time_ms", NEVER_MS), ("grpc.keepalive_timeout_ms", MARK_MS))
_OPTION = getattr(socket, "TCP_USER_TIMEOUT", None)


@dataclass(frozen=True)
class Told:
    """An answer: its status, its text, its headers (names in lower case), and the URL that was asked."""

    status: int
    text: str
    headers: Mapping[str, str] = field(default_factory=dict)
    url: str = ""

    @property
    def ok(self) -> bool:
        """Whether the server has done what it was asked."""
        return self.status == 200

    @property
    def error(self) -> RequestError | None:
        """What the status stands for, where it is not 200."""
        return None if self.ok else status_error(self.status, self.text.encode(), self.headers, self.url)

    def json(self) -> Any:
        """Its text as JSON. Raises ValueError."""
        return parsed(self.text)


def parsed(text: str) -> Any:
    """A text as JSON. Raises ValueError."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("an answer that is nested too deeply") from None


class AdminConnection:
    """One kept-alive HTTP connection for asking every second: `get` costs a sixth of what `requests` does.

    It goes straight to the target, and follows nobody elsewhere: the token is for this server alone.
    `address` is `host:port`; `timeout_s` is for a whole answer, however slowly it trickles in. `authority`:
    what Host says, and the name that TLS asks for, where they are not the address.
    """

    def __init__(
        self,
        address: str,
        timeout_s: float,
        tls: bool = False,
        security: Security = OPEN,
        headers: Mapping[str, str] | None = None,
        authority: str = "",
    ) -> None:
        self._place, self._timeout_s = urlsplit(f"//{address}"), timeout_s
        self._tls, self._security = tls, security
        own = authorization(security) if headers is None else headers
        self._headers = {"Host": authority, **own} if authority else own
        self._tls_name = name_in(authority)
        self._client, self._kept = self._new_client(), False

    @classmethod
    def to(cls, endpoint: Endpoint, timeout_s: float) -> AdminConnection:
        """To an endpoint's server, with what each of its requests carries."""
        secured, headers = (endpoint.tls, endpoint.security), headers_of(endpoint)
        return cls(endpoint.address, timeout_s, *secured, headers, endpoint.authority)

    def _new_client(self) -> HTTPClient:
        place, context = self._place, context_of(self._security) if self._tls else None
        # A connection is made at once or never; an answer may take longer.
        timeouts_s = min(self._timeout_s, PATIENCE_S), self._timeout_s
        server = place.hostname or "", place.port or 80
        return one_connection(server, context, self._headers, timeouts_s, self._tls_name, before=mark)

    def get(self, path: str) -> str:
        """The answer's text. Raises RequestError, on any status but 200 too."""
        told = self.ask("GET", path)
        if told.error is not None:
            raise told.error
        return told.text

    def _url(self, path: str) -> str:
        host = self._headers.get("Host", self._place.netloc)
        return f"{'https' if self._tls else 'http'}://{host}{path}"

    def get_json(self, path: str) -> Any:
        """The answer as JSON. Raises RequestError where it is none, too."""
        text = self.get(path)
        try:
            return parsed(text)
        except ValueError as error:
            detail = f"HTTP 200 {quoted(text) or 'with an empty body'}, which is no JSON"
            raise RequestError(ErrorKind.BAD_REPLY, detail, "200") from error

    def ask(self, method: str, path: str, body: Any = None, control: bool = False) -> Told:
        """The answer to a request without a body, with bytes, or with one as JSON. Raises RequestError.

        `control`: it changes the server, and carries the secret for that. It is asked again as
        users.refusals has it.
        """
        given = method, path, body, control
        return ask_again(self._place.netloc, lambda: self._ask_once(*given), lambda told: told.error)

    def _ask_once(self, method: str, path: str, body: Any, control: bool) -> Told:
        is_json = body is not None and not isinstance(body, bytes)
        given = json.dumps(body).encode() if is_json else body or b""
        named = control_header() if control else {}
        named |= {"Content-Type": "application/json"} if is_json else {}
        with translated():
            try:
                with gevent.Timeout(self._timeout_s):
                    response = self._request(method, path, given, named)
                    data = bytes(response.read())
            except BaseException:
                # Cut off in the middle, the connection is of no more use.
                self._renew()
                raise
            self._kept = True
            headers = {name.lower(): value for name, value in response.items()}
            body = decoded(data, headers.get("content-encoding", ""), LARGEST_BYTES)
            # What a proxy says of a failure is shown, whatever its letters.
            text = body.decode(errors="strict" if response.status_code == 200 else "replace")
            return Told(response.status_code, text, headers, self._url(path))

    def _request(self, method: str, path: str, body: bytes, named: Mapping[str, str]) -> Any:
        """The beginning of an answer; asked a second time where a kept connection had been closed."""
        try:
            return self._client.request(method, path, body, named)
        except Exception as error:
            if not self._kept or kind_of(error) is not ErrorKind.RESET:
                raise
        self._renew()
        return self._client.request(method, path, body, named)

    def _renew(self) -> None:
        self.close()
        self._client, self._kept = self._new_client(), False

    def close(self) -> None:
        """Close the connection."""
        self._client.close()


def authority_at(url: str, endpoint: Endpoint) -> str:
    """The endpoint's authority, where a page at `url` is on its own host."""
    return endpoint.authority if urlsplit(url).hostname == endpoint.host else ""


def get(endpoint: Endpoint, path: str) -> Told:
    """GET a path of the endpoint's server, once. Raises RequestError."""
    with closing(AdminConnection.to(endpoint, PATIENCE_S)) as connection:
        return connection.ask("GET", path)


def mark(connection: socket.socket) -> None:
    """Mark a TCP socket; does nothing on systems without the option."""
    if _OPTION is not None:
        connection.setsockopt(socket.IPPROTO_TCP, _OPTION, MARK_MS)


def is_marked(connection: socket.socket) -> bool:
    """Whether a TCP socket is one of this process's. Raises OSError where it is no TCP socket."""
    return _OPTION is not None and connection.getsockopt(socket.IPPROTO_TCP, _OPTION) == MARK_MS
