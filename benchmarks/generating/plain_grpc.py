"""grpcio alone, as an arm: blocking calls of prepared bytes by its stub, without Locust and the suite.

As it comes there is a thread for each user. With `--gevent` there is a greenlet for each, as in Locust:
everything is patched, `init_gevent` is called, and gevent's pool has a thread for each call. The cost is the
library's, for any caller of its blocking stub there.
"""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import gevent
import grpc
from gevent import monkey
from grpc.experimental import gevent as grpc_gevent

from benchmarks.generating.arm import Told, arm_options, ended, measured, told
from benchmarks.generating.kinds import GRPC_METHOD, in_turn, read_bodies

TIMEOUT_S = 60.0
SPARE_THREADS = 8
CHANNEL_OPTIONS = (
    ("grpc.max_send_message_length", -1),
    ("grpc.max_receive_message_length", -1),
    ("grpc.use_local_subchannel_pool", 1),
)


class Caller:
    """One user with a channel, and so a connection, of its own."""

    def __init__(self, address: str, bodies: list[bytes], first: int) -> None:
        channel = grpc.insecure_channel(address, options=CHANNEL_OPTIONS)
        self._call = channel.unary_unary(GRPC_METHOD, request_serializer=None, response_deserializer=None)
        self._bodies = in_turn(bodies, first)

    def spin(self, seconds: float) -> list[float]:
        """Call after call; the seconds that each took. Raises grpc.RpcError."""
        took: list[float] = []
        end = time.perf_counter() + seconds
        while (began := time.perf_counter()) < end:
            self._call(next(self._bodies), timeout=TIMEOUT_S)
            took.append(time.perf_counter() - began)
        return took


Spin = Callable[[Sequence[Caller], float], list[float]]
"""All callers at once, for some seconds. Raises grpc.RpcError where any call fails: no figures then."""


def in_threads(callers: Sequence[Caller], seconds: float) -> list[float]:
    """A thread for each."""
    with ThreadPoolExecutor(len(callers)) as pool:
        return list(itertools.chain.from_iterable(pool.map(lambda caller: caller.spin(seconds), callers)))


def in_greenlets(callers: Sequence[Caller], seconds: float) -> list[float]:
    """A greenlet for each."""
    spinning = [gevent.spawn(caller.spin, seconds) for caller in callers]
    gevent.joinall(spinning, raise_error=True)
    return list(itertools.chain.from_iterable(one.value for one in spinning))


def patch(users: int) -> None:
    """Make Python's waits and gRPC's be gevent's, as Locust does, with room for every user's call."""
    monkey.patch_all()
    gevent.get_hub().threadpool.maxsize = users + SPARE_THREADS
    grpc_gevent.init_gevent()


def main() -> int:
    """Spin to warm up, spin on the clock, tell."""
    parser = arm_options(__doc__)
    parser.add_argument("--gevent", action="store_true", help="greenlets, in the place of threads")
    options = parser.parse_args()
    spin: Spin = in_greenlets if options.gevent else in_threads
    if options.gevent:
        patch(options.users)
    bodies = read_bodies(options.bodies, options.kind).bodies
    callers = [Caller(f"127.0.0.1:{options.port}", bodies, first) for first in range(options.users)]
    spin(callers, options.warm_up)
    with measured() as span:
        took = spin(callers, options.seconds)
    told(Told.of(span, len(took), took, 0))
    return ended()


if __name__ == "__main__":
    sys.exit(main())
