"""A request's deadline: the whole time for each, whatever became of those before."""

from __future__ import annotations

import gevent
import pytest

from users.transport.sockets import Deadline

pytestmark = pytest.mark.system


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
