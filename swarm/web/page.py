"""The live page, and its tab in Locust's own: the study that is on, and those before it in this process."""

from __future__ import annotations

import itertools
import json
import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from flask import Response, request

from swarm.output.observer import Observer
from swarm.web.cells import TAB
from swarm.web.routes import add_routes, guard_pages
from swarm.web.seconds import COLUMNS
from swarm.web.state import StudyState

MOST_STUDIES = 50
"""Of one process that are listed, the running one among them."""
NEVER_BEGAN = {"id": "", "status": "idle"}
logger = logging.getLogger("inferswarm")
KEY = "inferswarm"


class LivePage(Observer):
    """Follows studies; `clock` counts seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._count = itertools.count(1)
        self._studies: list[StudyState] = []
        self._begun = False
        """Whether the last of them is the one that is on: another may have begun that is not known here."""
        self._refused = ""
        self._fault = ""

    def begun(self, folder: Path, header: Mapping[str, Any]) -> None:
        """A new study takes the place of the one before."""
        self._refused = self._fault = ""
        self._begun = False
        with self._following():
            for study in self._studies:
                study.supersede()
            study = StudyState(folder, header, self._count, self._clock)
            self._studies = [*self._studies[1 - MOST_STUDIES :], study]
            self._begun = True

    def on_record(self, record: Mapping[str, Any]) -> None:
        """Follow; where that fails, say so, and leave the rest of this study to its report."""
        if self._begun and not self._fault:
            with self._following():
                self._studies[-1].on_record(record)

    def ended(self, status: str, reason: str, code: int) -> None:
        """The study's files are there."""
        if self._begun:
            with self._following():
                self._studies[-1].close(status, reason, code)

    @contextmanager
    def _following(self) -> Iterator[None]:
        """What goes wrong on the page is told there, and costs no study."""
        try:
            yield
        except Exception as error:
            logger.exception("the live page cannot follow the study")
            self._fault = f"{type(error).__name__}: {error}"
            if self._begun:
                self._studies[-1].progress.over()

    def refused(self, sentence: str) -> None:
        """Shown until a study begins."""
        self._refused = sentence

    @property
    def next(self) -> int:
        """The number after which there is nothing yet."""
        numbers = [
            numbered[-1][0]
            for study in self._studies[-1:]
            for numbered in (study.seconds, study.cells)
            if numbered
        ]
        return max(numbers, default=0)

    def data(self, since: int, known: str = "") -> dict[str, Any]:
        """What a browser has to be told that knows everything up to `since` of the study `known`."""
        head = {"next": self.next, "refused": self._refused, "fault": self._fault, "columns": COLUMNS}
        if not self._studies:
            return {**head, "study": NEVER_BEGAN, "earlier": []}
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
    page.place = add_routes(web_ui, base, page.data, page.file)
    add_tab(web_ui, base, page.place, page.tab)
    return page


def add_tab(web_ui: Any, base: str, place: str, rows: Callable[[], list[dict[str, Any]]]) -> None:
    """Through Locust's own hooks for extensions; `base` is where its routes begin, `place` where ours do."""
    structure = [{"key": key, "title": title} for key, title in TAB]
    links = [
        {"href": place, "title": "inferswarm: live charts, limits and advice"},
        {"href": f"{place}/cells.csv", "title": "inferswarm: cells.csv of the last study that has ended"},
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
            report["extended_stats"] = [*others, {"key": KEY, "data": rows()}]
            response.set_data(json.dumps(report))
        return response


def extend(arguments: dict[str, Any], name: str, more: list[dict[str, Any]]) -> None:
    """Add to what a locustfile may have put there already."""
    arguments[name] = [*arguments.get(name, []), *more]
