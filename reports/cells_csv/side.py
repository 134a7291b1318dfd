"""A side of a comparison: a study's directory, a published study or a cells.csv, each as the same rows."""

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import isfinite

from reports.caveat import Caveat, caveat
from reports.cells_csv.columns import NAMED, NUMBERS
from reports.ledger.ledger import Record

STUDY, PUBLISHED, CSV = "study", "published", "cells.csv"
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(frozen=True, kw_only=True)
class Row:
    """One run of one cell as a row of cells.csv tells it; `numbers` by column, without the unknown."""

    study: str
    cell: str
    endpoint: str
    backend: str
    protocol: str
    payload: str
    batch: int
    load: str
    level: float
    numbers: Mapping[str, float]
    codes: tuple[str, ...] = ()
    source: str = ""

    @property
    def disqualified(self) -> tuple[Caveat, ...]:
        """The caveats on which no conclusion may rest, without what happened, which rows do not tell."""
        return tuple(doubt for code in self.codes if (doubt := caveat(code, "")).tainted)

    @property
    def succeeded(self) -> float | None:
        """Requests that came back right; None where their number is unknown."""
        requests = self.numbers.get("requests")
        return None if requests is None else requests - self.numbers.get("failures", 0)


@dataclass(frozen=True, kw_only=True)
class Side:
    """What is compared: its rows, endpoint by endpoint, and what is known of where they come from.

    `name` is as readers see it, `place` as the command line takes it; `header` is empty without a ledger.
    `stand_ins` says by endpoint what stands in for something else, `said` what holds for all of it.
    """

    letter: str
    name: str
    kind: str
    place: str
    rows: tuple[Row, ...]
    header: Record
    status: str = ""
    notices: tuple[str, ...] = ()
    stand_ins: Mapping[str, str]
    said: tuple[str, ...] = ()

    @cached_property
    def cells(self) -> Mapping[str, tuple[Row, ...]]:
        """The repeats of each cell, by its name."""
        found: dict[str, list[Row]] = {}
        for row in self.rows:
            found.setdefault(row.cell, []).append(row)
        return {cell: tuple(rows) for cell, rows in found.items()}

    @property
    def label(self) -> str:
        """Letter and name, as sentences have it; a name that was told from another's holds the letter."""
        return self.name if self.name.endswith(f"({self.letter})") else f"{self.letter} ({self.name})"

    @property
    def known(self) -> bool:
        """Whether it says what it ran on."""
        return bool(self.header)

    @property
    def studies(self) -> str:
        """The names of the studies that its rows are of."""
        return ", ".join(dict.fromkeys(row.study for row in self.rows))

    @property
    def sources(self) -> str:
        """The documents that its rows come from, without iterations and runs."""
        return "; ".join(dict.fromkeys(row.source.partition(":")[0] for row in self.rows if row.source))


def in_order(rows: Iterable[Row], endpoints: Iterable[str] = ()) -> tuple[Row, ...]:
    """The rows by endpoint, in the given order and then in theirs, then by variant, users and batch."""
    kept = list(rows)
    place = {name: at for at, name in enumerate(dict.fromkeys([*endpoints, *(row.endpoint for row in kept)]))}
    return tuple(
        sorted(kept, key=lambda row: (place[row.endpoint], row.load, row.level, row.batch, row.cell))
    )


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
