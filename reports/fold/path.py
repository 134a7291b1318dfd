"""What the kernel knew of the connections between workers and server: the path that requests took."""

from collections.abc import Sequence
from dataclasses import dataclass

from reports.fold.health import standing
from reports.fold.records import grouped, ratio
from reports.ledger.ledger import Record

HEADER_BYTES = 66
"""Of each segment on the wire: IPv4 (20), TCP with its timestamps (20 + 12), Ethernet (14).

The kernel counts only what programs handed over or got; a link carries these too, and acknowledgements are
nothing else. IPv6 would be 20 more; a switch's preamble, checksum and gap are not counted.
"""
GROWTHS = (
    *("bytes_sent", "bytes_received", "bytes_retransmitted", "segments_out", "segments_in"),
    *("retransmits", "busy_ns"),
)


@dataclass(frozen=True, kw_only=True)
class Path:
    """One run's connections in the measure phase, all workers together; None where the kernel did not tell.

    `asked` and `connections` are how many there should be and the most seen at once. `rtt_ns` is the mean
    smoothed round trip, `min_rtt_ns` the least. Bytes and segments are totals, `bytes_sent` with those sent
    again. `busy_share` is of the connections' time: had they anything under way? Of that busy time,
    `rwnd_share` was held up by the receiver's window, `sndbuf_share` by the send buffer, `cwnd_share`, the
    rest, by the congestion window and the wire. `wire_bytes_per_s` left the client, headers included;
    `wire_bytes_per_image` are those of both directions.
    """

    asked: int | None = None
    connections: int | None = None
    rtt_ns: float | None = None
    min_rtt_ns: float | None = None
    cwnd_bytes: float | None = None
    bytes_sent: int | None = None
    bytes_received: int | None = None
    bytes_retransmitted: int | None = None
    segments_out: int | None = None
    segments_in: int | None = None
    retransmits: int | None = None
    delivery_bytes_per_s: float | None = None
    busy_ns: int | None = None
    busy_share: float | None = None
    rwnd_share: float | None = None
    sndbuf_share: float | None = None
    cwnd_share: float | None = None
    wire_bytes_per_s: float | None = None
    wire_bytes_per_image: float | None = None

    @property
    def sent_wire_bytes(self) -> int | None:
        """What left the client, with the headers of its segments."""
        return wire_bytes(self.bytes_sent, self.segments_out)

    @property
    def received_wire_bytes(self) -> int | None:
        """What came to the client, with the headers of its segments."""
        return wire_bytes(self.bytes_received, self.segments_in)


def wire_bytes(payload_bytes: int | None, segments: int | None) -> int | None:
    """Bytes on a wire; None where one of the two is unknown."""
    return None if payload_bytes is None or segments is None else payload_bytes + HEADER_BYTES * segments


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
