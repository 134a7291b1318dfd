"""Small files from outside, read whole and strictly; what would never end is refused as the system does."""

import errno
import json
import os
import re
import stat
import tomllib
from codecs import BOM_UTF8
from math import isfinite
from pathlib import Path
from typing import Any, NoReturn

MOST_BYTES = 64_000_000
"""Of a file that people or other studies wrote by hand or in one piece: a hundred times the largest known."""


def whole_file(path: Path | str) -> bytes:
    """All of a regular file; OSError where it cannot be read, is none, or is larger than MOST_BYTES."""
    check_regular(path)
    with open(path, "rb") as file:
        found = file.read(MOST_BYTES + 1)
    if len(found) > MOST_BYTES:
        raise OSError(errno.EFBIG, f"larger than {MOST_BYTES / 1e6:g} MB", str(path))
    return found


def parsed_toml(text: str) -> dict[str, Any]:
    """What a text in TOML says; ValueError where it is none, or has a number of more than TOML's 64 bits."""
    try:
        found = tomllib.loads(text)
        _check_numbers(found)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    return found


def _check_numbers(value: Any) -> None:
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise ValueError("it has a number of more than 64 bits")
    for one in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _check_numbers(one)


def check_regular(path: Path | str) -> None:
    """OSError where nothing is there, or no regular file: opening a pipe would wait for somebody to write."""
    if "\0" in str(path):
        raise OSError(errno.EINVAL, "no path has a NUL in it", str(path))
    mode = os.stat(path).st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "it is no regular file", str(path))


_HALF = re.compile(rb"\\u[dD][89a-fA-F]")
"""One of the two escapes that make a character beyond U+FFFF."""


def parsed(line: bytes) -> Any:
    """What a line of JSON tells; `?` stands for half a character, which no file can be written with.

    JSON is as its standard has it: Python's own reader also takes NaN, infinities, and halves of characters.
    ValueError where it is none, or names a number that is not finite; RecursionError where it is too deep.
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
