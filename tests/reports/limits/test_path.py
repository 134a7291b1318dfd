"""When the path is the limit: the link is full, or few connections leave it empty."""

from dataclasses import replace
from typing import Any

import pytest

from reports.caveat import caveat
from reports.fold.path import Path
from reports.limits.path import (
    few_connections,
    fills_windows,
    link,
    long,
    near_least,
    shares_connections,
    shows_room,
    window_use,
    windows_needed,
)
from reports.limits.rules import limit_of
from reports.summary.link import link_rate
from reports.summary.summary import Summary
from tests.reports.limit_runs import MS, a_run, named, on_path
from tests.reports.limits.test_rules import code_of
from tests.reports.parts import changed

GRPC = {"protocol": "grpc", "endpoint": "emulated-grpc", "channels": "shared"}
LOSSY = {"retransmits": 28, "segments_out": 40_000}
ALONE = {"connections": 1, "wire_bytes_per_s": 7.4 * 602_289 * 1.05}
"""What one connection carries at 14 ms and 0.07 % loss: 7.4 images a second."""
MANY = {"level": 16, "in_flight": 16.0}
FULL_BYTES_PER_S = 42 * 602_289 * 1.03
"""What sixteen carry over 210 Mbit/s: 42 images a second."""
SILENT: dict[str, Any] = {"server_parts": {}, "server_busy": None}
LESS = "Send fewer bytes (JPEG, not float32), or use a faster link: more connections would not help."
OWN_CHANNEL = "Give each user its own channel: --channels per-user."
OWN_CONNECTION = "Give each user its own connection: --channels per-user."
MORE_USERS = "Use more users or workers, and so more connections: each carries only what its window allows."
TOLD = "Give the link's rate with --link-mbit, then run again."


def shared(path: dict[str, Any] | None = None, **changes: Any) -> Summary:
    """Sixteen users on the channel that gRPC gives them all, over a long path that loses segments."""
    return on_path(2_150, ALONE | LOSSY | (path or {}), **GRPC | MANY | changes)


def narrow(path: dict[str, Any] | None = None, rtt_ms: float = 60.0, **changes: Any) -> Summary:
    """Sixteen users with a connection each on a link that they fill, whose buffer holds 46 ms."""
    windows = {"rtt_ns": rtt_ms * MS, "cwnd_bytes": FULL_BYTES_PER_S / 16 * rtt_ms / 1e3}
    full = {"connections": 16, "wire_bytes_per_s": FULL_BYTES_PER_S} | windows
    return on_path(375, full | (path or {}), **MANY | changes)


def test_sixteen_users_on_one_channel() -> None:
    limit = named(shared(), "connections")
    assert limit.evidence == (
        "16.0 requests under way on 1 connection, busy 98.0 % of the time and held by the congestion window "
        "of 66.6 kB; round trips took 14.5 ms and at best 14.0 ms; "
        "28 segments (0.0700 %) were retransmitted; the path took 2,150 of 2,160 ms a request"
    )
    assert limit.advice == OWN_CHANNEL
    near = {"rtt_ns": None, "busy_share": None, "rwnd_share": 0.8}
    limit = named(shared(near, link_bytes_per_s=1_000e6 / 8), "connections")
    assert limit.evidence == (
        "16.0 requests under way on 1 connection and held by the receiver's window for 80.0 % of that; "
        "28 segments (0.0700 %) were retransmitted; the path took 2,150 of 2,160 ms a request"
    )


@pytest.mark.parametrize(
    ("changes", "advice"),
    [
        ({"channels": "shared"}, OWN_CHANNEL),
        ({"channels": ""}, OWN_CHANNEL),
        ({"channels": "per-user"}, MORE_USERS),
        ({"protocol": "http", "channels": "shared"}, OWN_CONNECTION),
        ({"protocol": "http", "channels": ""}, MORE_USERS),
        ({"protocol": "http", "channels": "per-user"}, MORE_USERS),
        ({"level": 1, "in_flight": 1.0}, MORE_USERS),  # nobody shares it
    ],
)
def test_whose_connections_more_of_them_would_be(changes: dict[str, Any], advice: str) -> None:
    assert named(shared(**changes), "connections").advice == advice


def test_a_picture_that_fits_in_a_window_waits_only_for_the_round_trip() -> None:
    path = LOSSY | {"connections": 16, "cwnd_bytes": 14_480.0, "wire_bytes_per_s": 16 * 14_000 / 0.02}
    run = on_path(15, path, **MANY, request_bytes=13_400.0)
    assert run.path is not None
    assert window_use(run, run.path) == pytest.approx(0.715, abs=0.001)
    assert windows_needed(run, run.path) == pytest.approx(0.925, abs=0.001)
    assert not fills_windows(run, run.path)
    assert code_of(run) == "offered-load"
    always_busy = replace(run.path, busy_share=None)
    assert window_use(run, always_busy) == pytest.approx(0.98 * 0.715, abs=0.001)
    assert windows_needed(changed(run, path=None), run.path) == pytest.approx(0.925, abs=0.001)
    assert windows_needed(shared(), Path(cwnd_bytes=602_289.0)) == pytest.approx(16)


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ({"rwnd_share": 0.8, "sndbuf_share": 0.8}, "the receiver's window for 80.0 % of that; round"),
        ({"rwnd_share": 0.1, "sndbuf_share": 0.8}, "the send buffer for 80.0 % of that; round"),
        ({"retransmits": 200}, "held by the congestion window of 66.6 kB; round"),
        ({"retransmits": 200, "cwnd_bytes": None}, "held by the congestion window; round"),
    ],
)
def test_what_holds_connections_up_is_named(path: dict[str, Any], said: str) -> None:
    assert said in named(shared(path), "connections").evidence


def test_a_receiver_that_reads_slowly_on_the_same_host_is_no_connection() -> None:
    near = {"rtt_ns": 0.2 * MS, "min_rtt_ns": 0.02 * MS, "rwnd_share": 0.8, "retransmits": 0}
    assert code_of(shared(near)) == "server-intake"


@pytest.mark.parametrize(
    ("least_ms", "near_ms", "far_ms"),
    [(14, 18.2, 18.3), (2, 3.0, 3.1), (1, 2.0, 2.1), (0.9, 1.17, 1.18), (0.2, 0.3, 0.31)],
)
def test_how_much_longer_than_its_least_a_round_trip_without_a_queue_is(
    least_ms: float, near_ms: float, far_ms: float
) -> None:
    """By three tenths, or what scheduling at the ends adds: 1 ms, and 0.1 ms where the path is shorter."""
    near, far = (Path(min_rtt_ns=least_ms * MS, rtt_ns=rtt_ms * MS) for rtt_ms in (near_ms, far_ms))
    assert (near_least(near), near_least(far)) == (True, False)
    assert not near_least(replace(near, rtt_ns=None))
    assert not near_least(replace(near, min_rtt_ns=None))


def test_a_path_is_as_long_as_its_least_round_trip() -> None:
    assert [long(Path(min_rtt_ns=least_ms * MS, rtt_ns=9 * MS)) for least_ms in (0.9, 1.0)] == [False, True]
    assert [long(Path(rtt_ns=mean_ms * MS)) for mean_ms in (0.9, 1.0)] == [False, True]
    assert not long(Path())


def test_a_connection_shows_room_that_is_a_fifth_faster_than_all_are_on_average() -> None:
    rates = [(120e6, 100e6), (119e6, 100e6), (None, 100e6), (120e6, None)]
    paths = [Path(delivery_bytes_per_s=fastest, wire_bytes_per_s=rate) for fastest, rate in rates]
    assert [shows_room(path) for path in paths] == [True, False, False, False]


@pytest.mark.parametrize(("seen", "shared"), [(11, True), (12, False), (0, False), (None, False)])
def test_requests_share_connections_of_which_there_are_less_than_three_quarters(
    seen: int | None, shared: bool
) -> None:
    run = a_run(path={"connections": seen}, measure_ns=None, **MANY)
    assert shares_connections(run) is shared
    assert not shares_connections(changed(run, in_flight=None, load="open"))


def test_the_evidence_of_a_link_at_its_known_rate() -> None:
    limit = named(narrow(link_bytes_per_s=210e6 / 8), "link")
    assert limit.evidence == "208 of the link's 210 Mbit/s were sent (99.3 %)"
    assert limit.advice == LESS


def test_a_link_that_answers_fill() -> None:
    back = {"wire_bytes_per_s": 1e6, "bytes_received": 125_000_000, "segments_in": 90_000}
    run = a_run(path=back, link_bytes_per_s=100e6 / 8, measure_ns=10_000 * MS)
    assert named(run, "link").evidence == "105 of the link's 100 Mbit/s were received (105 %)"


def test_a_queue_before_a_link_of_unknown_rate() -> None:
    limit = named(narrow(), "link")
    assert limit.evidence == (
        "round trips took 60.0 ms and at best 14.0 ms: a queue builds up on the path at 208 Mbit/s sent; "
        "the path took 375 of 380 ms a request"
    )
    assert limit.advice == f"{LESS} With --link-mbit the rate itself can be judged."


TOLD_RATE: dict[str, Any] = {"link_bytes_per_s": 210e6 / 8, "unexplained_ns": 400 * MS}
ROOM = {"link_bytes_per_s": 125e6}
ONE_USER = {"level": 1, "in_flight": 1.0}
LOST_FEW = on_path(146, ALONE | {"retransmits": 3, "segments_out": 30_000}, **ONE_USER)
TWO_WINDOWS = on_path(146, ALONE | LOSSY | {"wire_bytes_per_s": 12e6}, **ONE_USER)
CLEAN = {"retransmits": 0}
NEARLY_LONG = {"rtt_ns": 0.1 * MS, "min_rtt_ns": 0.1 * MS, "wire_bytes_per_s": 500e6}
LOOPBACK = {"rtt_ns": 0.1 * MS, "min_rtt_ns": 0.02 * MS, "retransmits": 400}
BBR = {"bbr_share": 1.0, "busy_share": 0.97, "not_sent_bytes": 200_000.0, "pacing_bytes_per_s": 1.7e6}
BBR |= {"delivery_bytes_per_s": 1.6e6}
PACED = narrow(BBR, 18.0, server_busy=0.1)
WINDOW_BYTES = FULL_BYTES_PER_S / 16 * 0.06
LATE = {"unexplained_ns": 900 * MS}


@pytest.mark.parametrize(
    ("code", "run", "figure", "at", "beyond"),
    [
        ("link", narrow({}, 20.0, **TOLD_RATE), "path.wire_bytes_per_s", 178.5e6 / 8, 178.4e6 / 8),  # 85 %
        ("link", a_run(**ROOM), "server_compute_ns", 9.5 * MS, 9.6 * MS),  # of 20, beside 0.4
        ("link", narrow(), "path.busy_share", 0.5, 0.49),
        ("link", narrow(), "network_ns", 190 * MS, 189 * MS),  # half of the time
        ("link", narrow(), "server_busy", 0.79, 0.8),
        ("link", narrow(), "path.cwnd_bytes", 5 * WINDOW_BYTES, 5.2 * WINDOW_BYTES),  # a fifth is under way
        ("link", narrow(), "path.cwnd_bytes", None, 800_000.0),
        ("link", narrow(), "path.delivery_bytes_per_s", None, 1.2 * FULL_BYTES_PER_S),  # each request's own
        ("link", narrow(), "path.min_rtt_ns", 30 * MS, None),
        ("link", narrow(), "path.rtt_ns", 28 * MS, 27.9 * MS),
        ("link", narrow({"min_rtt_ns": 0.05 * MS}, 5.1), "path.rtt_ns", 5.1 * MS, 5 * MS),  # to the next room
        ("link", narrow(), "caveats", (), (caveat("path-gap", "half was seen"),)),
        ("link", PACED, "path.delivery_bytes_per_s", 1.275e6, 1.274e6),
        ("link", PACED, "path.delivery_bytes_per_s", 1.6e6, 1.2 * FULL_BYTES_PER_S),  # one alone is faster
        ("link", narrow(BBR | {"rwnd_share": 0.3}, 18.0), "path.sndbuf_share", 0.19, 0.2),  # these set it
        ("link", PACED, "path.bbr_share", 0.5, 0.49),
        ("link", PACED, "path.busy_share", 0.85, 0.84),
        ("link", PACED, "path.not_sent_bytes", 1.0, 0.0),  # it had no more to send
        ("link", narrow(BBR, 1.0), "path.min_rtt_ns", 1.0 * MS, 0.9 * MS),
        ("link", PACED, "server_busy", 0.79, 0.8),
        ("connections", LOST_FEW, "path.segments_out", 30_000, 30_001),
        ("connections", LOST_FEW, "path.retransmits", 3, 2),
        ("connections", LOST_FEW, "path.connections", 1, 2),
        ("connections", TWO_WINDOWS, "path.cwnd_bytes", 301_144.0, 301_146.0),
        ("connections", shared(), "path.busy_share", 0.5, 0.49),
        ("connections", shared(), "path.cwnd_bytes", 66_600.0, 5_000_000.0),
        ("connections", shared(NEARLY_LONG), "path.min_rtt_ns", 0.1 * MS, 0.09 * MS),  # shared by 16
        ("connections", shared(LOOPBACK), "path.retransmits", 200, 199),
        ("connections", shared(), "server_busy", 0.79, 0.8),
        ("connections", shared(**LATE), "network_ns", 1_078 * MS, 1_077 * MS),  # half of the time
        ("connections", shared(CLEAN), "link_bytes_per_s", 125e6, None),  # a full one may mark segments (ECN)
        ("connections", shared(CLEAN), "path.rwnd_share", 0.5, 0.49),
        ("connections", shared(CLEAN), "path.sndbuf_share", 0.5, 0.49),
        ("connections", shared(), "path.rtt_ns", 18.2 * MS, 18.3 * MS),  # a queue may stand on the way
        ("connections", shared({"rtt_ns": 18.3 * MS}), "link_bytes_per_s", 125e6, None),
        ("connections", shared({"rtt_ns": 18.3 * MS}), "path.delivery_bytes_per_s", 7e6, 4e6),
        ("connections", shared(), "path.rtt_ns", 14.5 * MS, None),
    ],
)
def test_where_the_path_is_the_limit(code: str, run: Summary, figure: str, at: Any, beyond: Any) -> None:
    assert code_of(changed(run, **{figure: at})) == code
    assert code_of(changed(run, **{figure: beyond})) != code


@pytest.mark.parametrize(
    ("run", "code"),
    [
        (narrow({}, 18.3), "inconclusive"),  # neither near its least nor twice it
        (narrow({}, 18.2), "offered-load"),
        (narrow(LOSSY, 18.2), "inconclusive"),  # a policer drops segments of several connections, too
        (narrow({"busy_share": None}), "link"),
        (narrow(BBR | {"rwnd_share": 0.9}, 18.0), "connections"),  # a pace that this has set
        (shared(server_busy=0.95), "server-compute"),
        # On a loopback too a window is full for the while that the receiver's thread takes to be scheduled.
        (shared(LOOPBACK | LOSSY | {"wire_bytes_per_s": 900e6, "cwnd_bytes": 250_000.0}), "inconclusive"),
        (shared(**SILENT), "connections"),
        (narrow(LOSSY, 18.2, server_busy=0.8), "server-compute"),
    ],
)
def test_what_else_says_whether_the_path_is_it(run: Summary, code: str) -> None:
    assert code_of(run) == code


def test_what_would_tell_a_queue_from_loss() -> None:
    limit = named(narrow(rtt_ms=24.0), "inconclusive")
    assert limit.evidence == (
        "round trips took 24.0 ms and at best 14.0 ms, with full windows: a full link or few connections"
    )
    assert limit.advice == TOLD


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
    assert "calls stand behind" not in limit.evidence


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
    assert limit.advice == OWN_CONNECTION
    assert code_of(replace(run, level=1)) == "inconclusive"  # a lone request that is long in sending
    assert code_of(replace(run, protocol="grpc")) == "inconclusive"  # HTTP/2 takes many
    assert few_connections(changed(run, send_ns=246 * MS)) is not None  # half of the time
    assert few_connections(changed(run, send_ns=245 * MS)) is None
    full = {"busy_share": 0.97, "unacked_bytes": 900_000.0, "not_sent_bytes": 1_700_000.0}
    assert few_connections(changed(run, path=replace(run.path or Path(), **full))) is None


def test_the_evidence_of_a_link_that_bbr_fills() -> None:
    limit = named(narrow(BBR, 18.0), "link")
    assert limit.evidence == (
        "BBR paced each of 16 connections at 13.6 Mbit/s, and 12.8 were delivered, busy 97.0 % of the time"
    )
    assert limit.advice == LESS
    assert "BBR paced its one connection at" in named(narrow(BBR | {"connections": 1}, 18.0), "link").evidence


def test_a_rate_of_the_card_does_not_hide_the_queue_before_a_narrower_link() -> None:
    limit = named(narrow(link_bytes_per_s=10_000e6 / 8), "link")
    assert limit.evidence.startswith("round trips took 60.0 ms and at best 14.0 ms: a queue builds up")
    assert limit.advice == LESS


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
    assert limit.advice == TOLD
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


STARTS: dict[str, Any] = {"starts": 1_000, "start_window_bytes": 74_000.0, "start_round_trips": 3_000}


@pytest.mark.parametrize(
    ("path", "changes", "code"),
    [
        ({}, {}, "slow-start"),
        ({"start_round_trips": 2_000}, {}, "slow-start"),  # 28 of 65 ms
        ({"start_round_trips": 1_000}, {}, None),
        ({"start_round_trips": None}, {}, None),
        ({"min_rtt_ns": None}, {}, None),
        ({"min_rtt_ns": 0.9 * MS, "start_round_trips": 40_000}, {}, None),
        ({}, {"think": "1"}, "slow-start"),
        ({}, {"server_busy": 0.85}, None),
        ({}, {"server_compute_ns": 43 * MS}, None),
    ],
)
def test_a_window_that_is_small_at_each_request_is_slow_start(
    path: dict[str, Any], changes: dict[str, Any], code: str | None
) -> None:
    idle = STARTS | {"busy_share": 0.2} | path
    limit = limit_of(on_path(60, idle, request_bytes=602_112.0, **changes))
    assert limit is not None
    assert (limit.code == "slow-start") is (code is not None), limit
    if code and not path:
        assert "602 kB began with a congestion window of 74.0 kB" in limit.evidence
        assert "3.00 more round trips, 42.0 of 65.0 ms" in limit.evidence
        assert "tcp_slow_start_after_idle=0" in limit.advice
