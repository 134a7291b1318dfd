"""One HTTP/1.1 connection on geventhttpclient, shared by both ways of sending over HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import gevent

from users.endpoint import Endpoint
from users.errors import status_error
from users.stamped import StampedClient, Stamps


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP answer: its body, its headers (names in lower case), and the request's phases on the wire."""

    body: bytes
    headers: Mapping[str, str]
    phases_ns: dict[str, int]


class HttpConnection:
    """POSTs prepared bytes over one kept-alive connection; `timeout_s` is for a whole request."""

    def __init__(self, endpoint: Endpoint, timeout_s: float) -> None:
        self._endpoint, self._timeout_s = endpoint, timeout_s
        self._stamps = Stamps()
        self._client = self._new_client()

    def _new_client(self) -> StampedClient:
        return StampedClient(self._stamps, self._endpoint.host, self._endpoint.port, self._timeout_s)

    def post(self, path: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        """The answer to one request. Raises RequestError on any status but 200.

        The library's own timeouts are for each read: an answer that trickles in would outlive them.
        """
        self._stamps.clear()
        try:
            with gevent.Timeout(self._timeout_s):
                response = self._client.post(path, body=body, headers=dict(headers))
                data = bytes(response.read())
        except BaseException:
            # Cut off in the middle, the connection is of no more use.
            self._client.close()
            self._client = self._new_client()
            raise
        if response.status_code != 200:
            raise status_error(response.status_code, data)
        named = {name.lower(): value for name, value in response.items()}
        return Answer(data, named, self._stamps.phases_ns())

    def close(self) -> None:
        """Close the connection."""
        self._client.close()
