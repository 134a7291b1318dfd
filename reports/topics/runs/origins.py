"""Tables of where the numbers come from: endpoints, images, options, fingerprint."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from reports.page.table import Table, words
from reports.study.study_reports import Study

_PAIR = ("what", "value")


def endpoints(study: Study) -> Table:
    """Each endpoint with its address, model and weights."""
    heads = ("endpoint", "address", "model", "weights", "server")
    rows = (
        (name, about.get("url", ""), about.get("model", ""), about.get("weights", ""), _server(about))
        for name, about in study.described.items()
    )
    return words("Endpoints", heads, rows)


def _server(about: Mapping[str, Any]) -> str:
    """Whose it is, and what it computes on or whom it asks, where it said so."""
    whose = "embedded" if about.get("embedded") else "given"
    return ", ".join(str(text) for text in (whose, about.get("provider"), about.get("upstream")) if text)


def images(study: Study) -> Table:
    """The image set that was sent."""
    return words("Images", _PAIR, flat(study.header.get("images") or {}))


def options(study: Study) -> Table:
    """The options as resolved."""
    return words("Options", _PAIR, flat(study.header.get("options") or {}), folded=True)


def fingerprint(study: Study) -> Table:
    """What the study ran on."""
    return words("Fingerprint", _PAIR, flat(study.header.get("fingerprint") or {}), folded=True)


def flat(tree: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """A nested mapping as dotted names and texts, those of a list between commas; other values as JSON."""
    for name, value in tree.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{name}.")
        elif isinstance(value, list) and value and all(isinstance(one, str) for one in value):
            yield f"{prefix}{name}", ", ".join(value)
        else:
            yield f"{prefix}{name}", value if isinstance(value, str) else json.dumps(value)
