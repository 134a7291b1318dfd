"""Rows of cells.csv: of a study, of a file, of what others published."""

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import isfinite
from pathlib import Path

from reports.backend_facts import facts_of
from reports.caveat import Caveat, caveat
from reports.cells_csv.columns import NAMED, NUMBERS, SINCE
from reports.ledger.ledger import LedgerError
from reports.summary.summary import CellFields

FOLDER = Path(__file__).parent.parent / "published"
"""What others published."""


@dataclass(frozen=True, kw_only=True)
class Row(CellFields):
    """One run of one cell as a row of cells.csv tells it; `numbers` by column, without the unknown."""

    study: str
    cell: str
    numbers: Mapping[str, float]
    codes: tuple[str, ...] = ()
    source: str = ""
    stand_in: str = ""

    @property
    def disqualified(self) -> tuple[Caveat, ...]:
        """The caveats on which no conclusion may rest, without what happened, which rows do not tell."""
        return tuple(found for code in self.codes if (found := caveat(code, "")).tainted)

    @property
    def succeeded(self) -> float | None:
        """Requests that came back right; None where their number is unknown."""
        requests = self.numbers.get("requests")
        return None if requests is None else requests - self.numbers.get("failures", 0)


class SideError(LedgerError):
    """A side that cannot be compared; the message is one sentence naming it and the fix."""


def rows_of(lines: Iterable[str], place: str) -> list[Row]:
    """The rows of a text with the columns of cells.csv; SideError where it lacks one, or a number is none."""
    reader = csv.DictReader(lines)
    if missing := [name for name in NAMED if name not in (reader.fieldnames or ())]:
        raise SideError(f"{place}: lacks the columns {', '.join(missing)}: name a CSV file as cells.csv is.")
    return [_row(record, f"{place}: line {reader.line_num}") for record in reader]


def _row(record: Mapping[str, str | None], where: str) -> Row:
    texts = {name: record[name] or "" for name in NAMED if name not in ("batch", "level")}
    since = {name: record.get(column) or "" for column, name in SINCE.items()}
    numbers = {name: _number(text, name, where) for name in NUMBERS if (text := record.get(name))}
    if missing := [name for name in ("batch", "level") if name not in numbers]:
        raise SideError(f"{where}: has no {missing[0]}: fix or remove the line.")
    codes = tuple(code for code in (record.get("caveats") or "").split(";") if code)
    return Row(
        **texts,
        **{**since, "shares": since["shares"] or texts["backend"]},
        batch=int(numbers["batch"]),
        level=numbers["level"],
        numbers=numbers,
        codes=codes,
        source=record.get("source") or "",
        stand_in=_stand_in(record),
    )


def _stand_in(record: Mapping[str, str | None]) -> str:
    """What must stand beside its figures, as the row says itself; by its backend's name of an older file."""
    if (said := record.get("stand_in")) is not None:
        return said
    return facts_of({}, record["backend"] or "").stand_in


def _number(text: str, name: str, where: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not isfinite(value):
        raise SideError(f"{where}: {name} is {text!r}, which is no number: fix or remove the line.")
    return value


def in_order(rows: Iterable[Row], endpoints: Iterable[str] = ()) -> tuple[Row, ...]:
    """The rows by endpoint, in the given order and then in theirs, then by variant, users and batch."""
    kept = list(rows)
    place = {name: at for at, name in enumerate(dict.fromkeys([*endpoints, *(row.endpoint for row in kept)]))}
    return tuple(
        sorted(kept, key=lambda row: (place[row.endpoint], row.load, row.level, row.batch, row.cell))
    )


def published_files() -> dict[str, Path]:
    """The file of each published study, by the study's name, in the order of names."""
    return {path.stem: path for path in sorted(FOLDER.glob("*.csv"), key=lambda path: path.stem)}


def read_published(name: str) -> tuple[Row, ...]:
    """What one published study has, in its file's order; none where no file of ours has that name."""
    known = published_files()
    if name not in known:
        return ()
    with known[name].open(encoding="utf-8", newline="") as lines:
        return tuple(rows_of(lines, name))
