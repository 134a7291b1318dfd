"""A baseline: what later studies are compared with, from a results directory or from a small file of one."""

import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from reports.compare.rows import SideError, rows_of
from reports.compare.side import Side, in_order
from reports.gates.error import GateError
from reports.gates.source import Source, source_of
from reports.ledger import FILE_NAME, LedgerError
from reports.render.cells_csv import render_csv
from reports.study import Study, load_study

KIND, VERSION = "inferswarm-baseline", 1
_LEFT_OUT = ("kind", "plan")


def baseline_text(studies: Sequence[tuple[Path, Study]]) -> str:
    """The file that keeps what comparisons need of some studies: their headers and rows of cells.csv."""
    kept = [
        {
            "name": path.resolve().name,
            "status": study.status,
            "header": {name: value for name, value in study.header.items() if name not in _LEFT_OUT},
            "cells_csv": render_csv(study).splitlines(),
        }
        for path, study in studies
    ]
    return json.dumps({"kind": KIND, "version": VERSION, "studies": kept}, indent=1) + "\n"


def load_baseline(places: Sequence[str]) -> Source:
    """From directories with ledgers, or files that `baseline_text` made; GateError, LedgerError."""
    studies: list[tuple[Path, Study]] = []
    sides: list[Side] = []
    for place in places:
        path = Path(place)
        if (path / FILE_NAME).is_file():
            studies.append((path, load_study(path)))
        elif path.is_file():
            sides += _sides(path)
        else:
            raise GateError(
                f"baseline {place}: is neither a directory with a {FILE_NAME} nor a file: name what a study "
                "left, or what `python -m reports baseline` made."
            )
    found = source_of(studies)
    whole = (*found.sides, *sides)
    if not any(side.rows for side in whole):
        raise GateError(f"baseline {' '.join(places)}: has no run that was begun: name another.")
    cells = {row.cell: vars(row) for side in whole for row in side.rows}
    return Source(sides=whole, cells={**cells, **found.cells}, blocks_of=None)


def _sides(path: Path) -> list[Side]:
    wrong = f"baseline {path}: is no baseline that this program reads"
    mend = "make it with `python -m reports baseline DIR`."
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise GateError(f"{wrong} ({error}): {mend}") from error
    if not isinstance(kept, dict) or (kept.get("kind"), kept.get("version")) != (KIND, VERSION):
        raise GateError(f"{wrong}: {mend}")
    try:
        return [_side(one, path) for one in kept["studies"]]
    except (KeyError, TypeError, ValueError, AttributeError, SideError, LedgerError) as error:
        raise GateError(f"{wrong} ({error}): {mend}") from error


def _side(kept: Mapping[str, Any], path: Path) -> Side:
    lines: list[str] = kept["cells_csv"]
    header: Mapping[str, Any] = kept["header"]
    if not isinstance(lines, list) or not isinstance(header, dict) or not header.get("size"):
        raise ValueError("a study of it lacks its header or its rows")
    return Side(
        letter="",
        name=str(kept["name"]),
        kind=KIND,
        place=str(path),
        rows=in_order(rows_of(io.StringIO("\n".join(lines) + "\n"), str(path))),
        header=header,
        status=str(kept["status"]),
        stand_ins={},
    )
