"""Tokens are for servers alone: in any text for a person or a file their variables' names stand for them."""

import functools
import html
import json
import os
import re
from collections.abc import Iterable
from urllib.parse import quote

VARIABLE = re.compile(r"INFERSWARM_(?:[A-Z0-9_]+_)?TOKEN")
CONTROL = "INFERSWARM_MODEL_CONTROL"
"""`NAME=VALUE`: the secret for changing tritonservers."""
_others: set[str] = set()
"""Further variables whose values are secrets: those used in headers of endpoints."""
SHORTEST = 4
"""A shorter value is hardly a secret, and would be found in ordinary words."""


def keep_secret(names: Iterable[str]) -> None:
    """From here on for this process: the values of these variables are secrets, too."""
    if not _others.issuperset(names):
        _others.update(names)
        spellings.cache_clear()


@functools.cache
def spellings() -> tuple[tuple[str, str], ...]:
    """What each token of this process looks like as text, JSON, URL or HTML, and what stands for it.

    Read once: a failing request must not cost more than that. Longest first, since one may hold another.
    """
    tokens = {
        name: value for name, value in os.environ.items() if VARIABLE.fullmatch(name) or name in _others
    }
    tokens[CONTROL] = os.environ.get(CONTROL, "").partition("=")[2]
    found = {
        spelt: f"[{name}]"
        for name, value in sorted(tokens.items(), reverse=True)
        if len(value) >= SHORTEST
        for spelt in (value, json.dumps(value)[1:-1], quote(value, safe=""), html.escape(value))
    }
    return tuple(sorted(found.items(), key=lambda pair: -len(pair[0])))


def redacted(text: str) -> str:
    """The text with `[INFERSWARM_TOKEN]`, or another token's name, wherever that token stood."""
    for spelt, name in spellings():
        text = text.replace(spelt, name)
    return text


def quoted(text: str, most: int) -> str:
    """A foreign text on one line, cut to so many characters; redacted first, since a part says too much."""
    # Far more than is kept, since blanks are joined; but not all of a long page, character by character.
    shown = "".join(char if char.isprintable() else " " for char in redacted(text)[: 8 * most])
    return " ".join(shown.split())[:most]
