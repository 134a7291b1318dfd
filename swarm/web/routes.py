"""The routes of the live page, all behind Locust's login where that is on, and what no page shows."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from flask import Blueprint, Response, current_app, make_response, render_template, request, send_file

from swarm.output.allowed_hosts import refusal
from users.redact import redacted, spellings

HERE = Path(__file__).parent
REPORT = HERE.parent.parent / "reports" / "render"
FILES = {
    "live.js": (HERE / "static" / "live.js", "text/javascript"),
    "charts.js": (HERE / "static" / "charts.js", "text/javascript"),
    "tables.js": (HERE / "static" / "tables.js", "text/javascript"),
    "live.css": (HERE / "static" / "live.css", "text/css"),
    "report.css": (REPORT / "templates" / "report.css", "text/css"),
    "echarts.min.js": (REPORT / "assets" / "echarts.min.js", "text/javascript"),
}
"""What the page loads, by name."""
OWN = "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
STUDY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:;"
    " font-src data:; base-uri 'none'; form-action 'none'; sandbox allow-scripts allow-downloads allow-popups"
)
"""A report is one file with its scripts in it; it is shown apart from this origin and asks it for nothing."""
MOST_DIGITS = 18
OF_STUDIES = ("/report", "/cells.csv")
"""Routes to what a study leaves: of the latest, or by the name of its folder."""
Data = Callable[[int, str], dict[str, Any]]
File = Callable[[str, str], Path | None]


def add_routes(web_ui: Any, base: str, data: Data, file: File) -> str:
    """Register them below `base`; where the page is.

    `data` is what has come after a number in the study of that name, `file` a file of a study by its name;
    that of its folder is meant.
    """
    place = f"{base}/inferswarm"
    ours = Blueprint("inferswarm", __name__, url_prefix=place, template_folder="templates")

    def route(rule: str, answer: Callable[..., Response]) -> None:
        guarded = web_ui.auth_required_if_enabled(answer)
        for each in (rule, f"{rule}/<study>") if rule in OF_STUDIES else (rule,):
            ours.add_url_rule(each, answer.__name__, guarded, strict_slashes=False)

    def page() -> Response:
        return make_response(render_template("inferswarm.html", place=place, locust=f"{base}/"))

    def news() -> Response:
        since = request.args.get("since", "0")
        if not (since.isascii() and since.isdigit() and len(since) <= MOST_DIGITS):
            return sentence(400, f"since={since}: give the number that the last reply called next.")
        known = data(int(since), request.args.get("study", ""))
        return Response(json.dumps(known, separators=(",", ":")), mimetype="application/json")

    def asset(name: str) -> Response:
        if name not in FILES:
            return sentence(404, f"{name}: the live page has no such file.")
        path, mimetype = FILES[name]
        return send_file(path, mimetype=mimetype, conditional=True, max_age=0)

    def report(study: str = "") -> Response:
        return left_by(file, study, "report.html", "text/html")

    def cells(study: str = "") -> Response:
        return left_by(file, study, "cells.csv", "text/csv")

    for rule, answer in (("/", page), ("/data", news), ("/file/<name>", asset)):
        route(rule, answer)
    for rule, answer in zip(OF_STUDIES, (report, cells), strict=True):
        route(rule, answer)
    ours.after_request(guard)
    web_ui.app.register_blueprint(ours)
    return place


def left_by(file: File, study: str, name: str, mimetype: str) -> Response:
    """One of the files that a study has left, or a sentence."""
    if path := file(study, name):
        found = send_file(path.resolve(), mimetype=mimetype, conditional=True, max_age=0)
        found.headers["Content-Security-Policy"] = STUDY
        return found
    if study:
        return sentence(404, f"{study}: no study of this process that has ended has this name and a {name}.")
    return sentence(404, f"There is no {name} yet: it is written when a study ends.")


def sentence(status: int, text: str) -> Response:
    """A plain answer."""
    return Response(f"{text}\n", status, mimetype="text/plain")


def guard(response: Response) -> Response:
    """Nothing from elsewhere is loaded, and no page from elsewhere reads what is here."""
    response.headers.setdefault("Content-Security-Policy", OWN)
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.headers["Referrer-Policy"] = "no-referrer"
    # Locust lets every origin read every answer that does not name one.
    response.headers["Access-Control-Allow-Origin"] = request.host_url.rstrip("/")
    return response


def guard_pages(web_ui: Any) -> None:
    """Before anything else is added to the web UI: what is added later is guarded, too."""
    web_ui.app.config["LOGIN"] = web_ui.web_login
    web_ui.app.before_request(refuse_other_pages)
    web_ui.app.after_request(redact_response)


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


def redact_response(response: Response) -> Response:
    """Without tokens, whatever a server or a library has put into an error; files of studies have none."""
    is_text = response.is_json or str(response.mimetype).startswith("text/")
    if spellings() and is_text and not response.direct_passthrough:
        text = response.get_data(as_text=True)
        if (shown := redacted(text)) != text:
            response.set_data(shown)
    return response
