"""Who may call the service: no other web page, and if there is a token, only clients that send it."""

import hmac
import socket
from urllib.parse import urlsplit

from fastapi.responses import JSONResponse
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from server.net import is_address, is_loopback
from server.service.request import CLOSE, drop_body
from server.settings import Settings

OPEN = ("/healthz", "/readyz")
"""Called by a kubelet, a load balancer and the supervisor, which have no token."""
UNKNOWN = "the service requires its token: send it in the header `Authorization: Bearer`"
FOREIGN = "requests from other web pages are refused: use a program"
MISNAMED = "the service has no such name: use its address, or add the name to INFERSWARM_NAMES"


class Authorized:
    """An app that answers no other page's requests; with a token, all paths but `OPEN` want it."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._settings = settings
        # A token is no page's to know; by which names other machines ask, only their owner knows.
        near = (is_loopback(settings.host) or bool(settings.names)) and not settings.token
        more = (name.strip().lower() for name in settings.names.split(","))
        self._names = {"localhost", socket.gethostname().lower(), *more} if near else set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand the request on, or refuse it."""
        refusal = self._refusal(scope) if scope["type"] == "http" else None
        if refusal is None:
            await self._app(scope, receive, send)
            return
        if not await drop_body(Request(scope, receive), self._settings):
            refusal.headers.update(CLOSE)
        await refusal(scope, receive, send)

    def _refusal(self, scope: Scope) -> JSONResponse | None:
        headers = Headers(scope=scope)
        if scope["method"] == "POST" and of_a_page(headers):
            return JSONResponse({"detail": FOREIGN}, 403)
        if self._names and not self._is_ours(headers.get("host", "")):
            return JSONResponse({"detail": MISNAMED}, 421)
        if self._settings.token and scope["path"] not in OPEN and not self._knows(headers):
            return JSONResponse({"detail": UNKNOWN}, 401, {"WWW-Authenticate": "Bearer"})
        return None

    def _is_ours(self, host: str) -> bool:
        """No name that a page has made stand for this machine's address (DNS rebinding)."""
        try:
            name = (urlsplit(f"//{host}").hostname or "").rstrip(".")
        except ValueError:
            return False
        return not host or is_address(name) or name in self._names

    def _knows(self, headers: Headers) -> bool:
        scheme, _, given = headers.get("authorization", "").partition(" ")
        # Takes as long for a token that is nearly right.
        same = hmac.compare_digest(given.strip().encode("latin-1"), self._settings.token.encode())
        return scheme.lower() == "bearer" and same


def of_a_page(headers: Headers) -> bool:
    """Whether a browser says that another site's page asks."""
    origin = headers.get("origin")
    if origin is not None and origin.partition("://")[2] != headers.get("host"):
        return True
    return headers.get("sec-fetch-site") in ("cross-site", "same-site")
