"""Sockets that hold nothing back, and a request's deadline: the whole time for each, whatever came before."""

import socket
import struct
from types import SimpleNamespace

import gevent
import pytest

from swarm.distributed.tcp_stats import read_tcp_info
from users.transport.sockets import Deadline, Socket, connected, take_starts

pytestmark = pytest.mark.system


def test_small_parts_are_not_held_back() -> None:
    """By Nagle's algorithm: an answer's last byte would wait for the acknowledgement of those before."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        made, _ = connected("127.0.0.1", server.getsockname()[1])
        assert made.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1
        made.close()


def test_every_block_has_the_whole_time() -> None:
    deadline = Deadline(1.0)
    for _ in range(4):
        with deadline:
            gevent.sleep(0.3)


def test_one_that_expired_is_whole_again_for_the_next_block() -> None:
    deadline = Deadline(0.2)
    with pytest.raises(gevent.Timeout), deadline:
        gevent.sleep(30)
    with deadline:
        gevent.sleep(0.001)


def test_outside_a_block_it_never_expires() -> None:
    deadline = Deadline(0.05)
    with deadline:
        pass
    gevent.sleep(0.2)


@pytest.mark.parametrize(
    ("segments", "size", "round_trips"),
    [
        (10, 14_481, 1),
        (10, 43_441, 2),
        (10, 602_112, 5),
        (51, 602_112, 3),
        (831, 602_112, 0),
        (10, 14_480, None),
    ],
)
def test_round_trips_that_a_small_window_costs(segments: int, size: int, round_trips: int | None) -> None:
    """It doubles in each: 10 segments of 1,448 bytes, then 20, 40 and so on until the request is sent."""
    take_starts()
    made = Socket.__new__(Socket)
    told = struct.pack("=16xI60xI", 1_448, segments)
    made._socket = SimpleNamespace(getsockopt=lambda *_: told)
    made.note_start(size)
    window = {"requests": 1, "window_bytes": 1_448 * segments, "round_trips": round_trips}
    assert take_starts() == ({} if round_trips is None else window)


def test_the_kernel_tells_the_window_of_a_connection() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        made = Socket("127.0.0.1", server.getsockname()[1])
        take_starts()
        made.send_all([bytes(20_000)])
        found = take_starts()
        told = read_tcp_info(made._socket)
        made.close()
    assert (found["requests"], found["window_bytes"]) == (1, told["snd_mss"] * told["snd_cwnd"])
