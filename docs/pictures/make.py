"""Take the pictures of README.md and docs/report.md from the report of a real study.

    python docs/pictures/make.py                 of the newest step 7 in results/
    python docs/pictures/make.py results/NAME    of that study

The report is made again from the ledger first, so the pictures show what the code makes now. Needs Chromium.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import re
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image
from playwright.sync_api import Browser, FloatRect, Locator, Page, sync_playwright

from reports.__main__ import main as reports

HERE = Path(__file__).resolve().parent
RESULTS = HERE.parent.parent / "results"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
WIDTH, HEIGHT = 1280, 800
"""CSS pixels of the window."""
TALLEST_SCREEN, TALLEST_PART = 1_100, 700
"""CSS pixels of a picture; what is taller is cut."""
COLOURS = 256
MOST_BYTES = 150_000
PARTS = {
    "results": "Results",
    "breakdown": "Latency breakdown",
    "distribution": "Latency by percentile",
    "timeline": "Timeline",
    "caveats": "Caveats",
    "environment": "Environment",
}
"""The names of pictures, and with which words the headings of the parts begin that they show."""
UNFOLD = """head => {
    for (let it = head; it; it = it.parentElement) if (it.localName == "details") it.open = true;
}"""


def main(argv: Sequence[str]) -> int:
    """Write the pictures: 1 where a part is missing or a file too large, 2 where there is nothing to show."""
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    parser.add_argument("study", nargs="?", type=Path, help="folder of a study")
    asked: Path | None = parser.parse_args(argv).study
    study = asked.resolve() if asked else newest()
    if study is None or CHROMIUM is None:
        print("no step 7 in results/ (run `make step7`), or no Chromium on the path", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        report = made_again(study)
        taken = pictures(CHROMIUM, report.resolve()) if report else {}
    written = [write(name, picture) for name, picture in taken.items()]
    return (0 if all(written) else 1) if written else 2


def newest() -> Path | None:
    """The folder of the last step 7 that has a report."""
    return max((file.parent for file in RESULTS.glob("step7-*/report.html")), default=None)


def made_again(study: Path) -> Path | None:
    """The report of a study, made in the current folder, where its path is as in a checkout."""
    folder = Path("results", study.name)
    folder.mkdir(parents=True)
    shutil.copy(study / "ledger.jsonl", folder)
    return folder / "report.html" if reports(["show", str(folder), "--quiet"]) != 2 else None


def pictures(chromium: str, report: Path) -> dict[str, bytes | None]:
    """Each picture as a PNG file; nothing where the report lacks its part."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = opened(browser, report)
        first = page.screenshot(full_page=True, clip=above_parts(page))
        page.add_style_tag(content="nav { position: static !important }")
        taken = {name: part(page, heading) for name, heading in PARTS.items()}
        browser.close()
    return {"first-screen": first, **taken}


def opened(browser: Browser, report: Path) -> Page:
    """The page, once its charts are drawn."""
    page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
    page.goto(report.as_uri())
    page.wait_for_timeout(1000)
    return page


def above_parts(page: Page) -> FloatRect:
    """Where the first screen is: all that stands above the first part."""
    return {
        "x": 0,
        "y": 0,
        "width": WIDTH,
        "height": min(around(page.locator("main h2").first)["y"], TALLEST_SCREEN),
    }


def part(page: Page, heading: str) -> bytes | None:
    """What stands below a heading, unfolded."""
    heads = page.locator("main :is(h2, h3, summary)")
    head = heads.filter(has_text=re.compile(rf"^\s*{heading}\b")).first
    if not head.count():
        return None
    head.evaluate(UNFOLD)
    page.wait_for_timeout(500)
    place = around(head)
    return page.screenshot(full_page=True, clip={**place, "height": min(place["height"], TALLEST_PART)})


def around(head: Locator) -> FloatRect:
    """Where on the page the element lies that a heading is the first child of, as wide as the page."""
    box = head.locator("..").bounding_box()
    if box is None:
        raise ValueError("the heading is hidden")
    return {
        "x": 0,
        "y": box["y"] + head.evaluate("() => window.scrollY"),
        "width": WIDTH,
        "height": box["height"],
    }


def write(name: str, picture: bytes | None) -> bool:
    """Keep a picture in few colours and say its size; false where it is missing or too large."""
    if picture is None:
        print(f"{name}: the report has no heading {PARTS[name]!r}", file=sys.stderr)
        return False
    path = HERE / f"{name}.png"
    in_few_colours(Image.open(io.BytesIO(picture)).convert("RGB")).save(path, optimize=True)
    size = path.stat().st_size
    print(f"docs/pictures/{path.name}: {size:,} bytes, at most {MOST_BYTES:,}")
    return size <= MOST_BYTES


def in_few_colours(picture: Image.Image) -> Image.Image:
    """The picture in its most frequent colours: areas keep their own, smooth edges take the nearest."""
    pixels = np.asarray(picture).reshape(-1, 3)
    colours, counts = np.unique(pixels, axis=0, return_counts=True)
    palette = Image.new("P", (1, 1))
    palette.putpalette(colours[np.argsort(-counts)[:COLOURS]].tobytes())
    return picture.quantize(palette=palette, dither=Image.Dither.NONE)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
