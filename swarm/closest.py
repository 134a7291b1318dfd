"""Suggestions for a name that matches nothing."""

from collections.abc import Iterable
from difflib import get_close_matches

LIKE = 0.6
"""How like a name must be, from 0 to 1, to be suggested."""
MOST = 3


def closest(asked: str, known: Iterable[str]) -> str:
    """The known names that are most like it, for a sentence; empty where none is.

    >>> closest("onx-http/*", ["onnx-http/*", "onnx-grpc/*", "pytorch-http/*"])
    'closest: onnx-http/*, pytorch-http/*, onnx-grpc/*; '
    """
    found = get_close_matches(asked, list(dict.fromkeys(known)), MOST, LIKE)
    return f"closest: {', '.join(found)}; " if found else ""


def some(names: Iterable[str], most: int = 8) -> str:
    """Names between commas: the first few, and how many more there are.

    >>> some(["a", "b", "c"], most=2)
    'a, b and 1 more'
    """
    every = list(dict.fromkeys(names))
    more = f" and {len(every) - most} more" if len(every) > most else ""
    return ", ".join(every[:most]) + more
