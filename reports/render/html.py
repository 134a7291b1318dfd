"""The page as one HTML file that asks nobody: styles, scripts and data lie in it."""

import base64
import hashlib
import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from reports.format import plain, plain_lines, plural
from reports.page.page import Page

HERE = Path(__file__).parent
CHARTS = (
    *("theme.js", "points.js", "breakdown.js", "curves.js", "distribution.js", "gates.js", "timeline.js"),
    *("history.js", "figure.js"),
)
_ESCAPES = {ord(char): f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"}


def render_html(page: Page) -> str:
    """The whole page; whatever came from outside is escaped, and no other script than ours may run in it."""
    drawn = bool(page.charts) or any(section.charts for section in page.sections)
    scripts = page_scripts(drawn)
    report = environment().get_template("report.html")
    return report.render(page=page, scripts=[Markup(text) for text in scripts], policy=policy(scripts))


@cache
def environment() -> Environment:
    """What reads the templates, each once."""
    made = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters |= {"plain": plain, "plain_lines": plain_lines, "plural": plural, "json": as_json}
    return made


def page_scripts(drawn: bool) -> list[str]:
    """The scripts in their order: those of charts only where something is drawn."""
    tables = asset("tables.js")
    if not drawn:
        return [asset("theme.js") + tables]
    return [asset("echarts.min.js"), "".join(map(asset, CHARTS)), tables]


@cache
def asset(name: str) -> str:
    """The text of a file that comes with the page."""
    return (HERE / "assets" / name).read_text(encoding="utf-8")


def policy(scripts: Sequence[str]) -> str:
    """The content security policy: nothing is fetched, and only these very scripts run."""
    digests = (hashlib.sha256(script.encode()).digest() for script in scripts)
    allowed = " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
    return f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data:"


def as_json(data: Any) -> Markup:
    """JSON that can stand inside a script element whatever its texts are."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False, ensure_ascii=False)
    return Markup(text.translate(_ESCAPES))
