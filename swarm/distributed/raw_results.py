"""Raw Results: the first so many of a study, from the workers to `results.parquet`."""

from array import array
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from operator import sub
from pathlib import Path
from typing import Any

import numpy as np

from reports.ledger.results import COLUMNS, FILE_NAME, NUMBERS, PHASES
from users.result import Result

AS_THEY_ARE = (
    *("user", "images", "request_bytes", "response_bytes", "abandoned"),
    *("request_id", "request_class", "trace_id"),
)
"""Columns that a Result itself has."""
UNKNOWN = -(1 << 63)
"""Stands for an empty place in a column of numbers."""

IDS = ("request_id", "trace_id")
"""Columns of names that no two rows have in common, and most rows have none."""
Rows = Mapping[str, Any]
"""Rows of one run from one worker: `cell`, `repeat`, `phase`, `columns`."""


def packed(results: Sequence[Result], anchor_ns: int) -> list[Rows]:
    """Results by columns, for each phase; `anchor_ns` makes the time of day of a `perf_counter_ns`."""
    runs: defaultdict[tuple[str, int, str], list[Result]] = defaultdict(list)
    for result in results:
        runs[result.cell, result.repeat, result.phase].append(result)
    return [
        {"cell": cell, "repeat": repeat, "phase": phase, "columns": columns(found, anchor_ns)}
        for (cell, repeat, phase), found in runs.items()
    ]


def columns(results: Sequence[Result], anchor_ns: int) -> dict[str, list[Any]]:
    """Each column's values, in the order of the Results; thousands a second, so Results are read whole."""
    values = dict(zip(Result._fields, zip(*results, strict=True), strict=True))
    intended, starts, ends, phases = (values[f] for f in ("intended_ns", "start_ns", "end_ns", "phases_ns"))
    made: dict[str, list[Any]] = {
        "intended_utc_ns": [at_ns + anchor_ns for at_ns in intended],
        "send_delay_ns": list(map(sub, starts, intended)),
        "service_ns": list(map(sub, ends, starts)),
        "server_ns": [sum(parts.values()) if parts else None for parts in values["server_ns"]],
        "error": [str(error.kind) if error else "" for error in values["error"]],
    }
    made |= {name: list(values[name]) for name in AS_THEY_ARE}
    return made | {f"{phase}_ns": [parts.get(phase) for parts in phases] for phase in PHASES}


class NameColumn:
    """A column of few names, as numbers of them."""

    def __init__(self) -> None:
        self.codes = array("i")
        self._known: dict[str, int] = {}

    def extend(self, names: Iterable[str]) -> None:
        """Add one for each row."""
        known = self._known
        self.codes.extend(known.setdefault(name, len(known)) for name in names)

    def code(self, name: str) -> int:
        """A name's number; -1 for one that no row has."""
        return self._known.get(name, -1)

    @property
    def known(self) -> list[str]:
        """The names by their numbers."""
        return list(self._known)


class RawResults:
    """The master's store: keeps the first `most` rows of a study, in 150 bytes each; as Python's own objects
    they would take 480, and let a master at 50 requests a second grow by 1.5 MB a minute until all are kept.
    """

    def __init__(self, most: int) -> None:
        self._left = most
        self._names = {name: NameColumn() for name in ("cell", "worker", "error", "request_class")}
        self._numbers = {name: array("q") for name in ("repeat", *NUMBERS)}
        self._abandoned = array("b")
        self._ids: dict[str, dict[int, str]] = {name: {} for name in IDS}
        """By column, of the rows that have one, by row number."""

    def add(self, worker: str, rows: Rows) -> None:
        """Rows from a worker, as far as there is room."""
        columns, first = rows["columns"], len(self._abandoned)
        count = min(self._left, len(columns["user"]))
        self._left -= count
        same = {"cell": rows["cell"], "worker": worker, "repeat": rows["repeat"]}
        kept = {name: [value] * count for name, value in same.items()}
        kept |= {name: values[:count] for name, values in columns.items()}
        for name, names in self._names.items():
            names.extend(kept[name])
        for name, numbers in self._numbers.items():
            numbers.extend(UNKNOWN if value is None else value for value in kept[name])
        self._abandoned.extend(kept["abandoned"])
        for name, ids in self._ids.items():
            ids.update((row, of) for row, of in enumerate(kept[name], first) if of)

    def waits_ns(self, cell: str, repeat: int) -> dict[str, int]:
        """The client's wait for each success of a run that was kept and was sent under an id, by that id."""
        names, wait_ns = self._names, self._numbers["wait_ns"]
        wanted = (names["cell"].code(cell), repeat, names["error"].code(""), 0)
        tags = (names["cell"].codes, self._numbers["repeat"], names["error"].codes, self._abandoned)
        ids = self._ids["request_id"]
        return {of: wait_ns[row] for row, of in ids.items() if tuple(tag[row] for tag in tags) == wanted}

    def write(self, folder: Path) -> None:
        """`results.parquet`, whole or not at all, and none where nothing was kept. Raises OSError."""
        if not self._abandoned:
            return
        # Here, since it takes its time, and only the end of a study needs it.
        import pyarrow
        from pyarrow import parquet

        named = {
            name: pyarrow.DictionaryArray.from_arrays(of.codes, pyarrow.array(of.known, pyarrow.string()))
            for name, of in self._names.items()
        }
        whole = {name: np.frombuffer(numbers, np.int64) for name, numbers in self._numbers.items()}
        made = {name: pyarrow.array(values, mask=values == UNKNOWN) for name, values in whole.items()}
        made["abandoned"] = pyarrow.array(np.frombuffer(self._abandoned, np.bool_))
        for name, ids in self._ids.items():
            texts = [ids.get(row, "") for row in range(len(self._abandoned))]
            made[name] = pyarrow.array(texts, pyarrow.string())
        table = pyarrow.table({name: {**named, **made}[name] for name in COLUMNS})
        temporary = folder / f".{FILE_NAME}"
        try:
            parquet.write_table(table, temporary, compression="zstd")
            temporary.replace(folder / FILE_NAME)
        finally:
            temporary.unlink(missing_ok=True)
