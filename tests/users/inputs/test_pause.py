"""Timers go on beside long work that gives way between its steps."""

import time

import gevent

from users.inputs.pause import give_way


def test_a_timer_rings_between_the_steps_of_long_work() -> None:
    waiting = gevent.spawn(gevent.sleep, 0.005)
    gevent.sleep(0)
    for _ in range(5):
        time.sleep(0.01)
        give_way()
    assert waiting.ready()
