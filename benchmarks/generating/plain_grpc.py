"""grpcio as it comes, as an arm: blocking calls of prepared bytes from a thread for each user, without gevent
and without Locust. Its cost is the library's, for any caller of its blocking stub.
"""

from __future__ import annotations

import itertools
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import grpc

from benchmarks.generating.arm import Told, arm_options, ended, measured, told
from benchmarks.generating.kinds import GRPC_METHOD, in_turn, read_bodies

TIMEOUT_S = 60.0
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


def spin(callers: list[Caller], seconds: float) -> list[float]:
    """All callers at once. Raises grpc.RpcError where any call fails: there are no figures then."""
    with ThreadPoolExecutor(len(callers)) as pool:
        return list(itertools.chain.from_iterable(pool.map(lambda caller: caller.spin(seconds), callers)))


def main() -> int:
    """Spin to warm up, spin on the clock, tell."""
    options = arm_options(__doc__).parse_args()
    bodies = read_bodies(options.bodies, options.kind).bodies
    callers = [Caller(f"127.0.0.1:{options.port}", bodies, first) for first in range(options.users)]
    spin(callers, options.warm_up)
    with measured() as span:
        took = spin(callers, options.seconds)
    told(Told.of(span, len(took), took, 0))
    return ended()


if __name__ == "__main__":
    sys.exit(main())
