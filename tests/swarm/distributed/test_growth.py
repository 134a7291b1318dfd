"""What a worker's connections did since the last look, from readings of a played kernel."""

from typing import Any

import pytest

from swarm.distributed.tcp_stats import ESTABLISHED, Connections, TcpInfo, standing
from tests.swarm.kernel import Kernel, info_of

CLOSE_WAIT = 8


@pytest.fixture
def kernel() -> Kernel:
    return Kernel()


def test_growth_since_the_last_look(kernel: Kernel) -> None:
    connections = Connections(kernel)
    kernel.seen = {"a": info_of(segs_out=5, bytes_sent=1000, busy_time=70)}
    connections.watch(8011)
    kernel.seen = {
        "a": info_of(
            segs_out=9, segs_in=4, bytes_sent=5000, bytes_retrans=1448, total_retrans=1, bytes_received=300,
            busy_time=170, rwnd_limited=30, sndbuf_limited=20, notsent_bytes=64, delivery_rate=4000,
            unacked=7, snd_wnd=60_000, pacing_rate=9_000, bbr=1,
        ),
        "new": info_of(
            segs_out=2, segs_in=1, bytes_sent=250, busy_time=5, notsent_bytes=6, rtt=80, min_rtt=25,
            snd_cwnd=20, unacked=1, snd_wnd=70_000, pacing_rate=2**64 - 1, bbr=0,
        ),
    }  # fmt: skip
    assert connections.take() == {
        "connections": 2,
        "cwnd_bytes": 15 * 1448,
        "not_sent_bytes": 70,
        "unacked_bytes": 5 * 1448,
        "bbr_connections": 1,
        "window_bytes": 65_000,
        "pacing_bytes_per_s": 9_000,
        "rtt_ns": 60_000,
        "min_rtt_ns": 25_000,
        "delivery_bytes_per_s": 4000,
        "segments_out": 6,
        "segments_in": 5,
        "bytes_sent": 4250,
        "bytes_retransmitted": 1448,
        "retransmits": 1,
        "bytes_received": 300,
        "busy_ns": 105_000,
        "rwnd_limited_ns": 30_000,
        "sndbuf_limited_ns": 20_000,
    }
    assert connections.take()["bytes_sent"] == 0
    assert kernel.ports == [8011] * 3


@pytest.mark.parametrize(
    ("before", "after", "grown"),
    [
        ({"a": (9_000, 12)}, {"a": (700, 2)}, (1, 700, 2)),  # a local port that is used again: from nothing
        ({"a": (9_000, 1), "b": (100, 1)}, {"b": (150, 2)}, (1, 50, 1)),  # a closed one takes nothing away
        ({}, {"c": (40, 3)}, (1, 40, 3)),
        ({"a": (9_000, 1)}, {}, (None, None, None)),
    ],
)
def test_growth_of_connections_that_come_and_go(kernel: Kernel, before: Any, after: Any, grown: Any) -> None:
    def seen(told: dict[str, tuple[int, int]]) -> dict[Any, TcpInfo]:
        return {end: info_of(bytes_sent=sent, segs_out=segments) for end, (sent, segments) in told.items()}

    connections = Connections(kernel)
    kernel.seen = seen(before)
    connections.watch(1)
    kernel.seen = seen(after)
    figures = connections.take()
    assert tuple(map(figures.get, ("connections", "bytes_sent", "segments_out"))) == grown


def test_another_port_is_another_beginning(kernel: Kernel) -> None:
    connections = Connections(kernel)
    kernel.seen = {"a": info_of(bytes_sent=9000)}
    connections.watch(8011)
    kernel.seen = {"b": info_of(bytes_sent=10)}
    connections.watch(8021)
    kernel.seen = {"b": info_of(bytes_sent=15)}
    assert connections.take()["bytes_sent"] == 5
    assert kernel.ports == [8011, 8021, 8021]


def test_only_established_connections_are_counted() -> None:
    infos = [info_of(), info_of(state=CLOSE_WAIT), info_of(state=2, rtt=0, min_rtt=0xFFFFFFFF)]
    values = standing(infos)
    assert values["connections"] == 1
    assert (values["rtt_ns"], values["min_rtt_ns"]) == (40_000, 30_000), "the third has no round trip yet"
    assert "delivery_bytes_per_s" not in values


def test_nothing_is_said_of_round_trips_before_the_first() -> None:
    values = standing([info_of(rtt=0, min_rtt=0)])
    assert values == {"connections": 1, "cwnd_bytes": 14_480, "not_sent_bytes": 0}


def test_what_an_older_kernel_does_not_tell_is_left_out(kernel: Kernel) -> None:
    told = {"state": ESTABLISHED, "rtt": 115, "snd_cwnd": 118, "snd_mss": 102, "total_retrans": 123}
    connections = Connections(kernel)
    connections.watch(1)
    kernel.seen = {"a": told}
    assert connections.take() == {
        "connections": 1, "cwnd_bytes": 118 * 102, "rtt_ns": 115_000, "retransmits": 123
    }  # fmt: skip
