"""The page of the study and its tab in Locust's own: a form that starts one, the running one, earlier ones.

Its routes are all behind Locust's login where that is on; what other pages ask for is refused.
"""

import itertools
import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from flask import Blueprint, Response, current_app, make_response, render_template, request, send_file
from markupsafe import escape

from swarm.output.allowed_hosts import refusal
from swarm.web.cells import TAB
from swarm.web.form import StartForm
from swarm.web.state import COLUMNS, RUNNING, StudyState
from users.redact import redacted, spellings

MOST_STUDIES = 50
"""Of one process that are listed, the running one among them."""
NEVER_BEGAN = {"id": "", "status": "idle"}
KEY = "inferswarm"
HERE = Path(__file__).parent
REPORT = HERE.parent.parent / "reports" / "render"
FILES = {
    "live.js": (HERE / "static" / "live.js", "text/javascript"),
    "charts.js": (HERE / "static" / "charts.js", "text/javascript"),
    "tables.js": (HERE / "static" / "tables.js", "text/javascript"),
    "server.js": (HERE / "static" / "server.js", "text/javascript"),
    "form.js": (HERE / "static" / "form.js", "text/javascript"),
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
LINK = (
    '<p style="margin:0;padding:0.6rem 1.5rem;background:#14532d;font:16px system-ui,sans-serif">'
    '<a style="color:#fff" href="{}">inferswarm: plan and start a study here, and follow it live</a></p>'
)
"""At the head of Locust's page."""


class LivePage:
    """Follows studies; `clock` counts seconds."""

    place = ""
    """Where people can look, below the web UI's own address."""
    url = ""
    """The same with that address."""
    form: StartForm | None = None
    """That starts a study from here."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._count = itertools.count(1)
        self._studies: list[StudyState] = []
        self._refused = ""

    def begun(self, folder: Path, header: Mapping[str, Any]) -> StudyState:
        """A new study, which has its folder and its ledger, takes the place of the one before: it listens."""
        self._refused = ""
        for study in self._studies:
            study.supersede()
        study = StudyState(folder, header, self._count, self._clock)
        self._studies = [*self._studies[1 - MOST_STUDIES :], study]
        return study

    def ended(self, status: str, reason: str, code: int) -> None:
        """The files of the latest study are there; `code` is what it would exit with."""
        self._studies[-1].close(status, reason, code)

    def refused(self, sentence: str) -> None:
        """Shown until a study begins."""
        self._refused = sentence

    def refusal(self, asked: Mapping[str, str]) -> str:
        """Why no study is begun with these options; empty where one may."""
        if any(study.status == RUNNING for study in self._studies[-1:]):
            return "A study is running: stop it, or wait for its report."
        return self.form.refusal(asked) if self.form else ""

    @property
    def pace_s(self) -> float | None:
        """Seconds for each unit of `costs_of` in the latest study; None where none has done a run."""
        return self._studies[-1].progress.pace_s if self._studies else None

    @property
    def next(self) -> int:
        """The number after which there is nothing yet."""
        return max((study.latest for study in self._studies[-1:]), default=0)

    def data(self, since: int, known: str = "") -> dict[str, Any]:
        """What a browser has to be told that knows everything up to `since` of the study `known`."""
        head = {"next": self.next, "refused": self._refused, "columns": COLUMNS}
        if not self._studies:
            return {**head, "fault": "", "study": NEVER_BEGAN, "earlier": []}
        *before, study = self._studies
        earlier = [one.about() for one in reversed(before)]
        return {
            **head,
            "study": study.about(),
            "earlier": earlier,
            **study.news(since if known == study.name else 0),
        }

    def tab(self) -> list[dict[str, Any]]:
        """The rows of the table in Locust's page."""
        return list(self._studies[-1].tab) if self._studies else []

    def file(self, study: str, name: str) -> Path | None:
        """A file of an ended study by the name of its folder, or of the latest that has it."""
        chosen = (one for one in reversed(self._studies) if study in ("", one.name))
        return next((path for one in chosen if (path := one.file(name))), None)


def open_page(web_ui: Any) -> LivePage:
    """Add the page and the tab to Locust's web UI, before its server starts."""
    guard_pages(web_ui)
    page = LivePage()
    base = str(web_ui.app.blueprints["locust"].url_prefix or "").rstrip("/")
    page.place = f"{base}/inferswarm"
    scheme = "https" if web_ui.tls_cert and web_ui.tls_key else "http"
    page.url = f"{scheme}://{web_ui.host or 'localhost'}:{web_ui.port}{page.place}"
    add_routes(web_ui, base, page)
    add_tab(web_ui, base, page)
    add_start(web_ui, base, page)
    return page


def add_start(web_ui: Any, base: str, live: LivePage) -> None:
    """What is asked for is judged before Locust starts anything, and its page leads to ours."""

    start = web_ui.app.view_functions["locust.swarm"]

    def judge() -> Any:
        """Locust's form and ours show the message beside their button."""
        if refused := live.refusal(request.form):
            return Response(json.dumps({"success": False, "message": refused}), mimetype="application/json")
        return start()

    web_ui.app.view_functions["locust.swarm"] = web_ui.auth_required_if_enabled(judge)

    @web_ui.app.after_request  # type: ignore[untyped-decorator]
    def add_link(response: Response) -> Response:
        """Locust's start page has no tabs and groups nothing."""
        is_page = request.path == f"{base}/" and response.status_code == 200
        if is_page and response.mimetype == "text/html" and not response.direct_passthrough:
            link = LINK.format(escape(live.place))
            response.set_data(response.get_data(as_text=True).replace("<body>", f"<body>{link}", 1))
        return response


def add_tab(web_ui: Any, base: str, live: LivePage) -> None:
    """Through Locust's own hooks for extensions; `base` is where its routes begin."""
    structure = [{"key": key, "title": title} for key, title in TAB]
    cells = f"{live.place}/cells.csv"
    links = [
        {"href": live.place, "title": "inferswarm: live charts, bottlenecks and advice"},
        {"href": cells, "title": "inferswarm: cells.csv of the last finished study"},
    ]
    extend(web_ui.template_args, "extended_tabs", [{"title": KEY, "key": KEY}])
    extend(web_ui.template_args, "extended_tables", [{"key": KEY, "structure": structure}])
    extend(web_ui.template_args, "extended_csv_files", links)

    @web_ui.app.after_request  # type: ignore[untyped-decorator]
    def add_rows(response: Response) -> Response:
        """Locust's page asks for its figures every two seconds; ours go along."""
        if request.path == f"{base}/stats/requests" and response.status_code == 200 and response.is_json:
            report = response.get_json()
            others = [one for one in report.get("extended_stats", []) if one["key"] != KEY]
            report["extended_stats"] = [*others, {"key": KEY, "data": live.tab()}]
            response.set_data(json.dumps(report))
        return response


def extend(arguments: dict[str, Any], name: str, more: list[dict[str, Any]]) -> None:
    """Add to what a locustfile may have put there already."""
    arguments[name] = [*arguments.get(name, []), *more]


def add_routes(web_ui: Any, base: str, live: LivePage) -> None:
    """Register them below the page's place."""
    ours = Blueprint("inferswarm", __name__, url_prefix=live.place, template_folder="templates")
    for answer, (method, *rules) in rules_of(base, live).items():
        guarded = web_ui.auth_required_if_enabled(answer)
        for rule in rules:
            ours.add_url_rule(rule, answer.__name__, guarded, methods=[method], strict_slashes=False)
    ours.after_request(guard)
    web_ui.app.register_blueprint(ours)


def rules_of(base: str, live: LivePage) -> dict[Callable[..., Response], tuple[str, ...]]:
    """Of each route its method and rules; a study's files are the latest's, or by the name of its folder."""

    def page() -> Response:
        parts = live.form.parts() if live.form else []
        about = {"place": live.place, "locust": f"{base}/", "parts": parts}
        return make_response(render_template("inferswarm.html", **about))

    def plan() -> Response:
        told = live.form.judge(request.form) if live.form else {}
        return Response(json.dumps(told), mimetype="application/json")

    def news() -> Response:
        since = request.args.get("since", "0")
        if not (since.isascii() and since.isdigit() and len(since) <= MOST_DIGITS):
            return sentence(400, f"since={since}: give the number that the last reply called next.")
        known = live.data(int(since), request.args.get("study", ""))
        return Response(json.dumps(known, separators=(",", ":")), mimetype="application/json")

    def asset(name: str) -> Response:
        if name not in FILES:
            return sentence(404, f"{name}: the live page has no such file.")
        path, mimetype = FILES[name]
        return send_file(path, mimetype=mimetype, conditional=True, max_age=0)

    def report(study: str = "") -> Response:
        return left_by(live, study, "report.html", "text/html")

    def cells(study: str = "") -> Response:
        return left_by(live, study, "cells.csv", "text/csv")

    return {
        page: ("GET", "/"),
        plan: ("POST", "/plan"),
        news: ("GET", "/data"),
        asset: ("GET", "/file/<name>"),
        report: ("GET", "/report", "/report/<study>"),
        cells: ("GET", "/cells.csv", "/cells.csv/<study>"),
    }


def left_by(live: LivePage, study: str, name: str, mimetype: str) -> Response:
    """One of the files that a study has left, or a sentence."""
    if path := live.file(study, name):
        found = send_file(path.resolve(), mimetype=mimetype, conditional=True, max_age=0)
        found.headers["Content-Security-Policy"] = STUDY
        return found
    if study:
        return sentence(404, f"{study}: no finished study of this process has this name and a {name}.")
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
    """Remove tokens, which an error of a server or a library may contain; files of studies have none."""
    is_text = response.is_json or str(response.mimetype).startswith("text/")
    if spellings() and is_text and not response.direct_passthrough:
        text = response.get_data(as_text=True)
        if (shown := redacted(text)) != text:
            response.set_data(shown)
    return response
