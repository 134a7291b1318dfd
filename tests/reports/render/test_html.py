"""The page as one file: which scripts lie in it."""

import pytest

from reports.page.page import Chart, Page, Section
from reports.render.html import page_scripts, render_html

DOTS = Chart("Rates", "", "dots", {"unit": "images/s", "rows": []})


def page(first: tuple[Chart, ...], later: tuple[Chart, ...]) -> str:
    sections = (Section("Charts", charts=later),)
    return render_html(Page("Made", "", (), sections, (), charts=first))


@pytest.mark.parametrize(("first", "later"), [((DOTS,), ()), ((), (DOTS,))])
def test_a_page_with_a_chart_has_their_scripts(first: tuple[Chart, ...], later: tuple[Chart, ...]) -> None:
    text = page(first, later)
    assert all(script in text for script in page_scripts(drawn=True))
    assert text.count("kinds.dots = ") == 1


def test_a_page_without_charts_has_none_of_them() -> None:
    text = page((), ())
    assert "kinds.dots" not in text
    assert len(text) < 60_000
