"""gRPC channels on gevent: a user's own, or his place among those that the users of a process share."""

from __future__ import annotations

import functools
from typing import ClassVar

import gevent
import grpc
from grpc.experimental import gevent as grpc_gevent

from users.sharing import Shelf, Spread

JOINED_OPTIONS = (
    ("grpc.max_send_message_length", -1),
    ("grpc.max_receive_message_length", -1),
)
"""All channels of a process to the same address with the same options share one TCP connection."""
CHANNEL_OPTIONS = (*JOINED_OPTIONS, ("grpc.use_local_subchannel_pool", 1))
"""Each channel with these has a TCP connection of its own."""
SPARE_THREADS = 8


@functools.cache
def patch_grpc() -> None:
    """Let gRPC wait in gevent's thread pool and not in the event loop; once a process, before any channel."""
    grpc_gevent.init_gevent()


def size_thread_pool(users: int) -> None:
    """Room for one blocked call a user: each call in flight holds a thread of gevent's pool.

    At the pool's default of 10, a tenth call makes every other wait, unseen in the throughput.
    """
    pool = gevent.get_hub().threadpool
    pool.maxsize = max(pool.maxsize, users + SPARE_THREADS)


def new_channel(address: str, joined: bool = False) -> grpc.Channel:
    """A channel with a TCP connection of its own, or, `joined`, with that of all others made so."""
    patch_grpc()
    return grpc.insecure_channel(address, options=JOINED_OPTIONS if joined else CHANNEL_OPTIONS)


class OwnChannel:
    """A channel that no other user has; `joined` as in `new_channel`."""

    def __init__(self, address: str, joined: bool) -> None:
        self._channel = new_channel(address, joined)

    def take(self) -> grpc.Channel:
        """The channel."""
        return self._channel

    def close(self) -> None:
        """Close it."""
        self._channel.close()


class SharedChannel:
    """A user's place among up to `size` channels to an address, which stay open until their last user."""

    shelf: ClassVar[Shelf[Spread[grpc.Channel]]] = Shelf()
    _channel: grpc.Channel | None = None

    def __init__(self, address: str, size: int) -> None:
        self._name = (address, size)
        self._spread = self.shelf.join(self._name, lambda: Spread(size, lambda: new_channel(address)))

    def take(self) -> grpc.Channel:
        """The channel with fewest users, for good; asked for once, by the first request.

        Of users who never send, as there are in an open load, none crowds a channel.
        """
        self._channel = self._spread.take()
        return self._channel

    def close(self) -> None:
        """Leave it to the others."""
        if self._channel is not None:
            self._spread.give_back(self._channel)
        self.shelf.leave(self._name)
