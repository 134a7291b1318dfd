"""What the master's port lets in: messages of workers, and of strangers only what makes one a worker.

Locust trusts whoever reaches that port: a frame that is no message, or one with a field that is missing, ends
the greenlet that listens, and the study with it. Here such a message is dropped, and that is told once.
"""

from __future__ import annotations

from locust.exception import RPCError
from locust.rpc.protocol import Message
from locust.rpc.zmqrpc import BaseSocket, Server
from locust.runners import (
    STATE_CLEANUP,
    STATE_INIT,
    STATE_MISSING,
    STATE_RUNNING,
    STATE_SPAWNING,
    STATE_STOPPED,
    STATE_STOPPING,
)

import logging
import os
from collections.abc import Callable
from typing import Any, ClassVar

import zmq.green as zmq
from zmq.error import ZMQError

from swarm.forms import are_counts, has, is_number, is_text

logger = logging.getLogger("inferswarm")
MOST_BYTES = 64 * 2**20
"""Of one message; a worker's largest has some hundred kilobytes. zmq leaves a peer that sends more."""
MOST_ID = 255
"""Characters of a worker's id: Locust's are a host name and 33 more."""
READY, ASKS_FILES = "client_ready", "locustfile"
STATES = {
    *(STATE_INIT, STATE_SPAWNING, STATE_RUNNING, STATE_CLEANUP),
    *(STATE_STOPPING, STATE_STOPPED, STATE_MISSING),
}

FORMS: dict[str, Callable[[Any], bool]] = {
    READY: lambda data: is_text(data) or data == -1,
    ASKS_FILES: lambda data: has(data, version=is_text),
    "heartbeat": lambda data: has(
        data,
        state=lambda state: is_text(state) and state in STATES,
        current_cpu_usage=is_number,
        current_memory_usage=is_number,
    ),
    "stats": lambda data: has(
        data, stats=lambda found: isinstance(found, list), stats_total=lambda found: isinstance(found, dict),
        errors=lambda found: isinstance(found, dict), user_classes_count=are_counts,
    ),
    "spawning_complete": lambda data: has(data, user_classes_count=are_counts),
    "exception": lambda data: has(data, msg=is_text, traceback=is_text),
    "logs": lambda data: has(
        data, worker_id=is_text, logs=lambda lines: isinstance(lines, list) and all(map(is_text, lines))
    ),
}  # fmt: skip
"""What Locust reads of its own messages; the listeners of others look for themselves."""


class Ears(Server):
    """Locust's end of the link, for messages that are such."""

    workers: ClassVar[set[str]] = set()
    """The ids of all that have ever said that they are ready; they outlive a link that Locust makes anew."""

    def __init__(self, host: str, port: int) -> None:
        # Locust's own, but for the limit, which holds for ports that are bound after it.
        BaseSocket.__init__(self, zmq.ROUTER, self.ipv4_only(host, port))
        self.socket.setsockopt(zmq.MAXMSGSIZE, MOST_BYTES)
        try:
            self.port = port or self.socket.bind_to_random_port(f"tcp://{host}")
            if port:
                self.socket.bind(f"tcp://{host}:{port}")
        except ZMQError as error:
            raise RPCError(f"Socket bind failure: {os.strerror(error.errno or 0)}") from error
        self._told: set[str] = set()

    def recv_from_client(self) -> tuple[str, Message]:
        """The next message of a worker: its id, and what it says. Raises Locust's RPCError."""
        while True:
            try:
                frames = self.socket.recv_multipart()
            except ZMQError as error:
                raise RPCError("ZMQ network broken") from error
            try:
                return self.heard(frames)
            except Exception as error:
                # Whatever a decoder may raise: the next message may be a worker's.
                self._tell(str(error) if isinstance(error, Unheard) else "no message of Locust's")

    def heard(self, frames: list[bytes]) -> tuple[str, Message]:
        """The message in some frames. Raises Unheard, or what the decoder does, where there is none."""
        if len(frames) != 2:
            raise Unheard("no message of Locust's")
        worker, message = frames[0].decode(), Message.unserialize(frames[1])
        if not is_text(message.type) or message.node_id != worker or not 0 < len(worker) <= MOST_ID:
            raise Unheard("a message in another's name")
        if message.type not in (READY, ASKS_FILES) and worker not in self.workers:
            raise Unheard("a message of no worker")
        if not FORMS.get(message.type, lambda _: True)(message.data):
            raise Unheard(f"a malformed message ({message.type[:40]!r})")
        if message.type == READY:
            self.workers.add(worker)
        return worker, message

    def _tell(self, what: str) -> None:
        if what not in self._told:
            self._told.add(what)
            logger.warning("the master's port got %s: dropped, as are all that follow, untold", what)


class Unheard(Exception):
    """Says what a message is, if not one of a worker."""
