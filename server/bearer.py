"""Who may ask: everybody, or whoever sends the bearer token."""

from __future__ import annotations

import hmac

from fastapi.responses import JSONResponse
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from server.body import CLOSE, drop_body
from server.settings import Settings

OPEN = ("/healthz", "/readyz")
"""A kubelet, a load balancer and the supervisor ask these, and know no token."""
UNKNOWN = "the service answers to its token only: send the header `Authorization: Bearer` with it"


class Guarded:
    """An app all of whose paths want the token, but for those that tell whether it is up."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._settings = settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand the request on, or answer 401."""
        if scope["type"] != "http" or scope["path"] in OPEN or self._knows(Request(scope)):
            await self._app(scope, receive, send)
            return
        whole = await drop_body(Request(scope, receive), self._settings)
        headers = {"WWW-Authenticate": "Bearer", **({} if whole else CLOSE)}
        await JSONResponse({"detail": UNKNOWN}, 401, headers)(scope, receive, send)

    def _knows(self, request: Request) -> bool:
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        # Takes as long for a token that is nearly right.
        same = hmac.compare_digest(given.strip().encode("latin-1"), self._settings.token.encode())
        return scheme.lower() == "bearer" and same
