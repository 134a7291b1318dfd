"""The table of cold starts: what a server does once, and so belongs in no steady figure."""

from collections.abc import Iterator, Sequence
from statistics import median

from reports.format import MISSING, known, ms, plural
from reports.ledger.ledger import Record
from reports.page.question import Question
from reports.page.study_table import StudyNotes
from reports.page.table import Footnotes, Table, TableCell, table_of
from reports.study.study import Study

HEADS = ("endpoint", "start s", "load s", "batch", "first ms", "next ms")
RELOADED = "after the study had loaded the model again: medians over {}"
VERY_FIRST = "the first request to this server in this study"
COMPILED = "compiled while the server started, within its load: for one image, and from two on for any number"


def cold_starts(study: Study) -> Table:
    """One row for each shape that an endpoint was sent for the first time, in the order they were."""
    notes = StudyNotes(study)
    rows = [row for name in study.endpoints for row in _rows(study, name, notes)]
    return table_of(
        "Cold starts",
        HEADS,
        rows,
        caption="What comes before measuring, and is in no other figure: the process's start, the model's "
        "load, the first request of each batch shape, and the least of those that followed at once.",
        notes=notes,
        numeric=range(1, len(HEADS)),
    )


def _rows(study: Study, endpoint: str, notes: StudyNotes) -> list[tuple[TableCell | str, ...]]:
    """An endpoint's shapes; one row without any where only its start is known."""
    about = study.described.get(endpoint, {})
    told = [about.get(name) for name in ("started_ns", "loaded_ns")]
    found = [record for record in study.colds if record["endpoint"] == endpoint]
    shapes = [
        *({**record, "compiled": True} for record in about.get("compiled") or ()),
        *(record for record in found if not record.get("reloaded")),
        *_reloaded(found),
    ]
    if not shapes and told == [None, None]:
        return []
    head, starts = TableCell(endpoint), [known(value_ns, 1e9) for value_ns in told]
    return [
        (head, *(("", "") if place else starts), *_shape(shapes, place, notes))
        for place in range(max(1, len(shapes)))
    ]


def _shape(shapes: Sequence[Record], place: int, notes: Footnotes) -> tuple[TableCell | str, ...]:
    if not shapes:
        return (MISSING,) * 3
    shape = shapes[place]
    said = [VERY_FIRST] if shape.get("opening") else []
    said += [COMPILED] if shape.get("compiled") else []
    said += [RELOADED.format(plural(loads, "load"))] if (loads := shape.get("loads")) else []
    first = TableCell(ms(shape.get("first_ns")), notes.marks(said))
    return str(shape["batch"]), first, ms(shape.get("second_ns"))


def _reloaded(found: Sequence[Record]) -> Iterator[Record]:
    """Of each shape, its first requests after reloads as one record with medians, and of how many."""
    again = [record for record in found if record.get("reloaded")]
    for batch in sorted({record["batch"] for record in again}):
        own = [record for record in again if record["batch"] == batch]
        times = {name: _median(own, name) for name in ("first_ns", "second_ns")}
        yield {**own[0], **times, "loads": len(own)}


def _median(records: Sequence[Record], name: str) -> float | None:
    known = [record[name] for record in records if record.get(name) is not None]
    return median(known) if known else None


COLD_STARTS = Question("cold-starts", "Cold starts", (cold_starts,))
