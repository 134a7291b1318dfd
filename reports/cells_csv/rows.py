"""Rows from a text with the columns of cells.csv, be it ours or a published one with its sources."""

import csv
from collections.abc import Iterable, Mapping
from math import isfinite

from reports.cells_csv.columns import NAMED, NUMBERS
from reports.cells_csv.side import Row


class SideError(Exception):
    """A side that cannot be compared; the message is one sentence naming it and the mend."""


def rows_of(lines: Iterable[str], place: str) -> list[Row]:
    """The rows of a text with the columns of cells.csv; SideError where it lacks one, or a number is none."""
    reader = csv.DictReader(lines)
    if missing := [name for name in NAMED if name not in (reader.fieldnames or ())]:
        raise SideError(f"{place}: lacks the columns {', '.join(missing)}: name a CSV file as cells.csv is.")
    return [_row(record, f"{place}: line {reader.line_num}") for record in reader]


def _row(record: Mapping[str, str | None], where: str) -> Row:
    texts = {name: record[name] or "" for name in NAMED if name not in ("batch", "level")}
    numbers = {name: _number(text, name, where) for name in NUMBERS if (text := record.get(name))}
    if missing := [name for name in ("batch", "level") if name not in numbers]:
        raise SideError(f"{where}: has no {missing[0]}: mend or remove the line.")
    codes = tuple(code for code in (record.get("caveats") or "").split(";") if code)
    return Row(
        **texts,
        batch=int(numbers["batch"]),
        level=numbers["level"],
        numbers=numbers,
        codes=codes,
        source=record.get("source") or "",
    )


def _number(text: str, name: str, where: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not isfinite(value):
        raise SideError(f"{where}: {name} is {text!r}, which is no number: mend or remove the line.")
    return value
