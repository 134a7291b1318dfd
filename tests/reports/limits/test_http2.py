"""When HTTP/2's windows or its limit of streams hold calls up, and what looks like them and is not."""

from dataclasses import replace
from typing import Any

import pytest

from reports.fold.http2 import Http2
from reports.fold.server import Executed
from reports.limit import Limit
from reports.limits.http2 import closed_windows, streams, withheld
from reports.limits.neighbours import UNTESTED, among_neighbours
from reports.limits.rules import limit_of
from reports.summary.summary import Summary
from tests.reports.limit_runs import MS, a_run, named
from tests.reports.limits.test_rules import code_of
from tests.reports.parts import changed

GRPC = {"protocol": "grpc", "endpoint": "emulated-grpc", "cell": "emulated-grpc/b1/c4"}
ALL_FREE = dict.fromkeys(
    ("stream_waits", "stream_stalls", "stream_stalled_ns", "connection_stalls", "connection_stalled_ns"), 0
)
SMALL = ALL_FREE | {"connections": 4, "streams": 1, "streams_allowed": 128, "stream_window_bytes": 65_536}
SMALL |= {"connection_waited_ns": 0, "pings": 40, "ping_ns": 21.0 * MS, "ping_min_ns": 20.2 * MS}
"""nginx's: 602 kB are ten windows of 64 KB, so that each of 1,000 calls stands still nine times."""
ONE_WINDOW = {"stream_stalls": 0, "stream_stalled_ns": 0, "connection_stalls": 9_000}
ONE_WINDOW |= {"connection_stalled_ns": 9_000 * 20 * MS, "connection_waited_ns": 9_000 * 20 * MS}
"""The same of connections' windows, with streams' larger ones."""
FAR = {"rtt_ns": 20.5 * MS, "min_rtt_ns": 20.0 * MS, "busy_share": 0.9, "cwnd_bytes": 130_000.0}
FAR |= {"not_sent_bytes": 0.0, "unacked_bytes": 60_000.0, "wire_bytes_per_s": 9.8e6, "segments_out": 40_000}
UNSEEN = {"rtt_ns": None, "min_rtt_ns": None}
ONE_CHANNEL = {**GRPC, "channels": "shared", "level": 16, "in_flight": 16.0, "cell": "emulated-grpc/b1/c16"}


def timed(latency_ms: float, **parts_ms: float) -> dict[str, Any]:
    """Figures of a mean latency and some of its parts in milliseconds, every other one being 0."""
    names = ("stream_wait", "flow_wait", "send", "receive", "network", "unexplained")
    whole = dict.fromkeys(("latency_mean_ns", "service_mean_ns", "latency_p95_ns"), latency_ms * MS)
    return {**whole, **{f"{name}_ns": parts_ms.get(name, 0.0) * MS for name in names}, "measure_ns": None}


def small_windows(
    stall_ms: float = 20.0, http2: dict[str, Any] | None = None, path: dict[str, Any] | None = None,
    **changes: Any,
) -> Summary:  # fmt: skip
    """Four users whose calls stand still for nine round trips of eleven."""
    stalls = {"stream_stalls": 9_000, "stream_stalled_ns": round(9_000 * stall_ms * MS)}
    known = timed(9 * stall_ms + 27, flow_wait=9 * stall_ms, network=20.0)
    seen = FAR | (path or {}) | {"http2": Http2(**SMALL | stalls | (http2 or {}))}
    return a_run(path=seen, **GRPC | known | {"server_busy": 0.1} | changes)


def one_window(**changes: Any) -> Summary:
    """Sixteen users on one connection with a window of 64 KB for all, which opens every 20 ms."""
    stalls = {"connection_stalls": 9_200, "connection_stalled_ns": 9_200 * 20 * MS}
    known = timed(2_950.0, flow_wait=2_900.0, network=20.0) | {"images_per_s": 5.4}
    http2 = Http2(**SMALL | stalls | {"streams": 16, "connection_waited_ns": 2_900_000 * MS})
    path = FAR | {"connections": 1, "http2": http2}
    return a_run(path=path, **ONE_CHANNEL | known | {"server_busy": 0.02} | changes)


def four_streams(http2: dict[str, Any] | None = None, **changes: Any) -> Summary:
    """Sixteen users on one connection of which four have a stream, before eight instances of 40 ms."""
    few = SMALL | {"streams": 4, "streams_allowed": 4, "stream_waits": 960} | (http2 or {})
    known = timed(176.0, stream_wait=130.0, network=1.0, unexplained=2.0)
    known |= {"server_parts": {"queue": 0.2 * MS, "compute": 41.0 * MS}, "images_per_s": 91.0}
    path = {"connections": 1, "http2": Http2(**few)}
    return a_run(path=path, **ONE_CHANNEL | known | {"server_busy": 0.42} | changes)


def test_small_windows_over_a_long_path() -> None:
    limit = named(small_windows(), "http2-window")
    assert limit.evidence == (
        "calls waited 180 of 207 ms for credit; a stream's HTTP/2 window of 65.5 kB was closed 9.00 times a "
        "call, for 20.0 ms on average, over round trips of 20.5 ms and pings of 21.0 ms; the kernel had "
        "nothing left to send"
    )
    assert limit.advice.startswith("Raise the server's stream window (nginx http2_body_preread_size, Envoy")
    assert limit.advice.endswith("or send fewer bytes (JPEG, not float32).")


def test_one_window_for_all_calls_of_a_connection() -> None:
    limit = named(one_window(), "http2-window")
    assert (
        "2,900 of 2,950 ms for credit; the connection's HTTP/2 window was closed 9.20 times" in limit.evidence
    )
    assert limit.advice.startswith("Use more connections (--channels per-user or pool:N), raise the server's")


@pytest.mark.parametrize(
    ("http2", "path", "said"),
    [
        ({"ping_ns": None}, {"not_sent_bytes": None}, "for 20.0 ms on average, over round trips of 20.5 ms"),
        (
            {},
            {"rtt_ns": None},
            "over round trips of 20.2 ms and pings of 21.0 ms; the kernel had nothing left",
        ),
        ({}, {"not_sent_bytes": 9_000.0}, "pings of 21.0 ms; the kernel had 9.00 kB left to send"),
        ({"stream_window_bytes": None}, {}, "; a stream's HTTP/2 window was closed 9.00 times a call, for"),
    ],
)
def test_the_evidence_of_closed_windows_says_what_is_known(
    http2: dict[str, Any], path: dict[str, Any], said: str
) -> None:
    assert said in named(small_windows(http2=http2, path=path), "http2-window").evidence


@pytest.mark.parametrize(
    ("streams", "advice"),
    [
        (1, "Raise the server's connection window (Envoy"),
        (
            2,
            "Use more connections (--channels per-user or pool:N), raise the server's connection window",
        ),
    ],
)
def test_more_connections_are_no_help_where_each_has_one_call(streams: int, advice: str) -> None:
    limit = named(small_windows(http2=ONE_WINDOW | {"streams": streams}), "http2-window")
    assert "the connection's HTTP/2 window was closed 9.00 times a call" in limit.evidence
    assert limit.advice.startswith(advice)


def test_credit_that_comes_long_after_a_round_trip_is_withheld() -> None:
    """A relay whose own way is full takes requests in slowly: on a long path as on a short one."""
    limit = named(small_windows(stall_ms=90.0), "server-intake")
    assert "for 90.0 ms on average, over round trips of 20.5 ms" in limit.evidence
    assert limit.evidence.endswith("credit came late, as it does where requests are read slowly")
    assert limit.advice.startswith("Find what reads the requests slowly")
    near = {"rtt_ns": 0.2 * MS, "min_rtt_ns": 0.02 * MS}
    assert code_of(small_windows(path=near)) == "server-intake"


@pytest.mark.parametrize(
    ("rtt_ms", "in_time_ms", "late_ms"),
    [(20.0, 39.9, 40.1), (1.0, 1.9, 2.1), (0.9, 1.7, 1.9), (0.5, 0.9, 1.1), (0.05, 0.14, 0.16)],
)
def test_how_long_credit_may_take(rtt_ms: float, in_time_ms: float, late_ms: float) -> None:
    """Two round trips, or what scheduling at both ends adds: 0.1 ms, and 1 ms over those of 1 ms and more."""
    runs = (small_windows(stall_ms, path={"rtt_ns": rtt_ms * MS}) for stall_ms in (in_time_ms, late_ms))
    assert [withheld(run) for run in runs] == [False, True]


@pytest.mark.parametrize(
    ("size", "window", "stalled_ms", "late"),
    [
        (602_117, 65_536, 368.9, False),  # nine trips, each of which may take twice as long
        (602_117, 65_536, 369.0, True),
        (131_072, 65_536, 40.9, False),
        (131_072, 65_536, 41.0, True),
        (131_073, 65_536, 41.0, False),
        (60_000, 65_536, 41.0, True),  # one trip at least
        (131_072, None, 900.0, False),
        (None, 65_536, 900.0, False),
    ],
)
def test_small_credits_make_stalls_short_and_are_judged_by_their_sum(
    size: int | None, window: int | None, stalled_ms: float, late: bool
) -> None:
    """Round trips of 20.5 ms, and 90 stalls of each call."""
    known = {"stream_stalls": 90_000, "stream_stalled_ns": round(1_000 * stalled_ms * MS)}
    assert withheld(small_windows(http2=known | {"stream_window_bytes": window}, request_bytes=size)) is late


def test_a_connections_window_is_judged_by_each_stall() -> None:
    """How many calls share it, and so for how many trips it may be closed for each, is not known."""
    many = ONE_WINDOW | {"connection_stalls": 90_000, "connection_stalled_ns": 900_000 * MS}
    assert withheld(small_windows(http2=many)) is False
    stalled = {"stream_stalls": 9_000, "stream_stalled_ns": 9_000 * 20 * MS}
    closed = closed_windows(small_windows(http2=ONE_WINDOW | stalled))
    assert closed == (False, 9_000, 20.0 * MS), "of two that are closed as long it is the stream's"


def test_without_any_round_trip_it_is_not_known_whether_credit_is_late() -> None:
    untold = small_windows(http2={"ping_ns": None, "ping_min_ns": None}, path=UNSEEN)
    assert withheld(untold) is None
    evidence = named(untold, "inconclusive").evidence
    assert evidence == "the path took 200 of 207 ms, and its connections were not seen"


def test_bytes_that_wait_in_the_kernel_are_held_by_tcp() -> None:
    """A lossy path: its congestion window is smaller than the streams' windows together."""
    lossy = {"not_sent_bytes": 60_000.0, "connections": 1, "cwnd_bytes": 40_000.0, "retransmits": 28}
    lossy |= {"wire_bytes_per_s": 1.9e6}
    limit = named(small_windows(path=lossy, **ONE_CHANNEL), "connections")
    assert "held by the congestion window of 40.0 kB" in limit.evidence


def unequal(flow_ms: float, network_ms: float) -> Summary:
    """Of 200 ms so many for windows and the path, the rest in three parts alike."""
    rest = (200 - flow_ms - network_ms) / 3 * MS
    parts = {"server_parts": {"queue": 0.0, "compute": rest, "output": rest / 2, "input": rest / 2}}
    known = timed(200.0, flow_wait=flow_ms, network=network_ms)
    return small_windows(**known | parts | {"encode_ns": rest})


FEW = {"server_parts": {"compute": 41.0 * MS}}
STANDING = {"rtt_ns": 60.0 * MS, "cwnd_bytes": 147_000.0, "delivery_bytes_per_s": 0.0}
UNSENT = small_windows(path={"not_sent_bytes": 19_900.0})


@pytest.mark.parametrize(
    ("run", "code"),
    [
        (unequal(60.0, 5.0), "http2-window"),  # 30 % of the time, and no other part is as long
        (unequal(59.0, 5.0), "offered-load"),
        (unequal(60.0, 60.0), "offered-load"),
        (unequal(99.0, 100.0), "offered-load"),
        (unequal(100.0, 100.0), "http2-window"),  # half of the time is always enough
        # Bytes that wait in the kernel are held by TCP.
        (UNSENT, "http2-window"),
        (changed(UNSENT, **{"path.not_sent_bytes": 20_000.0}), "inconclusive"),
        (changed(UNSENT, **{"path.unacked_bytes": None}), "inconclusive"),
        (changed(UNSENT, **{"path.not_sent_bytes": None}), "http2-window"),
        (small_windows(server_busy=0.95), "server-compute"),
        (small_windows(stall_ms=90.0, server_busy=0.95), "server-compute"),
        (one_window(server_busy=0.95), "server-compute"),
        # A full link delays credit too.
        (small_windows(link_bytes_per_s=10e6), "link"),
        (small_windows(60.0, path=STANDING), "link"),
        # Where the kernel told no round trip, the least ping counts: a busy server answers late.
        (small_windows(path=UNSEEN), "http2-window"),
        (small_windows(60.0, {"ping_ns": 60.0 * MS}, path=UNSEEN), "server-intake"),
        (a_run(path={"http2": Http2(**SMALL)}, **GRPC), "offered-load"),  # they never closed
        (small_windows(http2=ALL_FREE, **timed(27.0, network=20.0)), "offered-load"),
        (four_streams(**FEW), "streams"),
        (four_streams({"streams": 5}, **FEW), "streams"),
        (four_streams({"streams": 3}, **FEW), "inconclusive"),  # calls wait, and not for the known limit
        (four_streams({"streams": None}, **FEW), "inconclusive"),
        (four_streams({"streams_allowed": None}, **FEW), "inconclusive"),
        (four_streams({"streams_allowed": 0}, **FEW), "inconclusive"),
        (four_streams(**FEW | timed(180.0, stream_wait=36.0, network=1.0)), "streams"),
        (four_streams(**FEW | timed(180.0, stream_wait=35.9, network=1.0)), "offered-load"),
    ],
)
def test_where_a_bound_of_http2_is_the_limit(run: Summary, code: str) -> None:
    assert code_of(run) == code


@pytest.mark.parametrize("make", [small_windows, one_window, four_streams])
@pytest.mark.parametrize("path", [{"http2": None}, {"http2": Http2()}])
def test_without_figures_of_http2_neither_is_named(make: Any, path: dict[str, Any]) -> None:
    """As over HTTP, and over grpcio."""
    run = make()
    assert code_of(replace(run, path=replace(run.path, **path))) not in ("http2-window", "streams")


def test_four_streams_for_sixteen_users() -> None:
    run = four_streams()
    limit = named(run, "streams")
    for seen, where in ((2, " on each of 2 connections"), (None, "")):
        other = named(changed(run, path=replace(run.path, connections=seen)), "streams")
        assert other.evidence.startswith(f"the server allows 4 streams at once{where}, and 16.0 calls were")
    assert limit.evidence == (
        "the server allows 4 streams at once on 1 connection, and 16.0 calls were under way; they waited 130 "
        "of 176 ms for a free one; the server's instances were executing 42.0 % of the time"
    )
    assert "nginx http2_max_concurrent_streams, HAProxy tune.h2.max-concurrent-streams" in limit.advice
    assert limit.advice.endswith("or use more connections (--channels per-user or pool:N).")


def test_four_streams_keep_one_instance_busy() -> None:
    """More streams would only move the queue into the server."""
    queued = {"server_parts": {"queue": 3.0 * MS, "compute": 40.0 * MS}, "server_busy": 0.97}
    limit = named(four_streams(**queued), "server-compute")
    assert limit.evidence.startswith("compute took 40.0 of 46.0 ms a request, after 130 ms for a free stream")
    waits = {"server_parts": {"queue": 120.0 * MS, "compute": 40.0 * MS}, "server_busy": 0.97}
    busy = timed(640.0, stream_wait=476.0, network=1.0, unexplained=2.0)
    assert code_of(four_streams(**waits | busy)) == "server-queue"


def test_a_server_whose_busy_time_is_not_known_may_be_full() -> None:
    """Its share of the time is all of it, on four instances that are full and on a hundred that are not."""
    limit = named(four_streams(server_busy=None), "inconclusive")
    assert limit.evidence.endswith(
        "176 ms for a free one; how busy the server was is not known, so that it is not known whether more "
        "would help"
    )
    assert limit.advice.endswith("(--channels per-user or pool:N), and see whether the rate grows.")
    silent = four_streams(server_busy=None, server_parts={}, unexplained_ns=43.0 * MS)
    assert named(silent, "inconclusive").evidence.startswith("the server allows 4 streams at once on 1 ")


@pytest.mark.parametrize(
    ("parts", "unexplained_ms", "changes", "room_is_known"),
    [
        ({"compute": 4.0 * MS}, 1.0, {}, True),  # a long path takes the streams' time
        ({"compute": 22.9 * MS}, 0.0, {}, True),
        ({"compute": 23.0 * MS}, 0.0, {}, False),
        ({"compute": 4.0 * MS}, 22.9, {"server_busy": 0.1}, True),
        ({"compute": 4.0 * MS}, 23.0, {"server_busy": 0.1}, False),  # a front may be full
        ({"compute": 41.0 * MS}, 0.0, {"server_busy": 0.1}, True),
        ({"compute": 41.0 * MS}, 0.0, {"server_busy": 0.1, "server.several": "one of two"}, False),
    ],
)
def test_whether_calls_with_a_stream_have_room(
    parts: dict[str, float], unexplained_ms: float, changes: dict[str, Any], room_is_known: bool
) -> None:
    """Of 46 ms with a stream the path takes 23."""
    known = timed(176.0, stream_wait=130.0, network=23.0, unexplained=unexplained_ms) | {"decode_ns": 0.0}
    run = four_streams(**known | {"server_busy": None, "server_parts": parts} | changes)
    limit = streams(run)
    assert limit is not None
    assert limit.code == ("streams" if room_is_known else "inconclusive")
    if unexplained_ms == 23.0:
        assert "23.0 of the 46.0 ms with a stream are unexplained, so that it is not" in limit.evidence


def test_what_holds_up_calls_that_have_a_stream_is_named_first() -> None:
    """Four streams of 64 KB each over 20 ms: larger windows, or a lossless path, serve all sixteen."""
    waits = {"streams": 4, "streams_allowed": 4, "stream_waits": 960}
    known = timed(828.0, stream_wait=621.0, flow_wait=180.0, network=20.0)
    limit = named(small_windows(http2=waits, path={"connections": 1}, **ONE_CHANNEL | known), "http2-window")
    assert "calls waited 180 of 207 ms for credit, after 621 ms for a free stream" in limit.evidence


def test_calls_that_stand_behind_one_another_on_a_full_connection() -> None:
    path = FAR | {"connections": 1, "retransmits": 28, "cwnd_bytes": 66_000.0, "wire_bytes_per_s": 3.2e6}
    path |= {"not_sent_bytes": 120_000.0, "http2": Http2(**SMALL | {"streams": 16})}
    limit = named(a_run(path=path, **ONE_CHANNEL | timed(3_000.0, send=2_900.0, network=60.0)), "connections")
    assert "calls stand behind one another: 2,900 of 3,000 ms passed before a call was sent" in limit.evidence


def test_executions_with_room_wait_for_more_streams() -> None:
    """One instance that is busy all the time, with two images in executions that take as long for eight."""
    sizes = {1: Executed(300, 300 * 42 * MS), 2: Executed(300, 300 * 42 * MS)}
    known = {"server_busy": 0.97, "serving": {"instances": 1}, "server.batches": sizes, "executed_batch": 1.5}
    (limit,) = standing(four_streams(**known))
    assert limit.code == "streams"
    assert "130 of 176 ms for a free one; executions had 1.50 of at most 32 images" in limit.evidence
    free = four_streams({"streams_allowed": None}, **known | {"stream_wait_ns": 0.0})
    assert [one.code for one in standing(free)] == ["batches-not-full"]


def standing(*runs: Summary) -> list[Limit]:
    judged = [changed(run, limit=limit_of(run)) for run in runs]
    return [run.limit for run in among_neighbours(judged) if run.limit]


def on_more(run: Summary, rate: float) -> Summary:
    """The same load with a connection for each user, with its limit left aside."""
    path = replace(a_run().path, connections=16) if run.path else None
    return changed(run, channels="per-user", cell=f"{run.cell}/per-user", images_per_s=rate, path=path)


@pytest.mark.parametrize("make", [four_streams, one_window])
def test_more_connections_carry_more_or_the_limit_is_another(make: Any) -> None:
    run = make()
    code = code_of(run)
    (alone,) = standing(run)
    assert (alone.code, alone.evidence.rpartition("; ")[2]) == (code, UNTESTED)
    helped, _ = standing(run, on_more(run, 3 * run.counts.images_per_s))
    assert helped.code == code
    assert helped.evidence.endswith("16 connections got 200 % more images/s than 1")
    refuted, _ = standing(run, on_more(run, run.counts.images_per_s))
    assert refuted.code == "inconclusive"
    assert "so they are not what limits it" in refuted.evidence


def test_more_users_of_small_windows_are_as_fast_each() -> None:
    four = small_windows(images_per_s=19.0)
    sixteen = small_windows(images_per_s=75.0, level=16, in_flight=16.0, cell="emulated-grpc/b1/c16")
    few, many = standing(four, sixteen)
    assert few.code == "offered-load"
    assert few.evidence.startswith(
        "16 users got 295 % more images/s than 4, so nothing was full; calls waited"
    )
    assert many.code == "http2-window"
