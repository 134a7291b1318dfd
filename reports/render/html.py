"""The page as one HTML file that needs nothing else: no scripts, no fonts, no requests."""

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from reports.format import plain, plural
from reports.page import Page


def render_html(page: Page) -> str:
    """The whole page; whatever came from outside is escaped."""
    folder = Path(__file__).parent / "templates"
    environment = Environment(
        loader=FileSystemLoader(folder),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"plain": plain, "plural": plural}
    return environment.get_template("report.html").render(page=page)
