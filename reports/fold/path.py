"""What the kernel knew of the connections between workers and server: the path that requests took."""

from dataclasses import dataclass

HEADER_BYTES = 66
"""Of each segment on the wire: IPv4 (20), TCP with its timestamps (20 + 12), Ethernet (14).

The kernel counts only what programs handed over or got; a link carries these too, and acknowledgements are
nothing else. IPv6 would be 20 more; a switch's preamble, checksum and gap are not counted.
"""


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
