"""results.parquet as a frame: the single requests that a study kept."""

from pathlib import Path

import pyarrow
from pandas import DataFrame, Int64Dtype, to_datetime
from pyarrow import parquet

from reports.ledger.files import check_regular
from reports.ledger.ledger import LedgerError
from reports.ledger.results import COLUMNS, FILE_NAME, LATER_NUMBERS, LATER_TEXTS, NUMBERS

TYPES = {
    **dict.fromkeys(("cell", "worker", "error"), "category"),
    **dict.fromkeys(("repeat", *NUMBERS), "Int64"),
    **{"abandoned": "bool", "request_id": "str"},
    **dict.fromkeys(LATER_TEXTS, "category"),
    "trace_id": "str",
}


def read_requests(folder: Path) -> DataFrame:
    """One row for each; none where there is no such file. LedgerError where it cannot be read."""
    path = folder / FILE_NAME
    try:
        made = _read(path) if path.exists() else DataFrame(columns=list(COLUMNS), dtype=object)
        made = made.astype(TYPES)
        made["intended_utc_ns"] = to_datetime(made["intended_utc_ns"], unit="ns", utc=True)
    except (OSError, ValueError, TypeError, KeyError, pyarrow.ArrowException) as error:
        said = str(error).partition("\n")[0]
        raise LedgerError(
            f"{path}: cannot be read ({said:.200}): it was damaged, or another program's; delete it."
        ) from error
    return made


def _read(path: Path) -> DataFrame:
    check_regular(path)
    whole = {pyarrow.int64(): Int64Dtype()}
    made = parquet.read_table(path).to_pandas(types_mapper=whole.get, ignore_metadata=True)
    if "request_id" not in made:  # as in files from before --trace
        made["request_id"] = ""
    for name in ("connect_ns", *LATER_NUMBERS):
        if name not in made:
            made[name] = None
    for name in LATER_TEXTS:
        if name not in made:
            made[name] = ""
    return made[list(COLUMNS)]
