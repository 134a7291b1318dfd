"""Markdown as a reader of it shows it: what is prose, what is code, and which markup there is."""

from collections.abc import Iterator

from markdown_it import MarkdownIt
from markdown_it.token import Token

READER = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
OURS = ("<details><summary>", "</details>", "<code>", "</code>", "<br>")
"""How the HTML begins that renderers write themselves."""


def tokens(text: str) -> Iterator[Token]:
    for token in READER.parse(text):
        yield token
        yield from token.children or ()


def prose(text: str) -> str:
    """A text without its fenced code, which is of three backticks or more."""
    lines = text.splitlines()
    for token in reversed(READER.parse(text)):
        if token.type == "fence" and token.map:
            del lines[slice(*token.map)]
    return "\n".join(lines)


def fences(text: str) -> list[str]:
    """What stands in them."""
    return [token.content for token in READER.parse(text) if token.type == "fence"]


def foreign_markup(text: str) -> set[str]:
    """Links, pictures, code and HTML that no renderer writes."""
    found = {token.type for token in tokens(text)} & {
        "link_open",
        "image",
        "code_inline",
        "code_block",
        "s_open",
    }
    html = [token.content for token in tokens(text) if token.type in ("html_inline", "html_block")]
    return found | {one for one in html if not one.startswith(OURS)}
