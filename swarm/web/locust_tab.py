"""The tab in Locust's own page: finished cells in a table, and links to what is ours."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from flask import Response, request

from swarm.web.cells import TAB

KEY = "inferswarm"


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
