"""When the path is the limit: the link is full, or few connections leave it empty."""

from dataclasses import replace
from typing import Any

import pytest

from reports.limit import Limit
from reports.limits.path import (
    few_connections,
    fills_windows,
    link,
    window_use,
    windows_needed,
)
from reports.limits.rules import limit_of
from reports.summary.link import link_rate
from reports.summary.summary import Summary
from tests.reports.limit_runs import MS, a_run, on_path
from tests.reports.limits.test_rules import code_of

GRPC = {"protocol": "grpc", "endpoint": "emulated-grpc", "channels": "shared"}
LOSSY = {"retransmits": 28, "segments_out": 40_000}
ALONE = {"connections": 1, "wire_bytes_per_s": 7.4 * 602_289 * 1.05}
"""What one connection carries at 14 ms and 0.07 % loss: 7.4 images a second."""
MANY = {"level": 16, "in_flight": 16.0}
FULL_BYTES_PER_S = 42 * 602_289 * 1.03
"""What sixteen carry over 210 Mbit/s: 42 images a second."""
SILENT = {"server_queue_ns": None, "server_compute_ns": None, "server_other_ns": None}


def shared(path: dict[str, Any] | None = None, **changes: Any) -> Summary:
    """Sixteen users on the channel that gRPC gives them all, over a long path that loses segments."""
    return on_path(2_150, ALONE | LOSSY | (path or {}), **GRPC | MANY | changes)


def narrow(path: dict[str, Any] | None = None, rtt_ms: float = 60.0, **changes: Any) -> Summary:
    """Sixteen users with a connection each on a link that they fill, whose buffer holds 46 ms."""
    windows = {"rtt_ns": rtt_ms * MS, "cwnd_bytes": FULL_BYTES_PER_S / 16 * rtt_ms / 1e3}
    full = {"connections": 16, "wire_bytes_per_s": FULL_BYTES_PER_S} | windows
    return on_path(375, full | (path or {}), **MANY | changes)


def named(run: Summary, code: str) -> Limit:
    limit = limit_of(run)
    assert limit is not None
    assert limit.code == code
    return limit


def test_sixteen_users_on_one_channel() -> None:
    limit = named(shared(), "connections")
    assert limit.evidence == (
        "16.0 requests under way on 1 connection, busy 98.0 % of the time and held by the congestion window "
        "of 66.6 kB; round trips took 14.5 ms and at best 14.0 ms; "
        "28 segments (0.0700 %) were retransmitted; the path took 2,150 of 2,160 ms a request"
    )
    assert limit.advice == "Give each user its own channel: --channels per-user."


def test_sixteen_http_users_on_one_connection_are_advised_alike() -> None:
    limit = named(shared(protocol="http", channels="shared"), "connections")
    assert limit.advice == "Give each user its own connection: --channels per-user."


def test_few_connections_need_no_loss_to_be_few_where_the_link_is_known_to_have_room() -> None:
    """Without a loss their windows may be kept small by a link that is full and marks segments (ECN)."""
    limit = named(shared({"retransmits": 0}, link_bytes_per_s=1_000e6 / 8), "connections")
    assert "retransmitted" not in limit.evidence
    assert code_of(shared({"retransmits": 0})) == "inconclusive"


def test_one_lossy_connection_for_each_user() -> None:
    path = ALONE | LOSSY | {"wire_bytes_per_s": 6.6 * 602_289 * 1.05}
    limit = named(on_path(146, path, level=1, in_flight=1.0), "connections")
    assert limit.advice.startswith("Use more users or workers")


@pytest.mark.parametrize(
    ("lost", "code"),
    [
        ({"retransmits": 2, "segments_out": 2_000}, "offered-load"),  # by chance
        ({"retransmits": 3, "segments_out": 31_000}, "offered-load"),  # fewer than one in ten thousand
        ({"retransmits": 3, "segments_out": 29_000}, "connections"),
    ],
)
def test_as_many_connections_as_users_and_next_to_no_loss(lost: dict[str, Any], code: str) -> None:
    assert code_of(on_path(146, ALONE | lost, level=1, in_flight=1.0)) == code


@pytest.mark.parametrize(
    "path",
    [
        {"busy_share": 0.4},
        {"cwnd_bytes": 5_000_000.0},  # nothing near full
        {"rtt_ns": 0.2 * MS, "min_rtt_ns": 0.02 * MS, "wire_bytes_per_s": 900e6, "cwnd_bytes": 250_000.0},
    ],
)
def test_a_shared_channel_that_is_not_held_up(path: dict[str, Any]) -> None:
    """On a loopback too a window is full for the while that the receiver's thread takes to be scheduled."""
    assert code_of(shared(path)) == "inconclusive"


def test_a_shared_channel_that_is_held_up_on_a_short_path() -> None:
    short = {"rtt_ns": 0.55 * MS, "min_rtt_ns": 0.5 * MS, "cwnd_bytes": 56_000.0, "wire_bytes_per_s": 95e6}
    assert code_of(shared(short)) == "connections"


def test_a_shared_channel_before_a_server_without_room() -> None:
    assert code_of(shared(server_busy=0.95)) == "server-compute"


def test_a_picture_that_fits_in_a_window_waits_only_for_the_round_trip() -> None:
    path = LOSSY | {"connections": 16, "cwnd_bytes": 14_480.0, "wire_bytes_per_s": 16 * 14_000 / 0.02}
    run = on_path(15, path, **MANY, request_bytes=13_400.0)
    assert run.path is not None
    assert window_use(run, run.path) == pytest.approx(0.715, abs=0.001)
    assert windows_needed(run, run.path) == pytest.approx(0.925, abs=0.001)
    assert not fills_windows(run, run.path)
    assert code_of(run) == "offered-load"


@pytest.mark.parametrize(
    ("share", "said"),
    [
        ("rwnd_share", "the receiver's window for 80.0 % of that"),
        ("sndbuf_share", "the send buffer for 80.0"),
    ],
)
def test_a_buffer_at_an_end_is_named(share: str, said: str) -> None:
    assert said in named(shared({share: 0.8, "retransmits": 0}), "connections").evidence


def test_a_receiver_that_reads_slowly_on_the_same_host_is_no_connection() -> None:
    near = {"rtt_ns": 0.2 * MS, "min_rtt_ns": 0.02 * MS, "rwnd_share": 0.8, "retransmits": 0}
    assert code_of(shared(near)) == "server-intake"


def test_heavy_loss_holds_up_the_shortest_path() -> None:
    lossy = {"rtt_ns": 0.1 * MS, "min_rtt_ns": 0.02 * MS, "retransmits": 400, "segments_out": 40_000}
    assert "400 segments (1.00 %)" in named(shared(lossy), "connections").evidence


def test_few_connections_are_seen_beside_a_silent_server() -> None:
    assert code_of(shared(**SILENT, server_busy=None, server_parts={})) == "connections"


@pytest.mark.parametrize(
    ("sent_mbit", "code"), [(177, "inconclusive"), (179, "link"), (208, "link")]
)  # 85 % of 210 are 178.5
def test_a_link_at_its_known_rate(sent_mbit: float, code: str) -> None:
    known = {"wire_bytes_per_s": sent_mbit * 1e6 / 8}
    run = narrow(known, 20.0, link_bytes_per_s=210e6 / 8, unexplained_ns=400 * MS)
    assert code_of(run) == code


def test_the_evidence_of_a_link_at_its_known_rate() -> None:
    limit = named(narrow(link_bytes_per_s=210e6 / 8), "link")
    assert limit.evidence == "208 of the link's 210 Mbit/s were sent (99.3 %)"
    assert limit.advice.startswith("Send fewer bytes")


def test_a_link_that_answers_fill() -> None:
    back = {"wire_bytes_per_s": 1e6, "bytes_received": 125_000_000, "segments_in": 90_000}
    run = a_run(path=back, link_bytes_per_s=100e6 / 8, measure_ns=10_000 * MS)
    assert named(run, "link").evidence == "105 of the link's 100 Mbit/s were received (105 %)"


def test_a_full_link_is_not_what_holds_requests_up_that_are_at_the_server() -> None:
    assert link(a_run(link_bytes_per_s=125e6, server_compute_ns=10.6 * MS)) is None


def test_a_queue_before_a_link_of_unknown_rate() -> None:
    limit = named(narrow(), "link")
    assert limit.evidence == (
        "round trips took 60.0 ms and at best 14.0 ms: a queue builds up on the path at 208 Mbit/s sent; "
        "the path took 375 of 380 ms a request"
    )
    assert "--link-mbit" in limit.advice


@pytest.mark.parametrize(
    ("rtt_ms", "least_ms", "path", "code"),
    [
        (28.0, 14.0, {}, "link"),
        (27.9, 14.0, {}, "inconclusive"),  # neither near its least nor twice it
        (18.3, 14.0, LOSSY, "inconclusive"),
        (18.2, 14.0, LOSSY, "inconclusive"),  # a policer drops segments of several connections, too
        (18.2, 14.0, {}, "offered-load"),
        (5.1, 0.05, {}, "link"),  # a narrow link to the next room
        (4.9, 0.05, {}, "inconclusive"),
        (60.0, 14.0, {"cwnd_bytes": 800_000.0}, "inconclusive"),  # little of the windows is under way
    ],
)
def test_a_queue_is_told_from_loss_by_the_round_trip(
    rtt_ms: float, least_ms: float, path: dict[str, Any], code: str
) -> None:
    assert code_of(narrow({"min_rtt_ns": least_ms * MS, **path}, rtt_ms)) == code


def test_a_requests_own_queue_leaves_the_link_room() -> None:
    """One user, 210 Mbit/s: 602 KB leave at once, and the link has taken them before the next request."""
    path = {"connections": 1, "rtt_ns": 34.7 * MS, "min_rtt_ns": 14.2 * MS, "busy_share": 0.84}
    path |= {"cwnd_bytes": 612_504.0, "wire_bytes_per_s": 13.55e6, "delivery_bytes_per_s": 25.4e6}
    run = on_path(39, path, level=1, in_flight=1.0)
    assert code_of(run) == "offered-load"
    steady = on_path(39, path | {"delivery_bytes_per_s": 16.2e6}, level=1, in_flight=1.0)
    assert code_of(steady) == "link"


def test_what_would_tell_a_queue_from_loss() -> None:
    limit = named(narrow(rtt_ms=24.0), "inconclusive")
    assert limit.evidence == (
        "round trips took 24.0 ms and at best 14.0 ms, with full windows: a full link or few connections"
    )
    assert limit.advice.startswith("Give the link's rate with --link-mbit")


def test_a_held_back_acknowledgement_is_no_queue() -> None:
    """One user, 13 KB a request: the server's kernel acknowledges the last bytes 40 ms after they came."""
    path = {"connections": 1, "rtt_ns": 38.0 * MS, "min_rtt_ns": 0.02 * MS, "busy_share": 0.9}
    path |= {"cwnd_bytes": 655_000.0, "wire_bytes_per_s": 14_000 / 0.045}
    one = {"level": 1, "in_flight": 1.0, "latency_p95_ns": 46 * MS, "request_bytes": 13_400.0}
    silent = {**SILENT, "server_busy": None, "server_parts": {}}
    run = on_path(40, path, **one | silent, unexplained_ns=4 * MS)
    assert code_of(run) == "inconclusive"
    assert link(run) is None
    assert few_connections(run) is None


def test_without_the_kernels_word_nothing_is_said_of_connections() -> None:
    run = shared()
    assert link(a_run(server_busy=0.1)) is None
    assert few_connections(run) is not None
    for name in ("rtt_ns", "cwnd_bytes", "wire_bytes_per_s"):
        assert few_connections(shared({name: None})) is None


def test_a_full_connection_is_named_though_a_library_holds_back_what_is_nowhere_measured() -> None:
    """grpcio hands over what the kernel takes: 3 of 16 requests are seen, and 11 wait in the library."""
    full = {"unacked_bytes": 50_000.0, "not_sent_bytes": 1_700_000.0}
    limit = named(shared(full, network_ns=515 * MS, unexplained_ns=1_640 * MS), "connections")
    assert limit.evidence.endswith("1,700 kB waited to be sent on each")
    assert limit.advice == "Give each user its own channel: --channels per-user."


@pytest.mark.parametrize(
    "path",
    [
        {"not_sent_bytes": 10_000.0},  # less than a window waits
        {"unacked_bytes": 20_000.0, "not_sent_bytes": 1_700_000.0},  # windows are mostly empty
        {"unacked_bytes": 50_000.0, "not_sent_bytes": 1_700_000.0, "busy_share": 0.8},
    ],
)
def test_what_is_left_over_is_no_evidence_for_few_connections(path: dict[str, Any]) -> None:
    limit = named(shared(path, network_ns=515 * MS, unexplained_ns=1_640 * MS), "inconclusive")
    assert limit.evidence.startswith("the largest part is unexplained: 1,640 ms")


def test_sixteen_users_of_one_channel_before_a_front_end_that_nobody_measures() -> None:
    """On a loopback the kernel has the bytes acknowledged at once, and they wait for 100 ms behind it."""
    times = dict.fromkeys(("latency_mean_ns", "service_mean_ns", "latency_p95_ns"), 106.0 * MS)
    near = {"connections": 1, "busy_share": 0.97, "unacked_bytes": 0.0, "not_sent_bytes": 0.0}
    run = a_run(
        path=near,
        **GRPC | MANY | times,
        network_ns=0.1 * MS,
        network_most_ns=96 * MS,
        unexplained_ns=100 * MS,
    )
    limit = named(run, "inconclusive")
    assert limit.evidence == (
        "the largest part is unexplained: 100 ms beside a latency of 106 ms, "
        "of which up to 95.9 ms may be the network's"
    )


def test_one_http_connection_takes_one_request_at_a_time() -> None:
    times = dict.fromkeys(("latency_mean_ns", "service_mean_ns", "latency_p95_ns"), 492.0 * MS)
    run = a_run(
        path={"connections": 1}, level=8, in_flight=8.0, channels="shared", **times, send_ns=430 * MS,
        network_ns=1 * MS, unexplained_ns=1 * MS, server_compute_ns=58 * MS,
    )  # fmt: skip
    limit = named(run, "connections")
    assert limit.evidence == (
        "8.00 requests under way on 1 connection, which take one at a time; "
        "430 of 492 ms passed before a request was sent"
    )
    assert limit.advice == "Give each user its own connection: --channels per-user."
    assert code_of(replace(run, level=1)) == "inconclusive"  # a lone request that is long in sending
    assert code_of(replace(run, protocol="grpc")) == "inconclusive"  # HTTP/2 takes many


BBR = {"bbr_share": 1.0, "busy_share": 0.97, "not_sent_bytes": 200_000.0, "pacing_bytes_per_s": 1.7e6}


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ({"delivery_bytes_per_s": 1.6e6}, "link"),
        ({"delivery_bytes_per_s": 1.1e6}, "inconclusive"),  # less than it was let go at
        ({"delivery_bytes_per_s": 1.6e6, "rwnd_share": 0.9}, "connections"),  # a pace that this has set
        ({"delivery_bytes_per_s": 1.6e6, "not_sent_bytes": 0.0}, "offered-load"),  # it had no more to send
        ({"delivery_bytes_per_s": 1.6e6, "bbr_share": 0.0}, "inconclusive"),
    ],
)
def test_bbr_fills_a_link_without_a_queue(path: dict[str, Any], code: str) -> None:
    run = narrow(BBR | path, 18.0, server_busy=0.1)
    assert code_of(run) == code
    if code == "link":
        assert named(run, code).evidence.startswith("BBR paced each of 16 connections at 13.6 Mbit/s")
        assert named(run, code).advice.startswith("Send fewer bytes")


def test_a_rate_of_the_card_does_not_hide_the_queue_before_a_narrower_link() -> None:
    limit = named(narrow(link_bytes_per_s=10_000e6 / 8), "link")
    assert limit.evidence.startswith("round trips took 60.0 ms and at best 14.0 ms: a queue builds up")


def test_the_rate_of_a_link_is_that_of_each_host() -> None:
    """Four hosts with links of 210 Mbit/s each carry 208 together."""
    run = narrow(rtt_ms=18.2, link_bytes_per_s=210e6 / 8, hosts=4)
    assert link(run) is None
    full = narrow({"wire_bytes_per_s": 4 * FULL_BYTES_PER_S}, 18.2, link_bytes_per_s=210e6 / 8, hosts=4)
    assert named(full, "link").evidence == "834 of the links' 840 Mbit/s were sent (99.3 %)"


def test_a_rate_that_is_exceeded_was_told_wrongly() -> None:
    run = narrow(rtt_ms=18.2, link_bytes_per_s=130e6 / 8)
    assert link_rate(run) is None
    assert code_of(run) == "offered-load"
    assert code_of(narrow(link_bytes_per_s=130e6 / 8)) == "link"  # by its queue


def test_segments_that_a_policer_drops_look_like_those_of_a_lossy_path() -> None:
    limit = named(narrow(LOSSY, 18.2), "inconclusive")
    assert limit.evidence == (
        "28 segments (0.0700 %) were retransmitted on several connections: a lossy path and a policed rate "
        "look alike"
    )
    assert "--link-mbit" in limit.advice
    assert code_of(narrow(LOSSY, 18.2, link_bytes_per_s=210e6 / 8)) == "link"
    assert code_of(narrow(LOSSY, 18.2, link_bytes_per_s=1_000e6 / 8)) == "connections"


def test_a_policer_drops_what_is_sent_again_before_the_link() -> None:
    """49 Mbit/s leave the client, a fifth of which are dropped: 39 pass a link of 40."""
    again = {
        "wire_bytes_per_s": 49e6 / 8,
        "bytes_sent": 1_000,
        "bytes_retransmitted": 205,
        "retransmits": 900,
    }
    limit = named(narrow(again, 18.2, link_bytes_per_s=40e6 / 8), "link")
    assert limit.evidence == "39.0 of the link's 40.0 Mbit/s were sent (97.4 %)"
