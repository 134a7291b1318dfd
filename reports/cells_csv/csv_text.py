"""CSV of things whose attributes are named as columns are."""

import csv
import io
import re
from collections.abc import Iterable, Sequence

_FORMULA = re.compile(r"[=+\-@\t\r]")
_NS_PER = {"ms": 1e6, "s": 1e9}


def csv_text(columns: Sequence[str], rows: Iterable[Iterable[object]]) -> str:
    """Heads and rows; None becomes an empty field, and what a spreadsheet would compute stays a text."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_safe(value) for value in row] for row in rows)
    return out.getvalue()


def _safe(value: object) -> object:
    """A text with `'` before it where it begins like a formula, as spreadsheets write texts."""
    if not isinstance(value, str):
        return value
    # Python's writer leaves a carriage return unquoted, which then ends the row.
    return ("'" if _FORMULA.match(value) else "") + value.replace("\r", " ")


def column_of(thing: object, column: str) -> object:
    """The attribute of a column's name, or its `_ns` twin in the column's unit; None without either."""
    stem, _, unit = column.rpartition("_")
    value_ns = getattr(thing, f"{stem}_ns", None) if unit in _NS_PER else None
    value = getattr(thing, column, None) if value_ns is None else value_ns / _NS_PER[unit]
    return round(value, 6) if isinstance(value, float) else value
