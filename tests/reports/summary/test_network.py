"""The sum: parts with chosen numbers, and what is proven of what is left of the mean latency."""

from dataclasses import replace
from typing import Any

import pytest

from reports.fold.path import Path
from reports.summary.network import Remainder, in_kernel_ns, remainder, sharing, windows_filled
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


def test_at_least_a_round_trip_and_at_most_what_the_kernel_had_the_bytes_beyond_send() -> None:
    assert remainder(summary()) == Remainder(30.0, 100.0, 220.0)


def test_the_bytes_take_their_time_at_the_rate_of_delivery() -> None:
    """60 bytes at 0.5 a nanosecond are 120, of which the client took 40 to hand them over."""
    found = remainder(summary(request_bytes=60.0, path=path(delivery_bytes_per_s=0.5e9)))
    assert found == pytest.approx(Remainder(80.0, 100.0, 170.0))


def test_a_rate_that_a_held_back_acknowledgement_made_low_proves_no_more_than_the_kernel_saw() -> None:
    found = remainder(summary(request_bytes=60.0, path=path(delivery_bytes_per_s=1e6)))
    assert found == Remainder(100.0, 100.0, 150.0)


@pytest.mark.parametrize(("filled", "proven_ns"), [(1.0, 100.0), (0.75, 65.0), (0.25, 30.0)])
def test_windows_that_are_full_while_a_connection_is_busy(filled: float, proven_ns: float) -> None:
    full = path(cwnd_bytes=1_000.0, unacked_bytes=140.0 * filled, not_sent_bytes=0.0)
    assert windows_filled(summary(path=full)) == pytest.approx(filled)
    assert remainder(summary(path=full)).proven_ns == pytest.approx(proven_ns)


def test_without_looks_at_bytes_windows_are_filled_by_littles_law_over_the_least_round_trip() -> None:
    """0.2 bytes a nanosecond for 30 ns are 6 on the way, where 14 % of the time a window of 100 is open."""
    slow = path(wire_bytes_per_s=0.2e9, rtt_ns=40_000_000.0, cwnd_bytes=100.0)
    assert windows_filled(summary(path=slow)) == pytest.approx(6 / 14)


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
        {"server_queue_ns": None, "server_compute_ns": None, "server_other_ns": None},
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
            "connect",
            "encode",
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


def test_what_may_be_the_networks_is_at_most_what_the_other_parts_leave() -> None:
    """An acknowledgement that was held back for 5,000 ns says nothing of where the 250 went."""
    assert remainder(summary(path=path(busy_ns=100 * 5_000))) == Remainder(30.0, 250.0, 220.0)


def test_network_is_at_least_a_round_trip() -> None:
    assert remainder(summary(path=path(busy_ns=100 * 30))) == Remainder(30.0, 30.0, 220.0)


def test_parts_that_come_to_more_than_the_latency_leave_less_than_nothing() -> None:
    assert remainder(summary(latency_mean_ns=700.0)) == Remainder(0.0, 0.0, -50.0)


def test_without_the_path_unexplained_holds_the_network() -> None:
    assert remainder(summary(path=None)) == Remainder(None, None, 250.0)
    assert remainder(summary(path=Path(connections=1))) == Remainder(None, None, 250.0)


def test_without_the_server_unexplained_holds_its_time_and_network_stays() -> None:
    silent = dict.fromkeys(("server_queue_ns", "server_compute_ns", "server_other_ns"))
    assert remainder(summary(**silent)) == Remainder(30.0, 100.0, 820.0)


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
