"""Studies that were never made, as gates read them: rows of cells.csv, headers, and seconds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from benchmarks.noise import Figures, Session
from reports.cells_csv.rows import Row
from reports.cells_csv.sides import STUDY, Side
from reports.fold.windows import Results
from reports.gates.source import GateSource
from reports.summary.blocks import RunBlocks

BEGAN_S = 1_795_258_800
P95_MS = 30.0
ENDPOINT = "onnx-http"
NO_OPTIONS: Mapping[str, int] = {}


def simulated(
    figures: Figures,
    session: Session,
    began_s: Sequence[float],
    slower: Mapping[str, float],
    options: Mapping[str, int] = NO_OPTIONS,
) -> GateSource:
    """Studies from p95s by study, repeat and cell, with the seconds after the first at which each began.

    `slower` says of cells by how many times; `options` are those that the studies were told.
    """
    cells = cell_names(figures.shape[2])
    quiet = RunBlocks()
    for second in range(session.seconds):
        quiet.merge(second, Results(ok=session.per_second, images=session.per_second))
    sides = tuple(
        Side(
            name=f"step7-{number}",
            kind=STUDY,
            place="",
            rows=tuple(
                _row(cell, repeat, P95_MS * float(one) * slower.get(cell, 1), session.requests)
                for repeat, values in enumerate(study, 1)
                for cell, one in zip(cells, values, strict=True)
            ),
            header={"study": "step7", "size": "quick", "started_utc": _utc(at), "options": options},
            status="complete",
            stand_ins={},
        )
        for number, (study, at) in enumerate(zip(figures, began_s, strict=True))
    )
    return GateSource(
        sides=sides,
        cells={row.cell: vars(row) for row in sides[0].rows},
        blocks_of=lambda runs: [quiet for _ in runs],
    )


def cell_names(count: int) -> list[str]:
    """Of an endpoint at 1 user and more."""
    return [f"{ENDPOINT}/b1/c{users}" for users in range(1, count + 1)]


def _row(cell: str, repeat: int, p95_ms: float, requests: int) -> Row:
    level = float(cell.rpartition("c")[2])
    return Row(
        study="step7",
        cell=cell,
        endpoint=ENDPOINT,
        backend="onnx",
        protocol="http",
        payload="fp32",
        batch=1,
        load="closed",
        level=level,
        numbers={"repeat": repeat, "requests": requests, "failures": 0, "latency_p95_ms": p95_ms},
    )


def _utc(after_s: float) -> str:
    return datetime.fromtimestamp(BEGAN_S + after_s, UTC).isoformat()
