"""What the kernel knew of the connections between workers and server: the path that requests took."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import inf

from reports.fold.http2 import Http2, Http2Records
from reports.fold.records import LastWords, Weighted, ratio
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
LIMITED = ("rwnd_limited_ns", "sndbuf_limited_ns")
GROWN = frozenset({*GROWTHS, *LIMITED})
MEANS = ("rtt_ns", "cwnd_bytes", "delivery_bytes_per_s", "window_bytes", "pacing_bytes_per_s")
"""Each record has their mean over its connections."""
HELD = ("unacked_bytes", "not_sent_bytes", "bbr_connections")
"""Each record has their sum over its connections."""
SENT = frozenset({"bytes_sent", "segments_out"})


@dataclass(frozen=True, kw_only=True)
class Path:
    """One run's connections in the measure phase, all workers together; None where the kernel did not tell.

    `asked` and `connections` are how many there should be and the most seen at once. `rtt_ns` is the mean
    smoothed round trip, `min_rtt_ns` the least. Bytes and segments are totals, `bytes_sent` with those sent
    again. `busy_share` is of the connections' time: had they anything under way? Of that busy time,
    `rwnd_share` was held up by the receiver's window, `sndbuf_share` by the send buffer, `cwnd_share`, the
    rest, by the congestion window and the wire. `wire_bytes_per_s` left the client, headers included;
    `wire_bytes_per_image` are those of both directions.

    Means of a connection over the looks at it: `unacked_bytes` that were under way, save two segments whose
    acknowledgement a receiver may hold back; `not_sent_bytes`, handed to the kernel and not yet sent;
    `window_bytes`, the receiver's window; `pacing_bytes_per_s`, at which the kernel lets segments go.
    `starts` requests were larger than a new connection's window, began with one of `start_window_bytes` on
    average, and took `start_round_trips` more, all together, than with one as large as they are.
    `bbr_share` of the connections have BBR as their congestion control. `http2` is what our own wire told, of
    connections that carry HTTP/2. `peers` are the IP addresses that connections went to, with the most that
    were seen at once, empty where ledgers do not tell.
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
    unacked_bytes: float | None = None
    not_sent_bytes: float | None = None
    window_bytes: float | None = None
    pacing_bytes_per_s: float | None = None
    bbr_share: float | None = None
    starts: int | None = None
    start_window_bytes: float | None = None
    start_round_trips: int | None = None
    http2: Http2 | None = None
    peers: Mapping[str, int] = field(default_factory=dict)

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


def standing_alone(path: Path) -> Path:
    """What holds at each look, without what grew between them: of some connections that was not seen."""
    kept = (
        *("asked", "connections", "rtt_ns", "min_rtt_ns", "cwnd_bytes", "bbr_share", "http2", "peers"),
        *("starts", "start_window_bytes", "start_round_trips"),
    )
    return Path(**{name: getattr(path, name) for name in kept})


class PathRecords:
    """Records of connections, added up as they come; `most` is how many each worker had at once."""

    def __init__(self) -> None:
        self.most: dict[str, int] = {}
        self._peers = defaultdict[str, Counter[str]](Counter)
        """The most connections at once by worker, and by address."""
        self._totals = defaultdict[str, int](int)
        """Of what grew, where some record states it."""
        self._means = {name: Weighted() for name in MEANS}
        """Each record counts for as many connections as its mean is of."""
        self._held = {name: Weighted() for name in HELD}
        self._min_rtt_ns = inf
        self._starts = Counter[str]()
        self._connection_ns = 0
        """How long connections there were, of the records that say how much of it they were busy."""
        self._sent = defaultdict[str, dict[str, int]](lambda: defaultdict(int))
        self._standing = {name: LastWords(name) for name in ("asked", "connections")}
        self._http2 = Http2Records()

    def add(self, records: Iterable[Record]) -> None:
        """Takes in seconds of workers."""
        for record in records:
            told = {name: value for name, value in record.items() if value is not None}
            for name in GROWN & told.keys():
                self._totals[name] += told[name]
            for name, weighted in self._means.items():
                if name in told:
                    weighted.add(float(told[name]) * int(told["connections"]), int(told["connections"]))
            for name, weighted in self._held.items():
                if name in told and "connections" in told:
                    weighted.add(float(told[name]), int(told["connections"]))
            if "busy_ns" in told:
                self._connection_ns += int(told["span_ns"]) * int(told["connections"])
            self._min_rtt_ns = min(told.get("min_rtt_ns", inf), self._min_rtt_ns)
            self._starts.update(told.get("starts") or {})
            self._of_worker(told["worker"], told)
            for words in self._standing.values():
                words.add(record)
            self._http2.add(record)

    def close(self, seconds: Iterable[int]) -> None:
        """Of these seconds nothing more comes."""
        for words in self._standing.values():
            words.close(seconds)
        self._http2.close(seconds)

    def _of_worker(self, worker: str, told: Record) -> None:
        sent = self._sent[worker]
        sent["span_ns"] += told["span_ns"]
        for name in SENT & told.keys():
            sent[name] += told[name]
        self._peers[worker] |= Counter(told.get("peers") or {})
        if "connections" in told:
            self.most[worker] = max(told["connections"], self.most.get(worker, 0))

    def path(self, images: int) -> Path | None:
        """They all as one Path; None without any. `images` are those that were answered."""
        if not self._sent:
            return None
        totals = {name: self._total(name) for name in GROWTHS}
        busy_ns = totals["busy_ns"]
        rwnd, sndbuf = (ratio(self._total(name), busy_ns) for name in LIMITED)
        up_bytes = wire_bytes(totals["bytes_sent"], totals["segments_out"])
        down_bytes = wire_bytes(totals["bytes_received"], totals["segments_in"])
        both_bytes = None if up_bytes is None or down_bytes is None else up_bytes + down_bytes
        return Path(
            **totals,
            peers=dict(sum(self._peers.values(), Counter[str]())),
            asked=self._standing["asked"].most,
            connections=self._standing["connections"].most,
            rtt_ns=self._means["rtt_ns"].mean,
            cwnd_bytes=self._means["cwnd_bytes"].mean,
            delivery_bytes_per_s=self._means["delivery_bytes_per_s"].mean,
            unacked_bytes=self._held["unacked_bytes"].mean,
            not_sent_bytes=self._held["not_sent_bytes"].mean,
            window_bytes=self._means["window_bytes"].mean,
            pacing_bytes_per_s=self._means["pacing_bytes_per_s"].mean,
            bbr_share=self._held["bbr_connections"].mean,
            min_rtt_ns=None if self._min_rtt_ns == inf else self._min_rtt_ns,
            busy_share=ratio(busy_ns, self._connection_ns),
            rwnd_share=rwnd,
            sndbuf_share=sndbuf,
            cwnd_share=None if rwnd is None or sndbuf is None else max(0.0, 1 - rwnd - sndbuf),
            wire_bytes_per_s=self._wire_bytes_per_s(),
            wire_bytes_per_image=ratio(both_bytes, images),
            starts=self._starts.get("requests"),
            start_window_bytes=ratio(self._starts["window_bytes"], self._starts["requests"]),
            start_round_trips=self._starts.get("round_trips"),
            http2=self._http2.http2(),
        )

    def _total(self, name: str) -> int | None:
        return round(self._totals[name]) if name in self._totals else None

    def _wire_bytes_per_s(self) -> float | None:
        """Each worker's rate over the time that its records cover, all workers together."""
        known = [
            (sent["bytes_sent"] + HEADER_BYTES * sent["segments_out"]) / (sent["span_ns"] / 1e9)
            for sent in self._sent.values()
            if sent["span_ns"] and sent.keys() >= SENT
        ]
        return sum(known) if known else None
