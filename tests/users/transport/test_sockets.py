"""Sockets that hold nothing back, and a request's deadline: the whole time for each, whatever came before."""

import socket

import gevent
import pytest

from users.transport.sockets import Deadline, connected

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
