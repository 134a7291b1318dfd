"""The tables of the operator profile: what ONNX Runtime did with the model, the published figures beside."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from reports.cells_csv.rows import FOLDER
from reports.fold.server_facts import CPU, Operator, OperatorProfile
from reports.format import MISSING, counted, known, ms, plural
from reports.page.question import Question
from reports.page.table import Footnotes, Table, TableCell, table_of
from reports.study.study import Study

PUBLISHED = FOLDER / "step5a-operators.json"
CAPTION = (
    "One process alone, before any load, as the embedded server computes. Operators are counted as ONNX "
    "Runtime runs them, after its graph optimisations: it fuses some (BiasGelu, Gemm), lays out others "
    "anew, and computes what is constant beforehand."
)
OF_THEIRS = "Published is what others measured with another machine, export and version."
SMALL = 0.005
"""Of all operators' time."""
ON_GPU = "A GPU provider's times are those of handing work to the GPU, not of its computing."
DISK = "the first may have waited for the disk"
ONLY_CPU = "CPUExecutionProvider only, so nothing could fall back"


@cache
def published() -> Mapping[str, Any]:
    """The published figures, with their source."""
    found: Mapping[str, Any] = json.loads(PUBLISHED.read_text(encoding="utf-8"))
    return found


def operator_tables(study: Study) -> Iterator[Table]:
    """Operators, what is known of file and session, and inferences by batch; none without a profile.

    Beside the published, where those are of the model.
    """
    found, theirs = study.operators, published() if study.of_published_study else {}
    if found is not None and not found.error:
        tables = (make(found, theirs) for make in (by_operator, of_the_session, by_batch))
        yield from tables if theirs else map(alone, tables)


def alone(table: Table) -> Table:
    """The same without its last column, which is of what was published."""
    heads, rows = table.heads[:-1], tuple(row[:-1] for row in table.rows)
    return replace(table, heads=heads, rows=rows, numeric=table.numeric - {len(heads)})


def by_operator(found: OperatorProfile, theirs: Mapping[str, Any]) -> Table:
    """One row for each type of operator, by its share; then those that were published and did not run.

    Those of a small share that nobody published stand together in one.
    """
    notes = Footnotes()
    shares: Mapping[str, float] = theirs.get("shares_pct", {})
    small = [one for one in found.operators if one.share < SMALL and one.name not in shares]
    rows: list[tuple[TableCell | str, ...]] = [
        (
            *(one.name, counted(one.nodes), TableCell(ms(one.time_ns), value=one.time_ns)),
            TableCell(f"{100 * one.share:.1f}", value=one.share),
            _told(shares.get(one.name), notes),
        )
        for one in found.operators
        if one not in small
    ]
    if small:
        rows.append(_together(small))
    ran = {one.name for one in found.operators}
    dashes = (MISSING,) * 3
    rows += [(name, *dashes, _told(pct, notes)) for name, pct in shares.items() if name not in ran]
    said = (
        f"Of {found.inferences} profiled inferences of batch {found.batch}, {ms(found.inference_ns)} ms each "
        "with the profiler on; shares are of all operators' time."
    )
    gpu = [] if found.asked[0] == CPU else [ON_GPU]
    return table_of(
        "Operators of the model",
        ("operator", "nodes", "ms", "share %", "published %"),
        rows,
        caption=" ".join([said, CAPTION, *([OF_THEIRS] if theirs else []), *gpu]),
        notes=notes,
        numeric=range(1, 5),
    )


def _together(small: Sequence[Operator]) -> tuple[str, ...]:
    nodes, time_ns = sum(one.nodes for one in small), sum(one.time_ns for one in small)
    share = f"{100 * sum(one.share for one in small):.1f}"
    return plural(len(small), "other type"), counted(nodes), ms(time_ns), share, MISSING


def of_the_session(found: OperatorProfile, theirs: Mapping[str, Any]) -> Table:
    """What the file holds and how ONNX Runtime took it up, ours beside theirs."""
    notes = Footnotes()
    first, *others = found.session_ns
    following = f"; then {', '.join(map(ms, others))}" if others else ""
    ran = ", ".join(f"{name} {counted(nodes)}" for name, nodes in found.providers.items())
    fell = ", ".join(f"{name} {counted(nodes)}" for name, nodes in found.fallbacks.items()) or "none"
    file = "file, MiB; published as MB" if theirs else "file, MiB"
    rows = (
        (file, known(found.file_bytes, 2**20), _told(theirs.get("file_mb"), notes)),
        ("nodes in the file", counted(found.file_nodes), _told(theirs.get("file_nodes"), notes)),
        ("nodes that ran", counted(found.executed_nodes), MISSING),
        ("opset", found.opset, _told(theirs.get("opset"), notes)),
        (
            "session creation, ms",
            TableCell(f"{ms(first)}{following}", notes.marks([DISK])),
            _told(theirs.get("session_ms"), notes),
        ),
        ("nodes by provider", ran, MISSING),
        (
            "fallen back on the CPU",
            ONLY_CPU if found.asked[0] == CPU else fell,
            TableCell("none", notes.marks([_source()])) if theirs else MISSING,
        ),
    )
    title = f"ONNX Runtime {found.onnxruntime}: file and session"
    return table_of(title, ("what", "ours", "published"), rows, notes=notes)


def by_batch(found: OperatorProfile, theirs: Mapping[str, Any]) -> Table:
    """Inferences without a server, a network or the profiler, by batch."""
    notes = Footnotes()
    latencies: Mapping[str, float] = theirs.get("latency_ms", {})
    iterations = ", ".join(dict.fromkeys(str(one.iterations) for one in found.timed))
    told = ((one, _told(latencies.get(str(one.batch)), notes)) for one in found.timed)
    rows = ((one.batch, *map(ms, (one.mean_ns, one.min_ns, one.max_ns)), cell) for one, cell in told)
    return table_of(
        "ONNX Runtime alone, by batch",
        ("batch", "mean ms", "lowest", "highest", "published"),
        rows,
        caption=f"Milliseconds per inference, {iterations} of each batch, without a server or the profiler.",
        notes=notes,
        numeric=range(1, 5),
    )


def _told(value: float | None, notes: Footnotes) -> TableCell:
    """A published figure with its source."""
    if value is None:
        return TableCell(MISSING)
    return TableCell(f"{value:,}", notes.marks([_source()]))


def _source() -> str:
    return f"published: {published()['source']}"


OPERATORS = Question("operators", "Operators", (operator_tables,))
