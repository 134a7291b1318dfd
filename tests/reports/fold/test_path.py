"""From the kernel's records of connections to one Path: every number here is chosen."""

import pytest

from reports.fold.path import HEADER_BYTES, Path, PathRecords, standing_alone, wire_bytes
from tests.reports.lines import FIRST_SECOND, Record, path_line

SECOND_NS = 1_000_000_000


def line(worker: str, at: int, **stated: object) -> Record:
    return path_line({}, worker, FIRST_SECOND + at, **stated)


def path_of(records: list[Record], images: int) -> Path | None:
    found = PathRecords()
    found.add(records)
    return found.path(images)


def test_without_records_nothing_is_known() -> None:
    assert path_of([], 10) is None


def test_connections_are_the_most_at_once_by_each_workers_last_word_in_a_second() -> None:
    path = path_of(
        [
            line("w0", 0, connections=9, asked=9),
            line("w0", 0, connections=3, asked=4),
            line("w1", 0, connections=2, asked=4),
            line("w0", 1, connections=4, asked=4),
            line("w1", 1, connections=4, asked=4),
            line("w0", 2, connections=7, asked=4),
        ],
        1,
    )
    assert path is not None
    # the seconds have 3 + 2, 4 + 4 and 7
    assert (path.asked, path.connections) == (8, 8)


def test_what_one_worker_does_not_know_is_no_sum() -> None:
    path = path_of([line("w0", 0, asked=4), line("w1", 0, asked=None), line("w0", 1, asked=3)], 1)
    assert path is not None
    assert (path.asked, path.connections) == (3, 2)


def test_growth_is_summed_and_shares_are_of_connection_time_and_of_busy_time() -> None:
    busy = {"busy_ns": 600_000_000, "rwnd_limited_ns": 60_000_000, "sndbuf_limited_ns": 240_000_000}
    idle = {"busy_ns": 0, "rwnd_limited_ns": 0, "sndbuf_limited_ns": 0}
    path = path_of(
        [
            line("w0", 0, connections=2, **busy),
            line("w1", 0, connections=1, **idle),
            line("w0", 1, connections=2, span_ns=SECOND_NS // 2, **idle),
            # its connection time does not count where its busy time is not known
            line("w1", 1, connections=50),
        ],
        1,
    )
    assert path is not None
    assert path.busy_ns == 600_000_000
    assert path.busy_share == pytest.approx(600 / (2_000 + 1_000 + 1_000))
    assert (path.rwnd_share, path.sndbuf_share) == pytest.approx((0.1, 0.4))
    assert path.cwnd_share == pytest.approx(0.5)
    # the kernel's counters are not read in one moment
    over = path_of([line("w0", 0, busy_ns=100, rwnd_limited_ns=70, sndbuf_limited_ns=40)], 1)
    assert over is not None
    assert (over.rwnd_share, over.sndbuf_share, over.cwnd_share) == (0.7, 0.4, 0.0)


MEANS = ("rtt_ns", "cwnd_bytes", "delivery_bytes_per_s", "window_bytes", "pacing_bytes_per_s")
HELD = ("unacked_bytes", "not_sent_bytes", "bbr_connections")


def test_means_weigh_connections_and_sums_are_told_of_one_of_them() -> None:
    path = path_of(
        [
            line("w0", 0, connections=3, min_rtt_ns=8, **{name: 10 * n for n, name in enumerate(MEANS, 1)})
            | {name: 9 * n for n, name in enumerate(HELD, 1)},
            line("w1", 0, connections=1, min_rtt_ns=6, **{name: 30 * n for n, name in enumerate(MEANS, 1)})
            | {name: 3 * n for n, name in enumerate(HELD, 1)},
            line("w1", 1, connections=0, min_rtt_ns=7),
            line("w1", 2, connections=None, unacked_bytes=99),
        ],
        1,
    )
    assert path is not None
    assert [getattr(path, name) for name in MEANS] == [15, 30, 45, 60, 75]
    assert (path.unacked_bytes, path.not_sent_bytes, path.bbr_share, path.min_rtt_ns) == (3, 6, 9, 6)


def test_how_requests_began_is_summed_and_stands_alone_too() -> None:
    starts = {"requests": 2, "window_bytes": 100_000, "round_trips": 5}
    path = path_of([line("w0", 0, starts=starts), line("w1", 0, starts=starts), line("w0", 1)], 1)
    assert path is not None
    assert (path.starts, path.start_window_bytes, path.start_round_trips) == (4, 50_000, 10)
    assert standing_alone(path).start_round_trips == 10


def test_bytes_on_the_wire_have_the_headers_of_their_segments() -> None:
    up = {"bytes_sent": 10_000, "segments_out": 10, "bytes_retransmitted": 1_000, "retransmits": 1}
    down = {"bytes_received": 2_000, "segments_in": 20}
    path = path_of(
        [
            line("w0", 0, **up, **down),
            line("w0", 1, span_ns=SECOND_NS // 4, **up, **down),
            line("w1", 0, **up, **down),
        ],
        images=6,
    )
    assert path is not None
    assert (path.bytes_sent, path.bytes_received, path.segments_out, path.segments_in) == (
        30_000,
        6_000,
        30,
        60,
    )
    assert (path.bytes_retransmitted, path.retransmits) == (3_000, 3)
    assert path.sent_wire_bytes == 30_000 + 66 * 30
    assert path.received_wire_bytes == 6_000 + 66 * 60
    # w0 sent twice 10,660 bytes in 1.25 s, w1 once in 1 s
    assert path.wire_bytes_per_s == pytest.approx(2 * 10_660 / 1.25 + 10_660)
    assert path.wire_bytes_per_image == pytest.approx((31_980 + 9_960) / 6)


def test_what_the_kernel_did_not_tell_stays_unknown() -> None:
    path = path_of([line("w0", 0, asked=None)], images=0)
    assert path is not None
    assert (path.asked, path.connections) == (None, 1)
    told = {name: value for name, value in vars(path).items() if value is not None}
    assert told == {"connections": 1, "peers": {}}


def test_what_stands_alone_is_what_holds_at_a_look() -> None:
    looks = {"rtt_ns": 10, "min_rtt_ns": 8, "cwnd_bytes": 100}
    grown = {
        "bytes_sent": 9,
        "segments_out": 1,
        "busy_ns": 5,
        "delivery_bytes_per_s": 7,
        "rwnd_limited_ns": 1,
    }
    path = path_of([line("w0", 0, asked=4, connections=3, **looks, **grown)], 1)
    assert path is not None
    assert standing_alone(path) == Path(asked=4, connections=3, **looks)


def test_wire_bytes_need_both() -> None:
    assert wire_bytes(100, 2) == 100 + 2 * HEADER_BYTES
    assert wire_bytes(None, 2) is None
    assert wire_bytes(100, None) is None


def test_the_addresses_that_were_used_are_those_of_all_workers() -> None:
    path = path_of(
        [
            line("w0", 0, peers={"10.0.0.5": 2}),
            line("w0", 1, peers={"10.0.0.5": 4}),
            line("w1", 0, peers={"10.0.0.5": 1, "10.0.0.6": 3}),
            line("w1", 1),  # as older workers tell
        ],
        1,
    )
    assert path is not None
    assert path.peers == {"10.0.0.5": 5, "10.0.0.6": 3}
