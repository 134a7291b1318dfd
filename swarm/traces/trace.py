"""Traces of requests in CSV, JSON lines and Parquet: when each came, its items, its endpoint and picture."""

import csv
import io
import itertools
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, Self, TextIO

import numpy as np
from numpy.typing import NDArray

from reports.format import plural
from reports.ledger.files import check_regular, parsed, whole_file
from swarm.closest import some
from swarm.traces.times import (
    ISO,
    MOST_S,
    NUMBERS,
    RESOLUTION_FLAG,
    SINCE_1970_S,
    UNIT_FLAG,
    UNITS,
    TimeValue,
    find_resolution,
    find_unit,
    named_unit,
    read_time,
    spread,
)
from users.load.mix import MOST_CLASSES
from users.load.replay import MOST_ROWS, NO_PICTURE, NS_PER_S, Replay

FORMATS = (".csv", ".jsonl", ".parquet")
NAMES = {"time": "time", "timestamp": "time", "items": "items", "batch": "items"} | {
    name: name for name in ("endpoint", "picture")
}
"""The columns of a file, and what each is; those of times may have their unit at the end."""
MOST_ITEMS, MOST_PICTURE = 4_096, 1_000_000


class TraceRow(NamedTuple):
    """One request: when it came; items; endpoint, or ""; picture, or -1."""

    time_s: float
    items: int = 1
    endpoint: str = ""
    picture: int = NO_PICTURE


@dataclass(frozen=True, eq=False)
class ArrivalTrace:
    """Requests in the order of their times.

    `times_s`: float64 of shape [n], seconds from the first row, rising or equal. `items`, `pictures`: int64
    of shape [n]. `endpoints`: the name of each row, none where the file names none. `first_s`: the time of
    the first row, in seconds as the file has it. `resolution_s`: that of the file's times, 0 where they have
    none. `notes`: sentences on what was made of the file.
    """

    times_s: NDArray[np.float64]
    items: NDArray[np.int64]
    endpoints: tuple[str, ...] = ()
    pictures: NDArray[np.int64] | None = None
    first_s: float = 0.0
    unit: str = "s"
    resolution_s: float = 0.0
    notes: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        rows: Iterable[TraceRow],
        notes: tuple[str, ...] = (),
        unit: str = "s",
        resolution_s: float | None = None,
        seed: int = 0,
    ) -> Self:
        """Sorted by time, rows of one time spread over the resolution, which is found where it is not given.

        Raises ValueError where there is no row, where they span more than MOST_S, or where the resolution
        cannot be told.
        """
        told = list(rows)
        if not told:
            raise ValueError("has no requests; give at least one row")
        kept = sorted(told, key=lambda row: row.time_s)
        late = sum(after.time_s < before.time_s for before, after in itertools.pairwise(told))
        if late:
            moved = f"{plural(late, 'row')} came before the one above: all were sorted by time"
            notes = (*notes, moved)
        times_s = np.array([row.time_s for row in kept]) / UNITS.get(unit, 1.0)
        first_s = float(times_s[0])
        if first_s >= 10 * SINCE_1970_S:
            raise ValueError(
                f"begins at {first_s:,.15g} s, if its times are in {unit}; give another {UNIT_FLAG}"
            )
        times_s = (times_s - first_s).round(9)
        if times_s[-1] > MOST_S:
            raise ValueError(f"is {times_s[-1]:,.0f} s long; give one of at most {MOST_S:,} s, a week")
        resolution_s = find_resolution(times_s) if resolution_s is None else resolution_s
        times_s, moved_rows = spread(times_s, resolution_s, seed)
        if moved_rows:
            together = (
                f"{plural(moved_rows, 'row')} of one time were spread at random over {resolution_s:g} s"
            )
            notes = (*notes, f"{together}; {RESOLUTION_FLAG} 0 keeps them together")
        order = np.argsort(times_s, kind="stable").tolist()
        kept = [kept[place] for place in order]
        pictures = np.array([row.picture for row in kept])
        named = any(row.endpoint for row in kept)
        return cls(
            times_s[order],
            np.array([row.items for row in kept]),
            tuple(row.endpoint for row in kept) if named else (),
            pictures if (pictures != NO_PICTURE).any() else None,
            first_s,
            unit,
            resolution_s,
            notes,
        )

    def __len__(self) -> int:
        return len(self.times_s)

    @property
    def seconds(self) -> float:
        """How long it is: to its last request, and a mean gap more; a second more where all come at once."""
        first_s, last_s = float(self.times_s[0]), float(self.times_s[-1])
        return last_s + ((last_s - first_s) / (len(self) - 1) if last_s > first_s else 1)

    @property
    def mean_per_s(self) -> float:
        """Requests a second."""
        return len(self) / self.seconds

    @property
    def most_in_a_second(self) -> int:
        """The highest number of requests in a second of its own."""
        return int(np.bincount(self.times_s.astype(np.int64)).max())

    @property
    def told_times(self) -> str:
        """What its times were taken for."""
        unit = self.unit if self.unit == ISO else f"in {self.unit}"
        exact = f", exact to {self.resolution_s:g} s" if self.resolution_s else ""
        return f"{unit}{exact}, counted from the first row at {_moment(self.first_s)}"

    def of_endpoint(self, name: str, speed: float = 1.0) -> Replay | None:
        """The rows of an endpoint, all of them where the trace names none; None where none is its own.

        At so many times its speed the trace is as much shorter. Raises ValueError where they have more kinds
        of batches than a worker prepares requests for.
        """
        own = (
            np.array([one == name for one in self.endpoints]) if self.endpoints else np.full(len(self), True)
        )
        if not own.any():
            return None
        if (kinds := len(np.unique(self.items[own]))) > MOST_CLASSES:
            raise ValueError(f"has {kinds} different batches; give at most {MOST_CLASSES}")
        times_ns = np.rint(self.times_s[own] / speed * NS_PER_S).astype(np.int64)
        pictures = None if self.pictures is None else self.pictures[own].astype(np.int32)
        return Replay(times_ns, self.items[own].astype(np.uint16), pictures, self.seconds / speed)


def _moment(at_s: float) -> str:
    """Seconds, or the UTC time where that is what they are."""
    if at_s < SINCE_1970_S / 10:
        return f"{at_s:g} s"
    return f"{datetime.fromtimestamp(at_s, UTC):%Y-%m-%dT%H:%M:%SZ}"


def read_trace(path: Path | str, unit: str = "", resolution_s: float | None = None) -> ArrivalTrace:
    """The trace in a file, by its ending; unit and resolution of its times are found where not given.

    A file that has not changed is not read again. Raises ValueError with what is wrong, and where.
    """
    try:
        check_regular(path)
        changed = Path(path).stat()
        return _read(str(path), unit, resolution_s, changed.st_mtime_ns, changed.st_size)
    except OSError as error:
        raise ValueError(f"cannot be read ({error.strerror or error}); name a trace") from error
    except UnicodeEncodeError:
        raise ValueError("is no path; name a trace") from None


@lru_cache(maxsize=1)
def _read(path: str, unit: str, resolution_s: float | None, changed_ns: int, size: int) -> ArrivalTrace:
    kind = Path(path).suffix.lower()
    if kind not in FORMATS:
        raise ValueError(f"is no trace by its name; give a file that ends in {', '.join(FORMATS)}")
    records = {".csv": _of_csv, ".jsonl": _of_json_lines, ".parquet": _of_parquet}[kind](path)
    table = _Table()
    rows = list(_rows(records, table))
    notes = (f"columns that a trace does not have are left out: {some(table.left_out)}",)
    unit = table.find_unit(rows, unit) if rows else ""
    return ArrivalTrace.of(rows, notes if table.left_out else (), unit, resolution_s)


@dataclass
class _Table:
    """What is seen of a file while its rows are read: the column of times, and those that are left out."""

    column: str = ""
    place: str = ""
    """Of its first row."""
    left_out: dict[str, None] = field(default_factory=dict)
    kind: str = ""
    """Of its times."""
    is_whole: bool = True

    def see(self, column: str, moment: TimeValue, place: str) -> None:
        """Another row's time. Raises ValueError where it is of another kind than the first."""
        if not self.column:
            self.column, self.place, self.kind = column, place, moment.kind
        if (moment.kind, column) != (self.kind, self.column):
            raise ValueError(
                f"{column} has {moment.kind}, and {self.column} {self.kind} in {self.place};"
                " give one kind of times"
            )
        self.is_whole &= moment.is_whole

    def find_unit(self, rows: Sequence[TraceRow], unit: str) -> str:
        """Of the rows' times, where they are numbers. Raises ValueError where it may be another."""
        if self.kind != NUMBERS:
            return ISO
        if unit:
            return unit
        times = np.array([row.time_s for row in rows])
        return find_unit(times, self.column, {name.lower() for name in self.left_out}, self.is_whole)


def _rows(records: Iterable[tuple[str, Mapping[str, Any]]], table: _Table) -> Iterator[TraceRow]:
    """A row for each record, which comes with its place."""
    for count, (place, record) in enumerate(records, 1):
        if count > MOST_ROWS:
            raise ValueError(f"has more than {MOST_ROWS:,} rows; give at most so many")
        try:
            told, column = _named(record, table.left_out)
            moment = read_time(told["time"])
            table.see(column, moment, place)
            row = _row(moment.value, told)
        except ValueError as error:
            raise ValueError(f"{place}: {error}") from None
        yield row


def _named(record: Mapping[str, Any], left_out: dict[str, None]) -> tuple[dict[str, Any], str]:
    """Its values by what they are, and the column of its time; names of other columns go to `left_out`."""
    told: dict[str, Any] = {}
    time_column = ""
    for column, value in record.items():
        given = str(column).strip().lower()
        name = NAMES.get(given) or ("time" if named_unit(given) else None)
        if name is None:
            left_out[f"{column!s:.40}"] = None
        elif name in told:
            raise ValueError(f"{name} is given twice; leave out {column}")
        else:
            told[name] = value
            time_column = given if name == "time" else time_column
    if "time" not in told:
        raise ValueError("has no time; give a column time, in seconds or ISO 8601")
    return told, time_column


def _row(time_s: float, told: Mapping[str, Any]) -> TraceRow:
    return TraceRow(
        time_s,
        _whole("items", told.get("items"), 1, 1, MOST_ITEMS),
        str(told.get("endpoint") or "").strip(),
        _whole("picture", told.get("picture"), NO_PICTURE, 0, MOST_PICTURE),
    )


def _whole(name: str, value: Any, unset: int, least: int, most: int) -> int:
    text = str(value).strip() if value is not None else ""
    if not text:
        return unset
    try:
        found = float(text) if text.isascii() else math.nan
    except ValueError:
        found = math.nan
    if not least <= found <= most or found % 1:
        raise ValueError(f"{name} is {text!r:.40}; give a whole number from {least} to {most:,}")
    return int(found)


def _text_of(path: str) -> str:
    try:
        return whole_file(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"is not UTF-8 text (byte {error.start:,}); save it as UTF-8") from None


def _of_csv(path: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    lines = csv.DictReader(io.StringIO(_text_of(path), newline=""), strict=True)
    try:
        for record in lines:
            place = f"line {lines.line_num}"
            if None in record or None in record.values():
                wanted = plural(len(lines.fieldnames or ()), "field")
                raise ValueError(f"{place}: give it {wanted}, as the first line has")
            yield place, record
    except csv.Error as error:
        raise ValueError(f"line {lines.line_num + 1}: is no CSV ({error})") from None


def _of_json_lines(path: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for number, line in enumerate(whole_file(path).splitlines(), 1):
        if not line.strip():
            continue
        try:
            record = parsed(line)
        except (ValueError, RecursionError):
            record = None
        if not isinstance(record, dict):
            raise ValueError(
                f'line {number}: is no JSON object; give one such as {{"time": 0.25, "items": 4}}'
            )
        yield f"line {number}", record


def _of_parquet(path: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    # Here, since it takes its time, and few traces are such files.
    import pyarrow
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(path) as file:
            if file.metadata.num_rows > MOST_ROWS:
                raise ValueError(f"has more than {MOST_ROWS:,} rows; give at most so many")
            read = 0
            for batch in file.iter_batches():
                for number, record in enumerate(_in_us(batch).to_pylist(), read + 1):
                    yield f"row {number}", record
                read += batch.num_rows
    except (pyarrow.ArrowException, UnicodeDecodeError, OverflowError, OSError) as error:
        why = str(error).splitlines()[0].partition(". ")[0].rstrip(".")
        raise ValueError(f"is no Parquet file that can be read ({why:.100})") from None


def _in_us(batch: Any) -> Any:
    """Times of a finer unit in microseconds, as Python has them."""
    import pyarrow

    kinds = [
        field.with_type(pyarrow.timestamp("us", field.type.tz))
        if pyarrow.types.is_timestamp(field.type)
        else field
        for field in batch.schema
    ]
    return batch.cast(pyarrow.schema(kinds), safe=False)


def write_trace(trace: ArrivalTrace, file: TextIO, kind: str) -> None:
    """As `.csv` or `.jsonl`, times to the microsecond, without columns that say nothing."""
    columns: dict[str, list[Any]] = {"time": [round(at_s, 6) for at_s in trace.times_s.tolist()]}
    columns["items"] = trace.items.tolist()
    if trace.endpoints:
        columns["endpoint"] = list(trace.endpoints)
    if trace.pictures is not None:
        columns["picture"] = [None if one == NO_PICTURE else one for one in trace.pictures.tolist()]
    rows = zip(*columns.values(), strict=True)
    if kind == ".csv":
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)
        return
    for row in rows:
        known = {name: value for name, value in zip(columns, row, strict=True) if value not in (None, "")}
        file.write(json.dumps(known) + "\n")
