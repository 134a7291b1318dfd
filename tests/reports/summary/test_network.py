"""The sum: parts with chosen numbers, and what is proven of what is left of the mean latency."""

from dataclasses import replace
from typing import Any

import pytest

from reports.fold.http2 import Http2
from reports.fold.path import Path
from reports.summary.network import (
    Remainder,
    always_full,
    in_kernel_ns,
    proven_network_ns,
    remainder,
    sharing,
    windows_filled,
)
from reports.summary.summary import PARTS, Summary, mean_in_flight, parts_of, shown_parts_of
from tests.reports.parts import changed

KNOWN: dict[str, Any] = {
    "latency_mean_ns": 1_000.0,
    "send_delay_mean_ns": 10.0,
    "encode_ns": 20.0,
    "send_ns": 40.0,
    "receive_ns": 30.0,
    "decode_ns": 50.0,
    "server_queue_ns": 100.0,
    "server_compute_ns": 450.0,
    "server_other_ns": 50.0,
}


def path(**changes: Any) -> Path:
    """A connection over a round trip of at least 30 ns, that carried at most 6 bytes in 10 ns."""
    known = {"connections": 1, "busy_ns": 14_000, "busy_share": 0.14, "min_rtt_ns": 30}
    return Path(**{**known, **changes})


def summary(**known: Any) -> Summary:
    """100 requests of 60 bytes, one after the other, on one connection that was busy for 140 ns of each."""
    planned: dict[str, Any] = {
        **{"cell": "onnx-http/b1/c1", "repeat": 1, "endpoint": "onnx-http", "backend": "onnx"},
        **{"protocol": "http", "payload": "fp32", "batch": 1, "load": "closed", "level": 1, "status": "done"},
    }
    told: dict[str, Any] = {
        **{"requests": 100, "failures": 0, "measure_ns": 100_000.0, "service_mean_ns": 990.0},
        **{"path": path()},
    }
    return changed(Summary(**planned), **(told | KNOWN | known))


def whole(run: Summary) -> Summary:
    proven_ns, most_ns, unexplained_ns = remainder(run)
    return replace(run, network_ns=proven_ns, network_most_ns=most_ns, unexplained_ns=unexplained_ns)


SILENT = dict.fromkeys(("server_queue_ns", "server_compute_ns", "server_other_ns"))


@pytest.mark.parametrize(
    ("known", "found"),
    [
        # at least a round trip, at most what the kernel had the bytes beyond `send`
        ({}, (30, 100, 220)),
        ({"path": path(busy_ns=100 * 30)}, (30, 30, 220)),
        # 60 bytes at 0.5 a nanosecond are 120, of which the client took 40 to hand them over
        ({"request_bytes": 60.0, "path": path(delivery_bytes_per_s=0.5e9)}, (80, 100, 170)),
        # a rate that a held back acknowledgement made low proves no more than the kernel saw
        ({"request_bytes": 60.0, "path": path(delivery_bytes_per_s=1e6)}, (100, 100, 150)),
        # an acknowledgement that was held back for 5,000 ns says nothing of where the 250 went
        ({"path": path(busy_ns=100 * 5_000)}, (30, 250, 220)),
        ({"latency_mean_ns": 700.0}, (0, 0, -50)),
        ({"path": None}, (None, None, 250)),
        ({"path": Path(connections=1)}, (None, None, 250)),
        (SILENT, (30, 100, 820)),
        # a wait for a free stream is before any byte
        ({"stream_wait_ns": 120.0}, (30, 100, 100)),
    ],
)
def test_what_is_proven_what_may_be_and_what_is_left(known: dict[str, Any], found: tuple[float, ...]) -> None:
    assert remainder(summary(**known)) == tuple(
        None if part is None else pytest.approx(part) for part in found
    )


@pytest.mark.parametrize(("filled", "proven_ns"), [(1.0, 100.0), (0.75, 65.0), (0.25, 30.0)])
def test_windows_that_are_full_while_a_connection_is_busy(filled: float, proven_ns: float) -> None:
    full = path(cwnd_bytes=1_000.0, unacked_bytes=140.0 * filled, not_sent_bytes=0.0)
    assert windows_filled(summary(path=full)) == pytest.approx(filled)
    assert remainder(summary(path=full)).proven_ns == pytest.approx(proven_ns)


def test_without_looks_at_bytes_windows_are_filled_by_littles_law_over_the_least_round_trip() -> None:
    """0.2 bytes a nanosecond for 30 ns are 6 on the way, where 14 % of the time a window of 100 is open."""
    slow = path(wire_bytes_per_s=0.2e9, rtt_ns=40_000_000.0, cwnd_bytes=100.0)
    assert windows_filled(summary(path=slow)) == pytest.approx(6 / 14)

    assert windows_filled(summary(path=replace(slow, connections=2))) == pytest.approx(3 / 14)


@pytest.mark.parametrize(
    ("changes", "full"),
    [
        ({}, True),
        ({"busy_share": 0.849}, False),
        ({"busy_share": None}, False),
        ({"not_sent_bytes": 99.0}, False),
        ({"not_sent_bytes": None}, False),
        ({"unacked_bytes": 42.0}, False),
        ({"window_bytes": 99.0}, True),
        ({"window_bytes": 101.0}, True),
        ({"window_bytes": 80.0, "unacked_bytes": 34.0}, True),
    ],
)
def test_a_connection_is_always_full_where_it_is_always_busy_and_more_waits(
    changes: dict[str, Any], full: bool
) -> None:
    known = {"busy_share": 0.85, "cwnd_bytes": 100.0, "unacked_bytes": 42.5, "not_sent_bytes": 100.0}
    assert always_full(summary(path=path(**known | changes))) is full
    assert not always_full(summary(path=None))


def test_what_the_kernel_did_not_tell_proves_nothing() -> None:
    untold = summary(send_ns=None, path=Path(connections=1, busy_ns=14_000))
    assert remainder(untold) == Remainder(0.0, 140.0, 290.0)
    for known in (None, Path(delivery_bytes_per_s=0.5e9), Path(busy_share=0.5, rwnd_share=1.0)):
        assert proven_network_ns(summary(send_ns=None, request_bytes=60.0, path=known)) == 0
    assert windows_filled(summary(path=path())) is None
    assert windows_filled(summary(path=path(rwnd_share=0.9, sndbuf_share=0.9))) == 1


def test_a_window_that_the_receiver_keeps_closed_counts_as_full() -> None:
    assert windows_filled(summary(path=path(rwnd_share=0.85, sndbuf_share=0.05))) == pytest.approx(0.9)


def test_requests_that_are_at_the_server_are_not_on_the_network() -> None:
    """Eight on one connection, which holds 120 bytes while it is busy: those of two requests and parts."""
    held = path(busy_share=0.5, unacked_bytes=20.0, not_sent_bytes=40.0)
    run = summary(request_bytes=60.0, requests=800, service_mean_ns=1_000.0, path=held)
    assert sharing(run) == pytest.approx(8.0)
    assert in_kernel_ns(run) == pytest.approx(14_000 / 800 * 3)
    unseen = replace(run, path=path(busy_share=0.5))
    assert in_kernel_ns(unseen) == pytest.approx(14_000 / 800 * 8)


@pytest.mark.parametrize(
    "known",
    [
        {},
        {"path": None},
        {"path": Path(connections=1)},
        {"path": Path(connections=1, busy_ns=14_000)},
        {"encode_ns": None, "send_ns": None, "receive_ns": None},
        SILENT,
        {"latency_mean_ns": 700.0},
        {"path": Path(connections=1, busy_ns=10**9)},
    ],
)
def test_the_parts_add_up_to_the_mean_latency(known: dict[str, Any]) -> None:
    run = whole(summary(**known))
    parts = parts_of(run)
    assert sum(part.ns for part in parts if part.ns is not None) == run.latency.mean_ns
    assert sum(part.ns for part in shown_parts_of(run) if part.ns is not None) == run.latency.mean_ns
    assert sum(part.share for part in parts if part.share is not None) == pytest.approx(1)
    assert [part.name for part in parts] == list(PARTS)


def test_parts_come_in_the_order_of_the_sum_with_their_share() -> None:
    found = {part.name: (part.ns, part.share) for part in parts_of(whole(summary()))}
    assert list(found) == [
        *(
            "send_delay",
            "resolve",
            "connect",
            "encode",
            "stream_wait",
            "flow_wait",
            "send",
            "network",
            "server_queue",
            "server_compute",
            "server_other",
        ),
        *("receive", "decode", "unexplained"),
    ]
    assert found["network"] == (30.0, 0.03)
    assert found["server_compute"] == (450.0, 0.45)


def test_what_may_be_the_networks_stands_apart_from_what_cannot_be() -> None:
    found = {part.name: part.ns for part in shown_parts_of(whole(summary()))}
    assert [found[name] for name in ("network", "unclear", "unexplained")] == [30.0, 70.0, 150.0]


def test_without_a_success_nothing_is_known() -> None:
    run = summary(latency_mean_ns=None, failures=100)
    assert remainder(run) == Remainder(None, None, None)
    assert in_kernel_ns(run) is None
    assert {part.share for part in parts_of(run)} == {None}


def test_a_shared_connection_is_busy_for_all_who_share_it() -> None:
    shared = summary(requests=800, path=Path(connections=2, busy_ns=14_000))
    # 800 requests of 990 ns in 100,000 ns
    assert mean_in_flight(shared) == pytest.approx(7.92)
    assert sharing(shared) == pytest.approx(3.96)
    assert in_kernel_ns(shared) == pytest.approx(14_000 / 800 * 3.96)


def test_more_connections_than_requests_share_nothing() -> None:
    assert sharing(summary(path=Path(connections=16, busy_ns=1))) == 1.0
    assert sharing(summary(path=Path(busy_ns=1))) == 1.0


def test_only_successes_count() -> None:
    assert in_kernel_ns(summary(requests=150, failures=50)) == 140.0


def test_looks_at_the_second_stand_in_for_littles_law() -> None:
    assert mean_in_flight(summary(service_mean_ns=None, in_flight=3.5)) == 3.5


MS = 1_000_000
REQUEST_BYTES = 602_289.0


def on_own_wire(calls: int, latency_ms: float, phases: dict[str, float], **known: Any) -> Summary:
    """So many gRPC calls of 602 KB with phases in ms; the server tells of 0.1 ms queue and 5 ms compute."""
    ours = {"stream_wait_ns": 0.0, "flow_wait_ns": 0.0, "encode_ns": 0.0}
    ours |= {f"{name}_ns": ms * MS for name, ms in phases.items()}
    others = {"send_delay_mean_ns": 0.0, "receive_ns": 0.0, "decode_ns": 0.0, "server_other_ns": 0.0}
    server = {"server_queue_ns": 0.1 * MS, "server_compute_ns": 5 * MS}
    whole = {"latency_mean_ns": latency_ms * MS, "service_mean_ns": latency_ms * MS}
    return summary(requests=calls, request_bytes=REQUEST_BYTES, **ours, **others, **server, **whole, **known)


def of_ms(found: Remainder) -> tuple[float, ...]:
    return tuple(ns / MS for ns in found if ns is not None)


def test_one_user_on_loopback_is_explained_as_over_http() -> None:
    """602 KB handed over in 0.2 ms, acknowledged 0.1 ms later; 0.3 ms beside that and the server's work.

    1,000 calls in 5.6 s, for 0.3 ms of each of which the connection was busy.
    """
    loopback = Path(connections=1, busy_ns=300 * MS, busy_share=0.3 / 5.6, min_rtt_ns=0.02 * MS)
    loopback = replace(loopback, http2=Http2(stream_stalls=0, stream_stalled_ns=0, connection_stalls=0))
    run = on_own_wire(1_000, 5.6, {"send": 0.2}, measure_ns=5_600.0 * MS, path=loopback)
    assert of_ms(remainder(run)) == pytest.approx((0.02, 0.1, 0.28))
    assert remainder(run) == remainder(replace(run, protocol="http", path=replace(loopback, http2=None)))


def lossy(latency_ms: float = 2_096.0, **phases: float) -> Summary:
    """16 users on one connection over 14 ms, whose window a loss keeps at 66 KB: 4.6 MB/s, 131 ms a call.

    In the kernel are on average these 66 KB and 128 KB not yet sent, which are on their way for 42 ms.
    """
    carried = path(
        **{"connections": 1, "busy_ns": 131_000 * MS, "busy_share": 1.0, "min_rtt_ns": 14 * MS},
        **{"cwnd_bytes": 66_000.0, "unacked_bytes": 65_000.0, "not_sent_bytes": 128_000.0},
        delivery_bytes_per_s=4.6e6,
        http2=Http2(stream_stalls=0, connection_stalls=0),
    )
    return on_own_wire(1_000, latency_ms, phases, measure_ns=131_000.0 * MS, level=16, path=carried)


def test_a_call_that_stands_behind_others_is_on_the_network_after_its_own_turn() -> None:
    """It took 2,045 ms until its last byte was handed over, of which its own turn was 131 ms, and 46 more.

    These are 42 ms in the kernel and on the wire, 5.1 at the server, all but 1.1 ms of which is told apart.
    """
    run = lossy(send=2_045.0)
    assert always_full(run)
    assert sharing(run) == pytest.approx(16.0)
    held_ms = 131 * 193_000 / REQUEST_BYTES
    assert held_ms == pytest.approx(42.0, rel=1e-3)
    filled = 65 / 66
    proven, most, unexplained = of_ms(remainder(run))
    assert proven == pytest.approx((131 + held_ms) * filled - 131)
    assert most == pytest.approx(held_ms, rel=1e-3)
    assert unexplained == pytest.approx(2_096 - 2_045 - 5.1 - proven)


def test_without_its_stamps_all_that_grpcio_holds_back_may_be_on_the_network() -> None:
    run = replace(
        lossy(), phases=replace(lossy().phases, send_ns=None, stream_wait_ns=None, flow_wait_ns=None)
    )
    assert in_kernel_ns(run) == pytest.approx(16 * 131 * MS)
    assert in_kernel_ns(lossy(send=2_045.0)) == pytest.approx((131 + 41.98) * MS, rel=1e-3)
    proven, most, _ = of_ms(remainder(run))
    assert (proven, most) == pytest.approx((16 * 131 * 65 / 66, 2_096 - 5.1), rel=1e-3)


def narrow(flow_ms: float, stalls: int, stalled_ms: float, calls: int = 100) -> Summary:
    """Calls of one user over 20 ms into a stream window of 64 KB: 10 flights of up to 64 KB, and 9 stalls."""
    carried = path(
        **{"connections": 1, "busy_ns": calls * 200 * MS, "busy_share": 0.95, "min_rtt_ns": 20 * MS},
        **{"cwnd_bytes": 90_000.0, "unacked_bytes": 57_000.0, "not_sent_bytes": 0.0},
        delivery_bytes_per_s=3.2e6,
        http2=Http2(stream_stalls=stalls * calls, stream_stalled_ns=round(stalled_ms * calls * MS)),
    )
    phases, each_ms = {"flow_wait": flow_ms, "send": 0.3}, flow_ms + 30.0
    return on_own_wire(calls, each_ms, phases, measure_ns=calls * each_ms * MS, path=carried)


def test_a_closed_window_is_a_part_of_its_own_and_no_network_once_more() -> None:
    """Of 210 ms, 180 were waited for the window and 5.1 spent at the server; a last flight took 20 ms.

    The connection was busy for 200 ms and delivered at 3.2 MB/s, which is 188 ms for a request: but for the
    last flight that was while the window was closed. 4.6 ms are not explained, and are none of the network's.
    """
    proven, most, unexplained = of_ms(remainder(narrow(180.0, stalls=9, stalled_ms=180.0)))
    assert proven == 20.0
    assert most == 20.0
    assert unexplained == pytest.approx(210 - 180 - 0.3 - 5.1 - 20)


def test_a_server_that_keeps_a_window_closed_for_longer_than_a_round_trip_leaves_the_range_wide() -> None:
    """Of stalls of 40 ms, 20 are surely the round trip: in the other 20 the connection may have been idle."""
    run = narrow(360.0, stalls=9, stalled_ms=360.0)
    assert of_ms(remainder(run))[:2] == (20.0, 20.0)
    assert run.path is not None
    longer = replace(run, path=replace(run.path, busy_ns=100 * 204 * MS))
    assert of_ms(remainder(longer))[:2] == pytest.approx((20.0, 23.7))


def test_calls_that_wait_for_one_window_are_not_taken_for_busy_time_of_the_connection_each() -> None:
    """16 users share a connection window of 64 KB over 20 ms: 9.2 round trips a call, in turns of 184 ms.

    A call waits for the window of its connection while 15 others are sent, and then in its own turn.
    """
    carried = path(
        **{"connections": 1, "busy_ns": 100 * 184 * MS, "busy_share": 1.0, "min_rtt_ns": 20 * MS},
        **{"cwnd_bytes": 90_000.0, "unacked_bytes": 60_000.0, "not_sent_bytes": 0.0},
        delivery_bytes_per_s=3.2e6,
        http2=Http2(
            connection_stalls=920,
            connection_stalled_ns=100 * 180 * MS,
            connection_waited_ns=100 * 16 * 180 * MS,
        ),
    )
    phases = {"flow_wait": 2_880.0, "send": 34.0}
    run = on_own_wire(100, 2_944.0, phases, measure_ns=100 * 184.0 * MS, level=16, path=carried)
    proven, most, unexplained = of_ms(remainder(run))
    assert proven == 20.0
    # By the looks a call's bytes are under way for 18.3 ms after its turn: within a round trip.
    assert most == 20.0
    assert unexplained == pytest.approx(2_944 - 2_914 - 5.1 - 20)
