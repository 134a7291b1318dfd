"""When the server's intake or its answers are the limit, and what looks like them and is not."""

from typing import Any

import pytest

from reports.limit import Limit
from reports.limits.rules import limit_of
from reports.summary.summary import Summary
from tests.reports.limit_runs import MS, a_run, at_server

WAN = {"rtt_ns": 15 * MS, "min_rtt_ns": 14 * MS}
BEHIND_A_SIDECAR = {"busy_share": 0.95, "rwnd_share": 0.85, "not_sent_bytes": 1_400_000.0}
"""On the client's own host, whose link is full behind it: the sidecar reads as fast as that lets it."""


def named(run: Summary) -> Limit:
    limit = limit_of(run)
    assert limit is not None
    return limit


def answered(receive_ms: float, latency_ms: float, path: dict[str, Any], **changes: Any) -> Summary:
    """A run whose answers take some milliseconds to arrive."""
    times = dict.fromkeys(("latency_mean_ns", "service_mean_ns", "latency_p95_ns"), latency_ms * MS)
    rest = {"receive_ns": receive_ms * MS, "network_ns": 14 * MS, "unexplained_ns": 1 * MS}
    return a_run(path=path, **times | rest | {"response_bytes": 2_000_000.0} | changes)


def behind_a_sidecar(path: dict[str, Any] | None = None, **changes: Any) -> Summary:
    times = dict.fromkeys(("latency_mean_ns", "service_mean_ns", "latency_p95_ns"), 2_155.0 * MS)
    rest = {"send_ns": 100 * MS, "network_ns": 2_050 * MS, "unexplained_ns": 0.0, "server_busy": 0.05}
    return a_run(path=BEHIND_A_SIDECAR | (path or {}), **times | rest | changes)


def test_large_answers_over_a_bad_way_back() -> None:
    limit = named(answered(300, 330, WAN))
    assert limit.code == "downlink"
    assert limit.evidence == "an answer of 2,000 kB took 300 of 330 ms to arrive, at 53.3 Mbit/s"
    assert limit.advice.startswith("Ask for fewer bytes back")


@pytest.mark.parametrize(
    ("path", "changes"),
    [
        (WAN, {"response_bytes": 2_199.0}),  # so few bytes take a round trip
        ({}, {}),  # between processes of one host: it is the server that writes slowly
    ],
)
def test_a_slow_answer_that_no_way_back_explains(path: dict[str, Any], changes: dict[str, Any]) -> None:
    limit = named(answered(300, 330, path, **changes))
    assert limit.code == "inconclusive"
    assert limit.evidence == "receive took 300 of 330 ms, and why is not known"
    assert limit.advice.startswith("Look at how the server writes its answers")


def test_answers_that_take_less_than_half_of_the_time_are_not_the_limit() -> None:
    assert named(answered(150, 330, WAN, server_compute_ns=160 * MS)).code == "offered-load"


@pytest.mark.parametrize(
    ("receive_ms", "code"), [(41.0, "nagle"), (38.0, "nagle"), (37.0, "inconclusive"), (60.0, "inconclusive")]
)
def test_the_second_part_of_an_answer_that_waits_for_an_acknowledgement(receive_ms: float, code: str) -> None:
    run = answered(receive_ms, receive_ms + 8, {}, response_bytes=2_199.0, network_ns=0.0)
    limit = named(run)
    assert limit.code == code
    if code == "nagle":
        assert "as long as an acknowledgement is held back" in limit.evidence
        assert limit.advice.startswith("Set TCP_NODELAY in the server")


def test_over_a_path_as_long_as_that_it_may_be_a_round_trip() -> None:
    far = {"rtt_ns": 41 * MS, "min_rtt_ns": 40 * MS}
    assert named(answered(41, 49, far, response_bytes=2_199.0, network_ns=0.0)).code == "inconclusive"


def test_a_sidecar_whose_link_is_full() -> None:
    limit = named(behind_a_sidecar())
    assert limit.code == "server-intake"
    assert limit.evidence == (
        "the receiver's window was full for 85.0 % of the time in which connections had something to send; "
        "1,400 kB waited to be sent on each"
    )
    assert limit.advice.startswith("Find what reads the requests slowly: a proxy or sidecar")


def test_a_server_that_reads_slowly_over_a_long_path_closes_a_window_that_is_large_enough() -> None:
    slow = WAN | {"window_bytes": 600_000.0, "wire_bytes_per_s": 4e6}
    assert named(behind_a_sidecar(slow)).code == "server-intake"


def test_a_small_receive_buffer_on_a_long_path_is_used_up_in_each_round_trip() -> None:
    """Four connections with 32 KB each over 14 ms carry 9.4 MB a second."""
    small = WAN | {"window_bytes": 32_768.0, "wire_bytes_per_s": 4 * 32_768 / 0.014}
    limit = named(behind_a_sidecar(small))
    assert limit.code == "connections"
    assert "the receiver's window for 85.0 % of that" in limit.evidence


def test_a_server_without_room_reads_slowly_because_of_that() -> None:
    assert named(behind_a_sidecar(server_busy=0.95)).code == "server-compute"


@pytest.mark.parametrize("changes", [{"server_busy": 0.95}, {"unexplained_ns": -36 * MS}])
def test_an_answer_that_is_sent_while_the_server_works_on_it(changes: dict[str, Any]) -> None:
    streamed = {"server_parts": {"compute": 42 * MS}, "network_ns": 0.0, "response_bytes": 2_199.0}
    assert named(answered(42.5, 50, {}, **streamed | changes)).code not in ("nagle", "downlink")
    large = {**streamed, "response_bytes": 70_000.0, "server_parts": {"compute": 300 * MS}}
    assert named(answered(300, 330, WAN, **large | changes)).code not in ("nagle", "downlink")


def test_over_a_short_path_it_may_be_the_server_that_writes_slowly() -> None:
    lan = {"rtt_ns": 0.25 * MS, "min_rtt_ns": 0.2 * MS}
    assert named(answered(300, 330, lan, response_bytes=70_000.0)).code == "inconclusive"


def test_a_closed_window_that_costs_little_is_not_the_limit() -> None:
    held = {"rwnd_share": 0.7, "busy_share": 0.6}
    assert named(at_server(80, 10, 100, path=held, server_busy=0.75, level=16)).code != "server-intake"
    assert named(at_server(0, 45, 50, path=held, server_busy=None)).code == "server-compute"
