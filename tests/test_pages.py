"""README.md and docs/: links lead somewhere, each page can be reached, README and pictures are small."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), ROOT / "benchmarks/README.md"])
MOST_WORDS = 1_000
MOST_BYTES = 150_000
"""Of a picture."""
PNG = b"\x89PNG\r\n"


def links(page: Path) -> list[str]:
    """Where a page's links and pictures lead, other sites left out."""
    text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    return [to for to in re.findall(r"\]\(([^)\s]+)\)", text) if not to.startswith(("http:", "https:"))]


def anchors(page: Path) -> set[str]:
    """What GitHub makes of the headings."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    heads = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


def broken(page: Path) -> Iterator[str]:
    """Links to files, or to headings of pages, that are not there."""
    for link in links(page):
        path, _, anchor = link.partition("#")
        to = (page.parent / path).resolve() if path else page
        if not to.exists() or (anchor and anchor not in anchors(to)):
            yield link


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_its_links_lead_somewhere(page: Path) -> None:
    assert list(broken(page)) == []


def test_the_readme_leads_to_every_page() -> None:
    """In at most two steps."""
    first = {(ROOT / link.partition("#")[0]).resolve() for link in links(README)}
    pages = [page for page in first if page.suffix == ".md"]
    second = {(page.parent / link.partition("#")[0]).resolve() for page in pages for link in links(page)}
    assert set(ROOT.glob("docs/*.md")) - first - second == set()


def test_the_readme_is_short() -> None:
    assert len(README.read_text(encoding="utf-8").split()) <= MOST_WORDS


def test_the_readme_names_every_study() -> None:
    studies = {path.name for path in ROOT.glob("locustfiles/*.py")} - {"__init__.py"}
    assert set(re.findall(r"^\| `locustfiles/(\w+\.py)`", README.read_text(), re.MULTILINE)) == studies


def test_pictures_are_small_and_each_is_shown() -> None:
    made = {path.resolve(): path.read_bytes() for path in ROOT.glob("docs/pictures/*.png")}
    shown = {
        (page.parent / link).resolve() for page in PAGES for link in links(page) if link.endswith(".png")
    }
    assert made.keys() == shown
    assert all(data.startswith(PNG) and len(data) <= MOST_BYTES for data in made.values())
