"""From what the kernel said of each worker's connections, once a second, to one run's Path."""

from collections.abc import Sequence

from reports.fold.groups import grouped
from reports.fold.health import standing
from reports.fold.path import Path, wire_bytes
from reports.fold.ratio import ratio
from reports.ledger.ledger import Record

GROWTHS = (
    *("bytes_sent", "bytes_received", "bytes_retransmitted", "segments_out", "segments_in"),
    *("retransmits", "busy_ns"),
)


def path_of(records: Sequence[Record], images: int) -> Path | None:
    """The measure phase's records as one Path; None without any. `images` are those that were answered."""
    if not records:
        return None
    totals = {name: total(records, name) for name in GROWTHS}
    busy_ns = totals["busy_ns"]
    rwnd, sndbuf = (ratio(total(records, f"{by}_limited_ns"), busy_ns) for by in ("rwnd", "sndbuf"))
    up_bytes = wire_bytes(totals["bytes_sent"], totals["segments_out"])
    down_bytes = wire_bytes(totals["bytes_received"], totals["segments_in"])
    both_bytes = None if up_bytes is None or down_bytes is None else up_bytes + down_bytes
    return Path(
        **totals,
        asked=_most_at_once(records, "asked"),
        connections=_most_at_once(records, "connections"),
        rtt_ns=_mean(records, "rtt_ns"),
        min_rtt_ns=min(_stated(records, "min_rtt_ns"), default=None),
        cwnd_bytes=_mean(records, "cwnd_bytes"),
        delivery_bytes_per_s=_mean(records, "delivery_bytes_per_s"),
        busy_share=ratio(busy_ns, _connection_time_ns(records)),
        rwnd_share=rwnd,
        sndbuf_share=sndbuf,
        cwnd_share=None if rwnd is None or sndbuf is None else max(0.0, 1 - rwnd - sndbuf),
        wire_bytes_per_s=_wire_bytes_per_s(records),
        wire_bytes_per_image=ratio(both_bytes, images),
    )


def standing_alone(path: Path) -> Path:
    """What holds at each look, without what grew between them: of some connections that was not seen."""
    kept = ("asked", "connections", "rtt_ns", "min_rtt_ns", "cwnd_bytes")
    return Path(**{name: getattr(path, name) for name in kept})


def total(records: Sequence[Record], name: str) -> int | None:
    """The sum of a growth over all records that state it; None where none does."""
    found = _stated(records, name)
    return round(sum(found)) if found else None


def _stated(records: Sequence[Record], name: str) -> list[float]:
    return [record[name] for record in records if record.get(name) is not None]


def _most_at_once(records: Sequence[Record], name: str) -> int | None:
    """All workers' last words of a second, summed, in the second that has the most.

    A second in which some worker does not know is left out: a part is no sum.
    """
    seconds = grouped(records, "second").values()
    known = [second for second in seconds if all(record.get(name) is not None for record in second)]
    return max((standing(second, name) or 0 for second in known), default=None)


def _mean(records: Sequence[Record], name: str) -> float | None:
    """Each record counts for as many connections as its mean is of."""
    known = [record for record in records if record.get(name) is not None]
    found = [(float(record[name]), int(record["connections"])) for record in known]
    weight = sum(connections for _, connections in found)
    return sum(value * connections for value, connections in found) / weight if weight else None


def _connection_time_ns(records: Sequence[Record]) -> int:
    """How long connections there were, of the records that say how much of it they were busy."""
    told = (record for record in records if record.get("busy_ns") is not None)
    return sum(int(record["span_ns"]) * int(record["connections"]) for record in told)


def _wire_bytes_per_s(records: Sequence[Record]) -> float | None:
    """Each worker's rate over the time that its records cover, all workers together."""
    rates = [_sent_per_s(of_worker) for of_worker in grouped(records, "worker").values()]
    known = [rate for rate in rates if rate is not None]
    return sum(known) if known else None


def _sent_per_s(records: Sequence[Record]) -> float | None:
    sent = wire_bytes(total(records, "bytes_sent"), total(records, "segments_out"))
    covered_ns = sum(record["span_ns"] for record in records)
    return sent / (covered_ns / 1e9) if sent is not None and covered_ns else None
