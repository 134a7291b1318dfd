"""Step 7, whose client holds its own event loop the first time that it is asked for 60 requests a second."""

from locust import events

from typing import Any

from gevent import monkey

from locustfiles.step7 import EmbeddingUser, Step7

__all__ = ["EmbeddingUser", "Step7"]
FIRST_TIME = 170
"""Of the 180 requests that three seconds have."""
EVERY, BLOCK_S = 4, 0.022
sleep = monkey.get_original("time", "sleep")
seen = {"requests": 0}


def hold(name: str, **_: Any) -> None:
    """As a call does that gevent knows nothing of."""
    if name.endswith("/r60"):
        seen["requests"] += 1
        if seen["requests"] <= FIRST_TIME and seen["requests"] % EVERY == 0:
            sleep(BLOCK_S)


events.request.add_listener(hold)
