"""The fields of a table in TOML, each of its type: GateError, beginning with the place, where one is not."""

from collections.abc import Collection, Mapping
from typing import Any

from reports.gates.error import GateError

Table = Mapping[str, Any]
MOST = 1e15
"""Numbers beyond that, or not finite, mean nothing here."""


def only(table: Table, known: Collection[str], where: str) -> None:
    """Nothing but known fields."""
    if strange := [key for key in table if key not in known]:
        raise GateError(f"{where}: {_short(strange[0])} is no field of it; they are {', '.join(known)}.")


def text(table: Table, key: str, where: str) -> str:
    """A text, empty where the field is missing."""
    value = table.get(key, "")
    if not isinstance(value, str):
        raise GateError(f"{where}: {key} {_short(value)}: give a text in quotes.")
    return value


def texts(table: Table, key: str, where: str, example: str) -> tuple[str, ...]:
    """A list of texts, empty where the field is missing."""
    value = table.get(key, [])
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise GateError(f"{where}: {key} {_short(value)}: give a list of texts, e.g. {example}.")
    return tuple(value)


def number(table: Table, key: str, where: str, most: float) -> float:
    """A number from 0 to `most`."""
    value = table[key]
    if not _is_number(value) or not 0 <= value <= most:
        raise GateError(f"{where}: {key} {_short(value)}: give a number from 0 to {most:,g}.")
    return float(value)


def numbers(table: Table, key: str, where: str) -> frozenset[float]:
    """One number or more, as a list where there are several."""
    value = table[key]
    values = value if isinstance(value, list) else [value]
    if not values or not all(_is_number(one) for one in values):
        raise GateError(f"{where}: {key} {_short(value)}: give a number or a list of numbers.")
    return frozenset(float(one) for one in values)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and -MOST <= value <= MOST


def _short(value: Any) -> str:
    """As Python writes it, on one line and not endless."""
    return f"{value!r:.60}"
