"""Raw Results: the first so many of a study, from the workers to `results.parquet`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from operator import sub
from pathlib import Path
from typing import Any

from users.result import Result

FILE_NAME = "results.parquet"
PHASES = ("encode", "send", "wait", "receive", "decode")
NUMBERS = (
    "user", "images", "intended_utc_ns", "send_delay_ns", "service_ns",
    *(f"{phase}_ns" for phase in PHASES), "server_ns", "request_bytes", "response_bytes",
)  # fmt: skip
"""Columns of whole numbers, empty where unknown, beside cell, repeat, worker and OTHERS."""
OTHERS = ("error", "abandoned", "request_id")
AS_THEY_ARE = ("user", "images", "request_bytes", "response_bytes", "abandoned", "request_id")
"""Columns that a Result has itself."""

Rows = Mapping[str, Any]
"""Rows of one run from one worker: `cell`, `repeat`, `columns`, later `worker`."""


def packed(results: Sequence[Result], anchor_ns: int) -> list[Rows]:
    """Results by columns, for each run; `anchor_ns` makes the time of day of a `perf_counter_ns`."""
    runs: defaultdict[tuple[str, int], list[Result]] = defaultdict(list)
    for result in results:
        runs[result.cell, result.repeat].append(result)
    return [
        {"cell": cell, "repeat": repeat, "columns": columns(found, anchor_ns)}
        for (cell, repeat), found in runs.items()
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


class RawResults:
    """The master's store: keeps the first `most` rows of a study."""

    def __init__(self, most: int) -> None:
        self._left = most
        self._rows: list[Rows] = []

    def add(self, worker: str, rows: Rows) -> None:
        """Rows from a worker, as far as there is room."""
        count = min(self._left, len(rows["columns"]["user"]))
        if count:
            kept = {name: values[:count] for name, values in rows["columns"].items()}
            self._rows.append({**rows, "worker": worker, "columns": kept})
            self._left -= count

    def waits_ns(self, cell: str, repeat: int) -> dict[str, int]:
        """The client's wait for each success of a run that was kept and was sent under an id, by that id."""
        found: dict[str, int] = {}
        for rows in self._rows:
            if (rows["cell"], rows["repeat"]) == (cell, repeat):
                names = ("request_id", "wait_ns", "error", "abandoned")
                found |= {
                    request_id: wait_ns
                    for request_id, wait_ns, error, abandoned in zip(
                        *(rows["columns"][name] for name in names), strict=True
                    )
                    if request_id and not error and not abandoned
                }
        return found

    def write(self, folder: Path) -> None:
        """`results.parquet`, whole or not at all, and none where nothing was kept. Raises OSError."""
        if not self._rows:
            return
        # Here, since it takes its time, and only the end of a study needs it.
        import pyarrow
        from pyarrow import parquet

        repeated = {name: self._tags(name) for name in ("cell", "repeat", "worker")}
        names = pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
        types = {"cell": names, "worker": names, "error": names, "abandoned": pyarrow.bool_()}
        types["request_id"] = pyarrow.string()
        arrays = {**repeated, **{name: self._values(name) for name in (*NUMBERS, *OTHERS)}}
        table = pyarrow.table(
            {name: pyarrow.array(found, types.get(name, pyarrow.int64())) for name, found in arrays.items()}
        )
        temporary = folder / f".{FILE_NAME}"
        try:
            parquet.write_table(table, temporary, compression="zstd")
            temporary.replace(folder / FILE_NAME)
        finally:
            temporary.unlink(missing_ok=True)

    def _tags(self, name: str) -> list[Any]:
        return [rows[name] for rows in self._rows for _ in rows["columns"]["user"]]

    def _values(self, name: str) -> list[Any]:
        return [value for rows in self._rows for value in rows["columns"][name]]
