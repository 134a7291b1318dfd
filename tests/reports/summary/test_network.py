"""The sum: parts with chosen numbers, and what is left of the mean latency."""

from dataclasses import replace
from typing import Any

import pytest

from reports.fold.path import Path
from reports.summary.summary import PARTS, Summary, breakdown, in_kernel_ns, mean_in_flight, parts_of, sharing
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


def summary(**known: Any) -> Summary:
    """100 requests, one after the other, on one connection that was busy for 140 ns of each."""
    planned: dict[str, Any] = {
        **{"cell": "onnx-http/b1/c1", "repeat": 1, "endpoint": "onnx-http", "backend": "onnx"},
        **{"protocol": "http", "payload": "fp32", "batch": 1, "load": "closed", "level": 1, "status": "done"},
    }
    told: dict[str, Any] = {
        **{"requests": 100, "failures": 0, "measure_ns": 100_000.0, "service_mean_ns": 990.0},
        **{"path": Path(connections=1, busy_ns=14_000)},
    }
    return changed(Summary(**planned), **(told | KNOWN | known))


def whole(run: Summary) -> Summary:
    network_ns, unexplained_ns = breakdown(run)
    return replace(run, network_ns=network_ns, unexplained_ns=unexplained_ns)


def test_network_is_what_the_kernel_had_the_bytes_beyond_send() -> None:
    assert breakdown(summary()) == (100.0, 150.0)


@pytest.mark.parametrize(
    "known",
    [
        {},
        {"path": None},
        {"path": Path(connections=1)},
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
    assert sum(part.share for part in parts if part.share is not None) == pytest.approx(1)
    assert [part.name for part in parts] == list(PARTS)


def test_parts_come_in_the_order_of_the_sum_with_their_share() -> None:
    found = {part.name: (part.ns, part.share) for part in parts_of(whole(summary()))}
    assert list(found) == [
        *("send_delay", "encode", "send", "network", "server_queue", "server_compute", "server_other"),
        *("receive", "decode", "unexplained"),
    ]
    assert found["network"] == (100.0, 0.1)
    assert found["server_compute"] == (450.0, 0.45)


def test_network_is_at_most_what_the_other_parts_leave() -> None:
    late_ack = Path(connections=1, busy_ns=100 * 5_000)
    assert breakdown(summary(path=late_ack)) == (250.0, 0.0)


def test_network_is_not_below_nothing() -> None:
    assert breakdown(summary(path=Path(connections=1, busy_ns=100 * 30))) == (0.0, 250.0)


def test_parts_that_come_to_more_than_the_latency_leave_less_than_nothing() -> None:
    assert breakdown(summary(latency_mean_ns=700.0)) == (0.0, -50.0)


def test_without_the_path_unexplained_holds_the_network() -> None:
    assert breakdown(summary(path=None)) == (None, 250.0)
    assert breakdown(summary(path=Path(connections=1))) == (None, 250.0)


def test_without_the_server_unexplained_holds_its_time_and_network_stays() -> None:
    silent = dict.fromkeys(("server_queue_ns", "server_compute_ns", "server_other_ns"))
    assert breakdown(summary(**silent)) == (100.0, 750.0)


def test_without_a_success_nothing_is_known() -> None:
    run = summary(latency_mean_ns=None, failures=100)
    assert breakdown(run) == (None, None)
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
