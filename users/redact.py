"""Tokens are for servers alone: in any text for a person or a file their variables' names stand for them.

So do the names of parameters for the secrets in a URL's query.
"""

import functools
import html
import json
import os
import re
from collections.abc import Iterable
from urllib.parse import quote, unquote

VARIABLE = re.compile(r"INFERSWARM_(?:[A-Z0-9_]+_)?TOKEN")
CONTROL = "INFERSWARM_MODEL_CONTROL"
"""`NAME=VALUE`: the secret for changing tritonservers."""
SECRET = re.compile(r"auth|cookie|key|token|secret|passw|credential|signature", re.IGNORECASE)
"""Parts of the names of headers whose values are secrets."""
_others: set[str] = set()
"""Further variables whose values are secrets: those used in headers of endpoints."""
_in_urls: dict[str, str] = {}
"""By what is secret in the queries of endpoints' URLs, the name of the parameter."""
SHORTEST = 4
"""A shorter value is hardly a secret, and would be found in ordinary words."""
QUERY = re.compile(
    r"[?&;]([^=&\s]*(?:key|token|secret|pass|passwd|password|pwd|sig|signature|code|credentials?|auth"
    r"|authorization|session))=([^&\s\"'<>;,)]+)",
    re.IGNORECASE,
)
"""A parameter whose name ends as those of secrets do, such as `sig`, `code`, `api-key`, `X-Amz-Signature`."""
WORD = re.compile(r".{0,7}|[a-zA-Z]*|[0-9.]*")
"""A value that may stand in any text, and not as a secret."""
MOST_QUOTED = 2_000
"""Characters of a foreign text: more than an error has with the lines of a program that led to it."""


def keep_secret(names: Iterable[str]) -> None:
    """From here on for this process: the values of these variables are secrets, too."""
    if not _others.issuperset(names):
        _others.update(names)
        spellings.cache_clear()


def secrets_in(url: str) -> dict[str, str]:
    """What is secret in a URL's query, by the names of its parameters."""
    return dict(QUERY.findall(url))


def keep_query(url: str) -> None:
    """From here on for this process: what is secret in a URL's query is so in every text."""
    for name, value in secrets_in(url).items():
        shown = f"{name}={value}" if WORD.fullmatch(value) else unquote(value)
        if shown not in _in_urls:
            _in_urls[shown] = name
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
    values = [*_in_urls.items(), *((value, name) for name, value in sorted(tokens.items(), reverse=True))]
    found = {
        spelt: f"[{name}]"
        for value, name in values
        if len(value) >= SHORTEST
        for spelt in (value, json.dumps(value)[1:-1], quote(value, safe=""), html.escape(value))
    }
    return tuple(sorted(found.items(), key=lambda pair: -len(pair[0])))


def redacted(text: str) -> str:
    """The text with `[INFERSWARM_TOKEN]`, or another token's name, wherever that token stood.

    >>> redacted("see https://x.example/embed?v=1&sig=0a1b")
    'see https://x.example/embed?v=1&sig=[hidden]'
    """
    for spelt, name in spellings():
        text = text.replace(spelt, name)
    return QUERY.sub(lambda found: f"{found[0].partition('=')[0]}=[hidden]", text) if "=" in text else text


def quoted(text: str) -> str:
    """A foreign text on one line, redacted, and escaped where a terminal would not just print it.

    It is whole, but for what is in the middle of one of more than 2,000 characters: its end, where Python
    and most servers say why, is kept as its beginning is.
    """
    shown = " ".join(redacted(text).split())  # redacted before it is cut, since a part says too much
    if len(shown) > MOST_QUOTED:
        shown = f"{shown[: MOST_QUOTED // 2]} … {shown[-MOST_QUOTED // 2 :]}"
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in shown)
