"""What gates judge, made without a ledger: runs whose every number is chosen, and their seconds."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import repeat as forever
from math import sqrt
from typing import Any

from scipy.stats import t

from reports.cells_csv.rows import Row
from reports.cells_csv.sides import STUDY, Side
from reports.fold.windows import Results
from reports.gates.judge import judge
from reports.gates.source import GateSource
from reports.gates.thresholds import parse_gates
from reports.gates.verdict import Verdict
from reports.histogram.buckets import Buckets
from reports.histogram.codec import decoded, encoded_ns
from reports.summary.blocks import NAMES, RunBlocks
from tests.reports.gates.book import MS, SPREAD, own, require

DAYS = [f"2026-11-{day:02}" for day in range(1, 31)]
HTTP, GRPC = "onnx-http/b1/c1", "onnx-grpc/b1/c1"


@dataclass(frozen=True)
class Run:
    """A row of cells.csv, and the seconds behind it where percentiles are asked for."""

    row: Row
    seconds: RunBlocks = field(default_factory=RunBlocks)


def a_run(cell: str = HTTP, repeat: int = 1, *codes: str, **numbers: float) -> Run:
    """With 10,000 requests, none of which failed, where nothing else is said; `codes` are its caveats."""
    endpoint, batch, load = cell.split("/")[:3]
    backend, protocol = endpoint.split("-")[:2]
    row = Row(
        study="step7",
        cell=cell,
        endpoint=endpoint,
        backend="null" if endpoint.endswith("-floor") else backend,
        protocol=protocol,
        payload="fp32",
        batch=int(batch[1:]),
        load="open" if load[0] == "r" else "closed",
        level=float(load[1:]),
        numbers={"repeat": repeat, "requests": 10_000, "failures": 0} | numbers,
        codes=codes,
    )
    return Run(row)


def repeated(cell: str, column: str, *values: float, **numbers: float) -> list[Run]:
    """Repeats with such values in a column."""
    return [a_run(cell, at, **{column: value} | numbers) for at, value in enumerate(values, 1)]


def broken_at(p: float, cell: str = HTTP) -> list[Run]:
    """Repeats that show images_per_s above 100 with such a chance to err, and below it with the rest."""
    middle = 100 + float(t.isf(p, 2)) * 5 / sqrt(3)
    return repeated(cell, "images_per_s", middle - 5, middle, middle + 5)


@cache
def histogram(middle_ms: float, each: int) -> Buckets:
    return decoded(encoded_ns([round(middle_ms * MS * SPREAD[at % len(SPREAD)]) for at in range(each)])[0])


def seconds_of(
    middles_ms: Sequence[float],
    repeat: int = 1,
    *codes: str,
    each: int = 200,
    failed: Mapping[int, int] | None = None,
    **numbers: float,
) -> Run:
    """A run with `each` requests around so many ms in every second, and some failed ones."""
    blocks, failures = RunBlocks(), failed or {}
    for second, middle in enumerate(middles_ms):
        found = dict.fromkeys(NAMES, histogram(middle, each)) if each else {}
        kinds = Counter({"timeout": failures.get(second, 0)})
        blocks.merge(second, Results(NAMES, ok=each, histograms=found, failure_kinds=kinds))
    counted = {"requests": len(middles_ms) * each + blocks.failures, "failures": blocks.failures}
    return Run(a_run(HTTP, repeat, *codes, **counted | numbers).row, blocks)


def steady(seconds: int = 30, runs: int = 3, **more: Any) -> list[Run]:
    """Runs of so many seconds, whose requests take 8, 9, 10, 11 and 12 ms in turn."""
    return [seconds_of([10.0] * seconds, repeat, **more) for repeat in range(1, runs + 1)]


def a_source(
    *studies: Sequence[Run],
    began: Sequence[str] = (),
    headers: Sequence[Mapping[str, Any]] = (),
    ended: Sequence[str] = (),
    **header: Any,
) -> GateSource:
    """Of one study or more, begun day after day, or as told; `header` is of all, `headers` are one each."""
    sides = [
        Side(
            name=f"study{at}",
            kind=STUDY,
            place=f"study{at}",
            rows=tuple(run.row for run in runs),
            header={"study": "step7", "size": "quick", "started_utc": utc} | header | dict(told),
            status=status,
        )
        for at, (runs, utc, told, status) in enumerate(
            zip(studies, began or DAYS, headers or forever({}), ended or forever("complete"), strict=False)
        )
    ]
    seconds = {
        (at, run.row.cell, run.row.numbers["repeat"]): run.seconds
        for at, of in enumerate(studies)
        for run in of
    }
    return GateSource(
        sides=tuple(sides),
        cells={run.row.cell: vars(run.row) for runs in studies for run in runs},
        blocks_of=lambda taken: [seconds[one.study, one.row.cell, one.repeat] for one in taken],
    )


def said_of(source: GateSource, thresholds: str, baseline: GateSource | None = None) -> list[Verdict]:
    """The verdicts of the thresholds that a file declares."""
    return own(judge(parse_gates(thresholds, "thresholds.toml"), source, baseline))


def one(text: str, runs: Sequence[Run], **fields: str) -> Verdict:
    """That of a threshold on a study of one cell."""
    (verdict,) = said_of(a_source(runs), require(text, **fields))
    return verdict
