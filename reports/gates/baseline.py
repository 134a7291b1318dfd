"""A baseline: what later studies are compared with, from a results directory or from a small file of one."""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from reports.cells_csv.columns import render_csv
from reports.cells_csv.rows import SideError, in_order, rows_of
from reports.cells_csv.sides import Side
from reports.gates.require import GateError
from reports.gates.source import GateSource, check_once, source_of
from reports.gates.thresholds import BASELINE_KIND, BASELINE_VERSION, not_one, studies_in
from reports.ledger.ledger import DAMAGED, FILE_NAME, LedgerError, check_header, damage_refused
from reports.study.study import Study, load_study


def baseline_text(studies: Sequence[tuple[Path, Study]]) -> str:
    """The file that keeps what comparisons need of some studies: their headers and rows of cells.csv."""
    kept = [
        {
            "name": path.resolve().name,
            "status": study.status,
            "header": {name: value for name, value in study.header.items() if name not in ("kind", "plan")},
            "cells_csv": render_csv(study).splitlines(),
        }
        for path, study in studies
    ]
    return json.dumps({"kind": BASELINE_KIND, "version": BASELINE_VERSION, "studies": kept}, indent=1) + "\n"


def load_baseline(places: Sequence[str]) -> GateSource:
    """From directories with ledgers, or files that `baseline_text` made; GateError, LedgerError."""
    sides = [side for place in places for side in _sides(Path(place))]
    if not any(side.rows for side in sides):
        raise GateError(f"baseline {' '.join(places)}: has no run that was begun: name another.")
    for side in sides:
        if why := incomplete(side.status):
            raise GateError(f"baseline {side.place}: {why}")
    check_once(sides)
    cells = {row.cell: {**vars(row), "server": row.shares} for side in sides for row in side.rows}
    return GateSource(sides=tuple(sides), cells=cells)


def incomplete(status: str) -> str:
    """Why nothing may be compared with a study that ended so; empty where it may."""
    if status == "complete":
        return ""
    return f"is {status}, and what it would have measured is not known: name a complete one."


def _sides(path: Path) -> tuple[Side, ...]:
    try:
        if (path / FILE_NAME).is_file():
            with damage_refused(path / FILE_NAME):
                return source_of([(path, load_study(path))]).sides
        if path.is_file():
            return tuple(_kept_sides(path))
    except OSError as error:
        raise GateError(f"baseline {path}: cannot be read ({error.strerror}): name another.") from error
    raise GateError(
        f"baseline {path}: is neither a directory with a {FILE_NAME} nor a file: name what a study left, or "
        "what `inferswarm baseline` made."
    )


def _kept_sides(path: Path) -> list[Side]:
    try:
        return [_side(one, path) for one in studies_in(path)]
    except (*DAMAGED, SideError, csv.Error) as error:
        raise GateError(f"baseline {path}: {not_one(error)}") from error
    except LedgerError as error:
        raise GateError(f"baseline {error}") from error
    except GateError as error:
        raise GateError(f"baseline {path}: {error}") from error


def _side(kept: Mapping[str, Any], path: Path) -> Side:
    lines: list[str] = kept["cells_csv"]
    header: Mapping[str, Any] = {**kept["header"], "plan": []}
    check_header(header, path)
    return Side(
        name=str(kept["name"]),
        kind=BASELINE_KIND,
        place=str(path),
        rows=in_order(rows_of(io.StringIO("\n".join(lines) + "\n"), str(path))),
        header=header,
        status=str(kept["status"]),
    )
