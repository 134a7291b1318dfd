"""The pages in a real browser: nothing breaks, nothing is fetched, and what is drawn can be read and used."""

import csv
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from reports.__main__ import main
from tests.reports.builder import Book
from tests.reports.example import lognormal
from tests.reports.pages import ATTACK, GATES, IN_A_BROWSER, OPEN_ALL, PAGES, apart, attacked, quick

pytestmark = IN_A_BROWSER
WIDTHS = (390, 1280)
PAPER = 1_016
"""CSS pixels across A4 on its side, without the margins."""
INK = {"light": "#1d2228", "dark": "#e4e2dc", "paper": "#000"}
WITHOUT = "The drawing needs JavaScript; its numbers are in the tables and in timeline.csv."


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The result folder of each study, shown."""
    root = tmp_path_factory.mktemp("pages")
    made = {name: apart(book()).write(root / name) for name, book in PAGES.items()}
    for name, thresholds in GATES.items():
        (made[name] / "thresholds.toml").write_text(thresholds, encoding="utf-8")
        assert main(["gate", str(made[name]), "--quiet"]) != 2
    assert all(main(["show", str(folder), "--quiet"]) == 0 for folder in made.values())
    return made


class Visit:
    """A page, with what it said on the console and what it asked for."""

    def __init__(self, context: BrowserContext, path: Path, width: int = 1280) -> None:
        self.page: Page = context.new_page()
        self.said: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("dialog", lambda dialog: self.said.append(f"dialog {dialog.message}"))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.set_viewport_size({"width": width, "height": 900})
        self.page.goto(path.as_uri())

    def opened(self) -> Page:
        """The page with all that is folded open."""
        self.page.evaluate(OPEN_ALL)
        return self.page

    def is_calm(self, path: Path) -> bool:
        """Nothing on the console, and no request but the page itself."""
        assert (self.said, self.asked) == ([], [path.as_uri()])
        return True


@pytest.mark.parametrize("name", PAGES)
def test_no_page_errs_asks_or_scrolls(context: BrowserContext, folders: dict[str, Path], name: str) -> None:
    path = folders[name] / "report.html"
    visit = Visit(context, path, WIDTHS[0])
    visit.page.evaluate(OPEN_ALL)
    for width in WIDTHS:
        visit.page.set_viewport_size({"width": width, "height": 900})
        assert visit.page.evaluate("document.documentElement.scrollWidth") == width
    visit.page.emulate_media(color_scheme="dark")
    visit.page.emulate_media(media="print")
    visit.page.set_viewport_size({"width": PAPER, "height": 700})
    assert visit.page.evaluate("document.documentElement.scrollWidth") == PAPER
    assert visit.is_calm(path)


@pytest.mark.parametrize("width", [1280, 1920])
@pytest.mark.parametrize("name", PAGES)
def test_no_cell_is_clipped(context: BrowserContext, folders: dict[str, Path], name: str, width: int) -> None:
    page = Visit(context, folders[name] / "report.html", width).opened()
    wider = """[...document.querySelectorAll(".scroll")].filter((it) => it.scrollWidth > it.clientWidth)
        .map((it) => `${it.getAttribute("aria-label")} ${it.scrollWidth} > ${it.clientWidth}`)"""
    assert page.evaluate(wider) == []
    cells = """[...document.querySelectorAll("th, td")].filter((it) => it.scrollWidth > it.clientWidth)
        .map((it) => it.textContent)"""
    assert page.evaluate(cells) == []


@pytest.mark.parametrize("name", PAGES)
def test_a_long_table_is_folded(context: BrowserContext, folders: dict[str, Path], name: str) -> None:
    page = Visit(context, folders[name] / "report.html").page
    long = """[...document.querySelectorAll("table")].filter((it) => it.tBodies[0].rows.length > 8)"""
    open_ones = f"{long}.filter((it) => !it.closest('details')).map((it) => it.dataset.title)"
    assert set(page.evaluate(open_ones)) <= {"Gates that did not pass"}
    page.evaluate(OPEN_ALL)
    fields = page.locator("input.find")
    assert fields.count() == page.evaluate(f"{long}.length")
    for field in fields.all():
        table = field.locator("xpath=following-sibling::*[1]//table")
        name_of_last = table.locator("tbody th").last.inner_text()
        field.fill(name_of_last)
        shown = table.locator("tbody tr:visible")
        assert 0 < shown.count() <= table.locator("tbody tr").count()
        assert name_of_last in shown.last.inner_text()
        field.fill("no such words at all")
        assert shown.count() == 0


@pytest.mark.parametrize("name", PAGES)
def test_every_chart_is_drawn_and_named(context: BrowserContext, folders: dict[str, Path], name: str) -> None:
    figures = Visit(context, folders[name] / "report.html").opened().locator("figure[data-kind]")
    expected = {"quick": 6, "full": 7, "crowded": 7, "aborted": 2, "empty": 0, "attacked": 6, "gated": 7}
    assert figures.count() == expected[name]
    for figure in figures.all():
        assert figure.locator("svg path").count() > 5
        assert figure.locator(".canvas").get_attribute("aria-label")
        assert figure.locator("h3").inner_text()


def test_an_attack_in_every_text_shows_as_text(context: BrowserContext, folders: dict[str, Path]) -> None:
    page = Visit(context, folders["attacked"] / "report.html").page
    assert page.evaluate("window.hacked") is None
    assert page.locator("h1").inner_text() == ATTACK
    assert page.locator("body img").count() == 0
    page.evaluate(OPEN_ALL)
    for place in ("failed", "http", "model"):
        assert page.get_by_text(ATTACK).count() > 10, place


def test_a_comparison_with_a_stranger_runs_nothing_of_theirs(context: BrowserContext, tmp_path: Path) -> None:
    # A folder's name is the stranger's, too, as far as a file system lets it.
    theirs = attacked().write(tmp_path / ATTACK.replace("/", ""))
    mine, out = quick().write(tmp_path / "mine"), tmp_path / "out"
    assert main(["compare", str(mine), str(theirs), "--out", str(out)]) != 2
    visit = Visit(context, out / "compare.html")
    visit.opened()
    assert visit.page.evaluate("window.hacked") is None
    assert visit.page.locator("body img").count() == 0
    assert ATTACK[:20] in visit.page.inner_text("body")
    assert visit.is_calm(out / "compare.html")


@pytest.mark.parametrize("width", WIDTHS)
def test_gates_are_drawn_and_told(context: BrowserContext, folders: dict[str, Path], width: int) -> None:
    page = Visit(context, folders["gated"] / "report.html", width).page
    figure = page.locator("figure[data-kind=gates]")
    texts = " ".join(figure.locator("svg text").all_text_contents())
    for word in ("fail", "pass", "latency_p50_ms <= 30", ATTACK[:20], "onnx-grpc/b1/c1", "1×"):
        assert word in texts
    colour = page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--series-8')")
    marks = figure.locator(f"svg path[fill='{colour}']")
    assert marks.count() >= 4
    marks.nth(3).hover(force=True)
    page.wait_for_selector(".tip strong")
    told = figure.locator(".tip").inner_text()
    assert "✗ fail" in told
    assert ATTACK in told
    assert page.evaluate("window.hacked") is None


def test_a_table_is_sorted_by_what_is_clicked(context: BrowserContext, folders: dict[str, Path]) -> None:
    page = Visit(context, folders["full"] / "report.html").page
    table = page.locator("table[data-title='Serial latency, p50']")
    head = table.locator("thead th").nth(1)
    cells = table.locator("tbody tr td:nth-child(2)")

    def numbers() -> list[float]:
        texts = cells.evaluate_all("all => all.map((it) => it.firstChild.textContent)")
        return [float(text) for text in texts if text != "–"]

    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "ascending"
    rising = numbers()
    assert rising == sorted(rising)
    head.locator("button").click()
    assert (head.get_attribute("aria-sort"), numbers()) == ("descending", rising[::-1])


def test_a_table_is_saved_as_csv(context: BrowserContext, folders: dict[str, Path], tmp_path: Path) -> None:
    page = Visit(context, folders["attacked"] / "report.html").page
    table = page.locator("table[data-title='Failures']")
    with page.expect_download() as download:
        page.locator(".scroll:has(table[data-title='Failures']) + button").click()
    assert download.value.suggested_filename == "failures.csv"
    download.value.save_as(tmp_path / "saved.csv")
    with (tmp_path / "saved.csv").open(encoding="utf-8", newline="") as lines:
        rows = list(csv.reader(lines))
    assert rows[0][:5] == ["cell", "requests", "failed", "failed %", "kinds"]
    assert rows[1][1:5] == ["31", "1", "3.23", f"{ATTACK} 1"]
    assert len(rows) - 1 == table.locator("tbody tr").count()


def test_dark_mode_and_paper_change_what_is_drawn(context: BrowserContext, folders: dict[str, Path]) -> None:
    page = Visit(context, folders["full"] / "report.html").opened()
    text = page.locator("figure[data-kind=breakdown] svg text", has_text="onnx-http").first
    expect(text).to_have_attribute("fill", INK["light"])
    page.emulate_media(color_scheme="dark")
    expect(text).to_have_attribute("fill", INK["dark"])
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    expect(text).to_have_attribute("fill", INK["paper"])


def test_many_curves_are_drawn_batch_by_batch(context: BrowserContext, tmp_path: Path) -> None:
    book = Book()
    for seed, name in enumerate("abcde"):
        for batch in (1, 4):
            for level in (1, 2, 4):
                book.add(f"{name}-http", batch, level, {"w0": lognormal(seed, 9.0 + batch * level, 60)})
    folder = apart(book).write(tmp_path / "many")
    assert main(["show", str(folder), "--quiet"]) == 0
    page = Visit(context, folder / "report.html").opened()
    drawn = page.locator("figure[data-kind=curves]")
    expect(drawn.locator("svg text", has_text="a-http, batch 1").first).to_be_visible()
    drawn.get_by_label("Show batch").select_option("4")
    expect(drawn.locator("svg text", has_text="a-http, batch 4").first).to_be_visible()
    expect(drawn.locator("svg text", has_text="batch 1")).to_have_count(0)


def test_without_scripts_every_table_is_there(browser: Browser, folders: dict[str, Path]) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = Visit(context, folders["full"] / "report.html").page
    assert page.locator("table").count() > 10
    assert page.locator("noscript p").all_text_contents() == [WITHOUT] * 7
    context.close()
