"""A pause between steps of long work, in which other greenlets go on: Locust's heartbeat above all."""

import gevent

PAUSE_S = 0.001


def give_way() -> None:
    """Let the others go on, those that wait for a time as well.

    `gevent.sleep(0)` does not return to the event loop each time: between steps of 0.1 s, timers such as the
    heartbeat's then come seconds late, and the master takes the worker for lost.
    """
    gevent.sleep(PAUSE_S)
