"""Look at a page with a real browser, in a process of its own: Locust's patches and Playwright do not mix.

    python tests/locustfiles/browser.py CHROMIUM URL SELECTOR COUNT [--start | --blocked FILE]

Opens the page at 1280 and 390 px, waits for so many elements there, reloads it and waits again; what was seen
comes out as JSON, by width. With --start: a study is started by the page's form, once that has refused a bad
option. With --blocked: what the page does without that file, and out of sight.
"""

import argparse
import json
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

PATIENCE_MS = 25_000
A_WHILE_MS = 3_500
HIDDEN = """hidden => {
    Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
}"""
WIDTHS = (1280, 390)
UNANSWERED = {
    "503": "async () => new Response('', { status: 503 })",
    "ended": "async () => { throw new TypeError('Failed to fetch'); }",
}
"""What the form asks in vain, by a word of what it says then."""
DRAWN = """() => Object.fromEntries([...document.querySelectorAll(".charts figure:not([hidden])")].map(
    figure => [
    figure.querySelector("h3").textContent,
    window.echarts.getInstanceByDom(figure.querySelector(".plot")).getOption().series.map(one => ({
        name: one.name, points: one.data, bands: (one.markArea?.data ?? []).map(([band]) => band.name),
    })),
]))"""
"""The series of each chart in sight, by its title."""


def look(browser: Browser, url: str, selector: str, count: int, width: int, start: bool) -> dict[str, Any]:
    """What the page shows, what it said on its console, and whom it asked."""
    page = browser.new_page(viewport={"width": width, "height": 900})
    said: list[str] = []
    asked: set[str] = set()
    page.on("console", lambda message: said.append(message.text) if message.type != "log" else None)
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("dialog", lambda dialog: said.append(f"dialog: {dialog.message}"))
    page.on("request", lambda request: asked.add("/".join(request.url.split("/")[:3])))
    page.goto(url)
    seen: dict[str, Any] = {"at once": page.locator(selector).count()}
    if start:
        seen |= started(page)
    seen["first"] = rows(page, selector, count)
    page.reload()
    seen |= {"again": rows(page, selector, count), "text": page.locator("body").inner_text()}
    page.wait_for_timeout(1500)  # charts have been drawn, and drawn again
    wide = page.evaluate("document.documentElement.scrollWidth > window.innerWidth")
    canvases = page.locator("canvas").count()
    seen["drawn"] = page.evaluate(DRAWN)
    page.close()
    return {**seen, "said": said, "asked": sorted(asked), "wide": wide, "canvases": canvases}


def started(page: Page) -> dict[str, Any]:
    """Fill the form with a bad option, correct it, and press Start: what stood beside the button."""
    plan = page.locator("#plan")
    plan.get_by_text("at least").wait_for(timeout=PATIENCE_MS)
    seen: dict[str, Any] = {"plan": plan.inner_text()}
    for name, reply in UNANSWERED.items():
        page.evaluate(f"() => {{ window.own ??= fetch; window.fetch = {reply}; }}")
        page.fill("#option-levels", "1")
        plan.get_by_text(name).wait_for(timeout=PATIENCE_MS)
        seen.setdefault("faults", []).append(plan.inner_text())
    page.evaluate("() => { window.fetch = window.own; }")
    page.fill("#option-levels", "0")
    plan.get_by_text("--levels").wait_for(timeout=PATIENCE_MS)
    seen |= {"refused": plan.inner_text(), "may start": page.locator("#go").is_enabled()}
    page.fill("#option-levels", "")
    plan.get_by_text("at least").wait_for(timeout=PATIENCE_MS)
    page.click("#go")
    # a study of two seconds may be over before the page asks again
    page.locator("#stop, #cells tr").and_(page.locator(":visible")).first.wait_for(timeout=PATIENCE_MS)
    return {**seen, "form in sight": page.locator("#start").is_visible()}


def hindered(browser: Browser, url: str, selector: str, count: int, blocked: str) -> dict[str, Any]:
    """What the page says without a file of its own, and how often it asks: in sight, out of it, and again."""
    page = browser.new_page()
    page.route(f"**/{blocked}", lambda route: route.abort())
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if "/data?" in request.url else None)
    page.goto(url)
    seen: dict[str, Any] = {"rows": rows(page, selector, count)}
    for name, hidden in (("in sight", False), ("out of sight", True), ("in sight again", False)):
        page.evaluate(HIDDEN, hidden)
        page.wait_for_timeout(500)  # what was under way
        asked.clear()
        page.wait_for_timeout(A_WHILE_MS)
        seen[name] = len(asked)
    seen |= {"text": page.locator("body").inner_text(), "rows": rows(page, selector, count)}
    page.close()
    return seen


def rows(page: Page, selector: str, count: int) -> list[str]:
    """The texts of the elements, once there are so many."""
    found = page.locator(selector)
    found.nth(count - 1).wait_for(timeout=PATIENCE_MS)
    return [" ".join(text.split()) for text in found.all_inner_texts()]


def main() -> None:
    """Print what was seen."""
    parser = argparse.ArgumentParser()
    for name, kind in (("chromium", str), ("url", str), ("selector", str), ("count", int)):
        parser.add_argument(name, type=kind)
    parser.add_argument("--start", action="store_true")
    parser.add_argument("--blocked", default="")
    asked = parser.parse_args()
    page = (asked.url, asked.selector, asked.count)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=asked.chromium, args=["--no-sandbox"])
        if asked.blocked:
            print(json.dumps(hindered(browser, *page, asked.blocked)))
        else:
            starts = (asked.start, False)
            print(json.dumps({w: look(browser, *page, w, s) for w, s in zip(WIDTHS, starts, strict=True)}))
        browser.close()


if __name__ == "__main__":
    main()
