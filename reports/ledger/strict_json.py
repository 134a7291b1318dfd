"""JSON as its standard has it: Python's own reader also takes NaN, infinities, and halves of characters."""

import json
import re
from codecs import BOM_UTF8
from math import isfinite
from typing import Any, NoReturn

_HALF = re.compile(rb"\\u[dD][89a-fA-F]")
"""One of the two escapes that make a character beyond U+FFFF."""


def parsed(line: bytes) -> Any:
    """What a line of JSON tells; `?` stands for half a character, which no file can be written with.

    ValueError where it is no JSON, or names a number that is not finite; RecursionError where it is too deep.
    """
    found = _STRICT.decode(line.removeprefix(BOM_UTF8).decode())
    if not _HALF.search(line):
        return found
    return json.loads(json.dumps(found, ensure_ascii=False).encode(errors="replace"))


def _refused(number: str) -> NoReturn:
    raise ValueError(f"JSON has no {number}")


def _finite(text: str) -> float:
    value = float(text)
    return value if isfinite(value) else _refused(text)


_STRICT = json.JSONDecoder(parse_float=_finite, parse_constant=_refused)
