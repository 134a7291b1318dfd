"""The page of a history in a real browser: it asks nobody, fits, and its charts show what is told."""

from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext

from reports.__main__ import main
from tests.reports.history.past import past, template
from tests.reports.history.test_history import AT, COUNT, eight_percent, machine
from tests.reports.pages import IN_A_BROWSER, OPEN_ALL
from tests.reports.test_browser import Visit

pytestmark = IN_A_BROWSER


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("history")
    results = past(template(folder / "one"), folder / "past", COUNT, eight_percent, machine)
    assert main(["history", str(results), "--out", str(folder), "--quiet"]) == 0
    return folder / "history.html"


@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_is_calm_and_fits(context: BrowserContext, page: Path, width: int) -> None:
    visit = Visit(context, page, width)
    visit.page.evaluate(OPEN_ALL)
    assert visit.page.evaluate("document.documentElement.scrollWidth") == width
    assert visit.is_calm(page)


def test_a_chart_shows_each_study_and_where_it_changed(context: BrowserContext, page: Path) -> None:
    visit = Visit(context, page)
    figure = visit.page.locator("figure").first
    assert "1.0" in figure.locator("svg").inner_html()
    rows = visit.page.evaluate(
        "kinds.history.rows(JSON.parse(document.querySelector('figure script').textContent))"
    )
    first = rows[1][0]
    points = [row for row in rows[1:] if row[0] == first]
    assert len(points) == COUNT
    (new,) = [at for at, row in enumerate(points) if row[8]]
    assert abs(new - AT) <= 1
    figure.locator("select").select_option(label="Latency, p50 (1 changed)")
    assert "Latency, p50, ms" in figure.locator("svg").inner_html()
