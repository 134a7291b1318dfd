"""What the master's port accepts: messages of workers, and from strangers only those for joining.

Locust trusts anyone who can reach that port: a malformed frame, or one with a missing field, ends
the greenlet that listens, and the study with it. Here such a message is dropped, and that is told once. A
peer may send more than any worker does, and less than would fill memory. Locust keeps what it is told by
name, for as long as the process runs; so names are counted, too.
"""

from locust import stats
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
import time
from collections.abc import Callable, Iterable
from typing import Any, ClassVar

import gevent
import zmq.green as zmq
from zmq.error import ZMQError

from reports.format import plain, plain_lines
from reports.ledger.records import MOST_WORKERS
from swarm.distributed.protocol import (
    RECORDS,
    Form,
    are_counts,
    is_finite,
    is_number,
    is_text,
    is_whole,
    listed,
    table,
)

logger = logging.getLogger("inferswarm")
MOST_BYTES, MOST_OF_A_STRANGER = 4 << 20, 1 << 16
"""Of one message; a worker's largest is about 100 kB. zmq drops a peer that sends more."""
MOST_WAITING = 8
"""Messages of one peer that may wait to be read; further ones wait at the sender."""
MOST_ID = 255
"""Characters of a worker's id, and of a message's type: Locust's ids are a host name plus 33."""
MOST_NAMES, MOST_KEYS, LONGEST_MS = 5_000, 5_000, 86_400_000
SILENT_S = 120.0
"""Locust gives up on a worker after a minute at most."""
TURN = 64
"""Messages after which other greenlets get a turn."""
READY, ASKS_FILES = "client_ready", "locustfile"
STATES = {
    *(STATE_INIT, STATE_SPAWNING, STATE_RUNNING, STATE_CLEANUP),
    *(STATE_STOPPING, STATE_STOPPED, STATE_MISSING),
}
MESSAGES_PER_S, BYTES_PER_S = 100, 4 << 20
"""A worker sends a dozen messages a second, and hundreds of kilobytes with its single Results."""
BURST_S = 10
"""Unused allowance of this many seconds may be spent at once, by a worker whose connection hung."""


class RefusedMessage(Exception):
    """Says what a message is, if not one of a worker."""


class RateLimit:
    """Of one worker; `clock` counts seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._at = clock, clock()
        self._messages, self._bytes = float(MESSAGES_PER_S * BURST_S), float(BYTES_PER_S * BURST_S)

    @property
    def silent_s(self) -> float:
        """How long nothing has come."""
        return self._clock() - self._at

    def take(self, size: int) -> bool:
        """Whether a message of so many bytes is within what is left."""
        now = self._clock()
        passed_s, self._at = now - self._at, now
        self._messages = min(self._messages + passed_s * MESSAGES_PER_S, MESSAGES_PER_S * BURST_S)
        self._bytes = min(self._bytes + passed_s * BYTES_PER_S, BYTES_PER_S * BURST_S)
        if self._messages < 1 or self._bytes < size:
            return False
        self._messages -= 1
        self._bytes -= size
        return True


def make_room(known: set[str], names: Iterable[str]) -> bool:
    """Whether names are among the known ones, or there is room for them there, which they then take."""
    new = set(names) - known
    if len(known) + len(new) > MOST_NAMES:
        return False
    known |= new
    return True


def is_entry(data: Any) -> bool:
    """Whether it is a line of Locust's table, whose counts by time have the keys that Locust gives them."""
    return (
        table(name=is_text, method=is_text, response_times=are_times)(data)
        and is_finite(data)
        and all(len(value) <= MOST_KEYS for value in data.values() if isinstance(value, (dict, list, str)))
    )


def are_times(data: Any) -> bool:
    """Whether it counts response times, rounded as Locust is told to, so that there are a few thousand."""
    return isinstance(data, dict) and all(
        is_number(time)
        and 0 <= time <= LONGEST_MS
        and stats.bucket_response_time(time) == time
        and is_whole(count)
        for time, count in data.items()
    )


def is_error(data: Any) -> bool:
    """Whether it is an entry of Locust's table of failures."""
    texts = table(method=is_text, name=is_text, error=is_text, occurrences=is_whole)(data)
    return texts and all(len(value) <= MOST_KEYS for value in data.values() if is_text(value))


FORMS: dict[str, Form] = {
    READY: lambda data: (is_text(data) and len(data) <= MOST_ID) or data == -1,
    ASKS_FILES: table(version=is_text),
    "heartbeat": table(
        state=lambda state: is_text(state) and state in STATES,
        current_cpu_usage=is_number,
        current_memory_usage=is_number,
    ),
    "stats": table(
        stats=listed(is_entry),
        stats_total=is_entry,
        errors=lambda found: isinstance(found, dict) and all(map(is_error, found.values())),
        user_classes_count=are_counts,
    ),
    "spawning_complete": table(user_classes_count=are_counts),
    "exception": table(msg=is_text, traceback=is_text),
    "logs": table(worker_id=is_text, logs=listed(is_text)),
}
"""What Locust reads of its own messages; listeners check the other messages themselves."""


def named_in(message: Message) -> list[str]:
    """What Locust keeps by name of a message."""
    match message.type:
        case "stats":
            entries = [f"{entry['method']} {entry['name']}" for entry in message.data["stats"]]
            return [*entries, *map(str, message.data["errors"]), *message.data["user_classes_count"]]
        case "exception":
            return [message.data["traceback"]]
        case "logs":
            return [message.data["worker_id"]]
    return []


def safe_for_terminals(value: Any) -> Any:
    """The same with texts that hold no control characters but the ends of lines."""
    if isinstance(value, str):
        return value if value.isprintable() else plain_lines(value)
    if isinstance(value, dict):
        return {safe_for_terminals(name): safe_for_terminals(one) for name, one in value.items()}
    return [safe_for_terminals(one) for one in value] if isinstance(value, list) else value


class MasterSocket(Server):
    """Locust's end of the link, for messages that are such."""

    workers: ClassVar[set[str]] = set()
    """The ids of all workers that have ever reported ready; kept when Locust reconnects."""
    rate_limits: ClassVar[dict[str, RateLimit]] = {}
    names: ClassVar[dict[str, set[str]]] = {}
    """Distinct ones that each has sent."""

    def __init__(self, host: str, port: int) -> None:
        # Locust's own, but for the limit, which holds for ports that are bound after it.
        BaseSocket.__init__(self, zmq.ROUTER, self.ipv4_only(host, port))
        self.socket.setsockopt(zmq.MAXMSGSIZE, MOST_BYTES)
        self.socket.setsockopt(zmq.RCVHWM, MOST_WAITING)
        try:
            self.port = port or self.socket.bind_to_random_port(f"tcp://{host}")
            if port:
                self.socket.bind(f"tcp://{host}:{port}")
        except ZMQError as error:
            raise RPCError(f"Socket bind failure: {os.strerror(error.errno or 0)}") from error
        self._told: set[str] = set()
        self._heard = 0

    def recv_from_client(self) -> tuple[str, Message]:
        """The next message of a worker: its id, and what it says. Raises Locust's RPCError."""
        while True:
            self._heard += 1
            if self._heard % TURN == 0:
                # Where there is always another message, zmq does not wait, and nobody else would run.
                gevent.sleep(0)
            try:
                frames = self.socket.recv_multipart()
            except ZMQError as error:
                raise RPCError("ZMQ network broken") from error
            try:
                return self.heard(frames)
            except Exception as error:
                # Whatever a decoder may raise: the next message may be a worker's.
                self._tell(str(error) if isinstance(error, RefusedMessage) else "not a Locust message")

    def heard(self, frames: list[bytes]) -> tuple[str, Message]:
        """The message in some frames. Raises RefusedMessage, or what the decoder does, if there is none."""
        if len(frames) != 2:
            raise RefusedMessage("not a Locust message")
        worker = frames[0].decode()
        known = worker in self.workers
        if not known and len(frames[1]) > MOST_OF_A_STRANGER:
            raise RefusedMessage("a message from an unknown worker")
        if known and not self.rate_limits[worker].take(len(frames[1])):
            raise RefusedMessage("more messages than a worker sends")
        message = Message.unserialize(frames[1])
        if not is_text(message.type) or message.node_id != worker or not is_id(worker):
            raise RefusedMessage("a message under another worker's name")
        if message.type not in (READY, ASKS_FILES) and not known:
            raise RefusedMessage("a message from an unknown worker")
        if len(message.type) > MOST_ID:
            raise RefusedMessage("not a Locust message")
        # Locust logs a type that it does not know.
        message.type = plain(message.type)
        if message.type != RECORDS:
            message.data = safe_for_terminals(message.data)
        if not FORMS.get(message.type, lambda _: True)(message.data):
            raise RefusedMessage(f"a malformed message ({message.type[:40]!r})")
        if message.type == READY and not known:
            self._welcome(worker)
        elif known and not make_room(self.names[worker], named_in(message)):
            raise RefusedMessage("more names than a worker has")
        return worker, message

    def _welcome(self, worker: str) -> None:
        """Hear it from now on; who has long been silent makes room for it."""
        if len(self.workers) >= MOST_WORKERS:
            for silent in [one for one, limit in self.rate_limits.items() if limit.silent_s > SILENT_S]:
                self.workers.discard(silent)
                del self.rate_limits[silent], self.names[silent]
        if len(self.workers) >= MOST_WORKERS:
            raise RefusedMessage("one worker too many")
        self.workers.add(worker)
        self.rate_limits[worker], self.names[worker] = RateLimit(), set()

    def _tell(self, what: str) -> None:
        if what not in self._told:
            self._told.add(what)
            logger.warning(
                "the master's port got %s: dropped; further ones are dropped without a message", what
            )


def is_id(worker: str) -> bool:
    """Whether it can be a worker's: a terminal shows it."""
    return 0 < len(worker) <= MOST_ID and worker.isprintable()
