"""Records whose histograms are counts and no text any more."""

from collections.abc import Iterator, Mapping, Sequence

from reports.histogram.buckets import Buckets
from reports.histogram.codec import Room, decoded_all
from reports.ledger.ledger import Record
from reports.ledger.records import DURATIONS


def readable(records: Sequence[Record], room: Room | None = None) -> list[Record]:
    """The records with what histograms they have under `histograms`.

    HistogramError where one is broken, or where they do not fit into `room`.
    """
    named = [_texts(record) for record in records]
    found = iter(decoded_all([text for texts in named if texts for text in texts.values()], room))
    made = [
        record if texts is None else {**record, "histograms": _decoded(texts, found)}
        for record, texts in zip(records, named, strict=True)
    ]
    for record in made:
        if record["kind"] == "window":
            _check_totals(record)
    return made


def _decoded(texts: Mapping[str, str], found: Iterator[Buckets]) -> dict[str, Buckets]:
    return {name: next(found) for name in texts}


def _check_totals(window: Record) -> None:
    """ValueError where a window's histograms do not hold as many values as it counted."""
    ok, held = window["ok"], {name: found.total for name, found in window["histograms"].items()}
    finished = ok + sum(window["failures"].values())
    for name, count in held.items():
        if count > finished or (name in DURATIONS and count != ok):
            raise ValueError(f"a window of {ok} successes has {count} values of {name:.40}")


def _texts(record: Record) -> Mapping[str, str] | None:
    """The encoded histograms of a record by name; None for a kind that has none."""
    if record["kind"] in ("window", "trace"):
        texts: Mapping[str, str] = record["histograms"]
        return texts
    if record["kind"] == "health":
        return {"lag": record["lag"]} if record.get("lag") else {}
    return None
