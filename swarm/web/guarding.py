"""Who is answered by the web UI, Locust's own pages included, and what no page shows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flask import Response, current_app, request

from swarm.output.allowed_hosts import refusal
from users.redact import redacted, spellings


def guard_pages(web_ui: Any) -> None:
    """Before anything else is added to the web UI: what is added later is guarded, too."""
    web_ui.app.config["LOGIN"] = web_ui.web_login
    web_ui.app.before_request(refuse_other_pages)
    web_ui.app.after_request(veiled)


def refuse_other_pages() -> Response | None:
    """A page from elsewhere, open in the same browser, reaches loopback as its reader does.

    Locust would let it read every answer, and press Start or Stop. A browser keeps to itself which name it
    has logged in by, so that a login is enough against a page that has our address by another one.
    """
    if not current_app.config.get("LOGIN") and (text := refusal(request.headers.get("Host", ""))):
        return Response(text, 421, mimetype="text/plain")
    if of_another_page(dict(request.headers), request.host):
        return Response("Another page's requests are not answered.\n", 403, mimetype="text/plain")
    return None


def of_another_page(headers: Mapping[str, str], host: str) -> bool:
    """Whether a browser says so; links may stand anywhere, since what they lead to only shows."""
    origin = headers.get("Origin")
    # A proxy before us says under which name it was asked; a page cannot.
    if origin is not None and origin.partition("://")[2] not in (host, headers.get("X-Forwarded-Host")):
        return True
    elsewhere = headers.get("Sec-Fetch-Site") in ("cross-site", "same-site")
    return elsewhere and headers.get("Sec-Fetch-Mode") != "navigate"


def veiled(response: Response) -> Response:
    """Without tokens, whatever a server or a library has put into an error; files of studies have none."""
    is_text = response.is_json or str(response.mimetype).startswith("text/")
    if spellings() and is_text and not response.direct_passthrough:
        text = response.get_data(as_text=True)
        if (shown := redacted(text)) != text:
            response.set_data(shown)
    return response
