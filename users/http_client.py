"""One HTTP/1.1 connection on geventhttpclient, shared by both ways of sending over HTTP."""

from __future__ import annotations

from collections.abc import Mapping

import gevent
from geventhttpclient import HTTPClient

from users.endpoint import Endpoint
from users.errors import status_error


class HttpConnection:
    """POSTs prepared bytes over one kept-alive connection; `timeout_s` is for a whole request."""

    def __init__(self, endpoint: Endpoint, timeout_s: float) -> None:
        self._endpoint, self._timeout_s = endpoint, timeout_s
        self._client = self._new_client()

    def _new_client(self) -> HTTPClient:
        endpoint, timeout_s = self._endpoint, self._timeout_s
        return HTTPClient(
            endpoint.host,
            port=endpoint.port,
            concurrency=1,
            connection_timeout=timeout_s,
            network_timeout=timeout_s,
        )

    def post(self, path: str, body: bytes, headers: Mapping[str, str]) -> tuple[bytes, Mapping[str, str]]:
        """The answer's body and headers (names in lower case). Raises RequestError on any status but 200.

        The library's own timeouts are for each read: an answer that trickles in would outlive them.
        """
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
        return data, {name.lower(): value for name, value in response.items()}

    def close(self) -> None:
        """Close the connection."""
        self._client.close()
