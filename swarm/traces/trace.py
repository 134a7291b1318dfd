"""Traces of requests in CSV, JSON lines and Parquet: when each came, its items, its endpoint and picture."""

import csv
import io
import itertools
import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, Self, TextIO

import numpy as np
from numpy.typing import NDArray

from reports.format import plural
from reports.ledger.files import check_regular, parsed, whole_file
from swarm.closest import some
from users.load.mix import MOST_CLASSES
from users.load.replay import MOST_ROWS, NO_PICTURE, NS_PER_S, Replay

FORMATS = (".csv", ".jsonl", ".parquet")
NAMES = {"time": "time", "timestamp": "time", "items": "items", "batch": "items"} | {
    name: name for name in ("endpoint", "picture")
}
"""The columns of a file, and what each is."""
MOST_S = 604_800
"""The longest trace: a week."""
SINCE_1970_S = 100_000_000
"""Seconds above this are Unix times, and count from the first."""
MILLISECONDS = SINCE_1970_S * 1_000
"""A number from here on is a Unix time in a smaller unit: in seconds it is the year 5138."""
MOST_ITEMS, MOST_PICTURE = 4_096, 1_000_000
KINDS = ("seconds", "ISO 8601")
GIVE_TIME = "give seconds from 0, or an ISO 8601 time such as 2026-11-26T09:00:00.250Z"


class TraceRow(NamedTuple):
    """One request: seconds, as Unix time or from the beginning; items; endpoint, or ""; picture, or -1."""

    time_s: float
    items: int = 1
    endpoint: str = ""
    picture: int = NO_PICTURE


@dataclass(frozen=True, eq=False)
class ArrivalTrace:
    """Requests in the order of their times.

    `times_s`: float64 of shape [n], seconds from the beginning, rising or equal. `items`, `pictures`: int64
    of shape [n]. `endpoints`: the name of each row, none where the file names none. `notes`: sentences on
    what was made of the file.
    """

    times_s: NDArray[np.float64]
    items: NDArray[np.int64]
    endpoints: tuple[str, ...] = ()
    pictures: NDArray[np.int64] | None = None
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, rows: Iterable[TraceRow], notes: tuple[str, ...] = ()) -> Self:
        """Sorted by time. Raises ValueError where there is none, or where they span more than MOST_S."""
        told = list(rows)
        if not told:
            raise ValueError("has no requests; give at least one row")
        kept = sorted(told, key=lambda row: row.time_s)
        late = sum(after.time_s < before.time_s for before, after in itertools.pairwise(told))
        if late:
            moved = f"{plural(late, 'row')} came before the one above: all were sorted by time"
            notes = (*notes, moved)
        times_s = np.array([row.time_s for row in kept])
        if times_s[0] > SINCE_1970_S:
            times_s -= times_s[0]
        if times_s[-1] > MOST_S:
            raise ValueError(f"is {times_s[-1]:,.0f} s long; give one of at most {MOST_S:,} s, a week")
        pictures = np.array([row.picture for row in kept])
        named = any(row.endpoint for row in kept)
        return cls(
            times_s,
            np.array([row.items for row in kept]),
            tuple(row.endpoint for row in kept) if named else (),
            pictures if (pictures != NO_PICTURE).any() else None,
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


def trace_at(text: str) -> str:
    """The absolute place of a file with a trace, as an option has it. Raises ValueError."""
    place = os.path.abspath(text)
    try:
        read_trace(place)
    except OSError as error:
        raise ValueError(f"cannot be read ({error.strerror or error}); name a trace") from error
    except UnicodeEncodeError:
        raise ValueError("is no path; name a trace") from None
    return place


def read_trace(path: Path | str) -> ArrivalTrace:
    """The trace in a file, by its ending. Raises ValueError with what is wrong, and where; OSError.

    A file that has not changed is not read again.
    """
    check_regular(path)
    changed = Path(path).stat()
    return _read(str(path), changed.st_mtime_ns, changed.st_size)


@lru_cache(maxsize=1)
def _read(path: str, changed_ns: int, size: int) -> ArrivalTrace:
    kind = Path(path).suffix.lower()
    if kind not in FORMATS:
        raise ValueError(f"is no trace by its name; give a file that ends in {', '.join(FORMATS)}")
    records = {".csv": _of_csv, ".jsonl": _of_json_lines, ".parquet": _of_parquet}[kind](path)
    left_out: dict[str, None] = {}
    rows = list(_rows(records, left_out))
    notes = (f"columns that a trace does not have are left out: {some(left_out)}",) if left_out else ()
    return ArrivalTrace.of(rows, notes)


def _rows(records: Iterable[tuple[str, Mapping[str, Any]]], left_out: dict[str, None]) -> Iterator[TraceRow]:
    """A row for each record, which comes with its place; names of other columns go to `left_out`."""
    first_place, stamped = "", False
    for count, (place, record) in enumerate(records, 1):
        if count > MOST_ROWS:
            raise ValueError(f"has more than {MOST_ROWS:,} rows; give at most so many")
        told = _named(record, place, left_out)
        try:
            row, is_stamp = _row(told)
        except ValueError as error:
            raise ValueError(f"{place}: {error}") from None
        if count == 1:
            first_place, stamped = place, is_stamp
        elif is_stamp is not stamped:
            now, before = KINDS[is_stamp], KINDS[stamped]
            raise ValueError(f"{place}: time is in {now}, and in {before} in {first_place}; give one kind")
        yield row


def _named(record: Mapping[str, Any], place: str, left_out: dict[str, None]) -> dict[str, Any]:
    """Its values by what they are."""
    told: dict[str, Any] = {}
    for column, value in record.items():
        name = NAMES.get(str(column).strip().lower())
        if name is None:
            left_out[f"{column!s:.40}"] = None
        elif name in told:
            raise ValueError(f"{place}: {name} is given twice; leave out {column}")
        else:
            told[name] = value
    if "time" not in told:
        raise ValueError(f"{place}: has no time; give a column time, in seconds or ISO 8601")
    return told


def _row(told: Mapping[str, Any]) -> tuple[TraceRow, bool]:
    """A row, and whether its time is an ISO 8601 one."""
    time_s, is_stamp = seconds_of(told["time"])
    row = TraceRow(
        time_s,
        _whole("items", told.get("items"), 1, 1, MOST_ITEMS),
        str(told.get("endpoint") or "").strip(),
        _whole("picture", told.get("picture"), NO_PICTURE, 0, MOST_PICTURE),
    )
    return row, is_stamp


def seconds_of(value: Any) -> tuple[float, bool]:
    """A time in seconds, and whether it was an ISO 8601 one, whose seconds are Unix time; without a zone UTC.

    Raises ValueError.
    """
    if isinstance(value, datetime):
        return _unix_s(value), True
    text = value.strip() if isinstance(value, str) else value
    try:
        found = math.nan if isinstance(text, bool) or text is None else float(text)
    except OverflowError:
        found = math.inf
    except (TypeError, ValueError):
        return _stamp_s(text), True
    if found >= MILLISECONDS:
        raise ValueError(f"time is {value!r:.40}, which may be milliseconds; {GIVE_TIME}")
    if not found >= 0:
        raise ValueError(f"time is {value!r:.40}; {GIVE_TIME}")
    return found, False


def _stamp_s(text: Any) -> float:
    try:
        moment = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        raise ValueError(f"time is {text!r:.40}; {GIVE_TIME}") from None
    return _unix_s(moment)


def _unix_s(moment: datetime) -> float:
    found = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    if found <= SINCE_1970_S:
        raise ValueError(f"time is {moment.isoformat()}; give one after 1973")
    return found


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
