"""What the users of this process are to send now: one Assignment per cell, shared by all of them.

Prepared bodies lie side by side in huge pages: to send them takes a quarter less processor time.
"""

from __future__ import annotations

import itertools
import mmap
import secrets
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

import numpy as np
from gevent.event import Event
from numpy.typing import NDArray

from users.codecs.base import Codec, PreparedRequest, rotation
from users.endpoint import Endpoint
from users.http2.sender import SCHEDULING
from users.inputs.images import ImageSet
from users.inputs.pause import give_way
from users.load.mix import Order, Traffic
from users.load.pacing import ClosedPacer, Pacer
from users.load.trace_ids import TraceIds
from users.transport.connections import PER_USER
from users.transport.transports import TRANSPORTS

PREPARED, LIBRARY = "prepared", "library"
"""The suite's own client, whose requests are made once, before any load, or the libraries that a plain client
stands on, with each request made from its array during the measurement.
"""
MOST_AT_ONCE = 4
"""Cells that run at the same time."""
DRAIN = "drain"
LINE_BYTES = 64
"""Each body begins at a cache line of the processor."""
HUGE_PAGES = getattr(mmap, "MADV_HUGEPAGE", None)


@dataclass
class Assignment:
    """A cell on this worker: its endpoint's codec, prepared requests, and the phase that gates the users.

    Requests of a pool that was prepared with an id are each sent under one of their own.

    `golden`: float32 of shape [n, dimension], or None to skip that check. `images`: the pictures from which
    each request is rebuilt, or None to send the pool as it was prepared. Where requests are not all alike,
    `traffic` says in which order they are sent, and `classes` where those of each label are in the pool.
    `scheduling` is of the suite's own gRPC. `sent` are the requests begun since the phase was entered,
    `under_way` those not yet ended, by the phase in which they began.
    """

    codec: Codec
    pool: list[PreparedRequest]
    timeout_s: float
    cell: str = ""
    repeat: int = 1
    golden: NDArray[np.float32] | None = None
    min_cosine: float = 0.999
    images: ImageSet | None = None
    channels: str = PER_USER
    think: str = ""
    """As users.load.think reads it."""
    user_seed: str = ""
    """Of what is random in its users, a worker's own."""
    scheduling: str = SCHEDULING
    traffic: Traffic | None = None
    classes: Mapping[str, range] = field(default_factory=dict)
    order: Order | None = None
    """Of the phase."""
    traceparent: float = 0.0
    """The share of requests that carry one."""
    trace_ids: TraceIds | None = None
    """Theirs, in the phase."""
    phase: str = DRAIN
    pacer: Pacer = field(default_factory=ClosedPacer)
    sent: int = 0
    under_way: Counter[str] = field(default_factory=Counter)
    start_event: Event = field(default_factory=Event)
    seats: itertools.count[int] = field(default_factory=itertools.count)
    users: int = 0
    """How many there are."""
    connected: int = 0
    """How many users have sent a request."""
    connections: int = 0
    """How many TCP connections this process's users should have so far."""
    token: int = field(default_factory=lambda: secrets.randbits(32))
    """The prefix of its requests' ids, different for each worker and run."""
    numbers: itertools.count[int] = field(default_factory=itertools.count)

    @property
    def endpoint(self) -> Endpoint:
        """Whom it asks."""
        return self.codec.endpoint

    @property
    def by_library(self) -> bool:
        """Whether requests are made and sent as a plain client does."""
        return self.images is not None

    @property
    def in_flight(self) -> int:
        """How many requests have not ended."""
        return self.under_way.total()

    def count_connection(self) -> None:
        """A user sends its first request: connections are made by those."""
        self.connected += 1
        transport = TRANSPORTS[self.codec.wire, self.by_library]
        self.connections = transport.connections(self.connected, self.channels, self.endpoint.tls)

    def request(self, number: int) -> tuple[PreparedRequest, str]:
        """What is sent as a phase's request of this number, where these have an order, and its class."""
        assert self.order is not None, "requests that are all alike have none"
        label, place = self.order.at(number)
        own = self.classes[label]
        return self.pool[own[place % len(own)]], label

    def new_id(self) -> str:
        """16 characters that no other request has."""
        return f"{self.token:08x}{next(self.numbers):08x}"

    def enter(self, phase: str, pacer: Pacer | None = None, seed: str = "") -> None:
        """Begin a phase: users send when the pacer says, at once without one; without one a drain stops them.

        What is under way goes on, and belongs to the phase in which it began. `seed` is that of the order.
        """
        self.phase, self.sent = phase, 0
        self.order = self.traffic.ordered(seed) if self.traffic else None
        self.trace_ids = TraceIds(self.traceparent, seed) if self.traceparent else None
        self.pacer.close()
        if pacer is None and phase == DRAIN:
            self.start_event.clear()
        else:
            self.pacer = pacer or ClosedPacer()
            self.start_event.set()


def prepare_pool(codec: Codec, images: ImageSet, batch: int, request_id: str = "") -> list[PreparedRequest]:
    """Requests of `batch` items each that together use every one it is sent; all under one id."""
    return prepared(codec, images, rotation(images.count(codec.endpoint.contract), batch), request_id)


def prepared(
    codec: Codec, images: ImageSet, batches: Sequence[tuple[int, ...]], request_id: str = ""
) -> list[PreparedRequest]:
    """A request for the items of each of some batches; all under one id."""
    pool = []
    for indices in batches:
        pool.append(codec.prepare(images, indices, request_id))
        give_way()  # megabytes each
    return settled(pool)


def named(
    codec: Codec, images: ImageSet, batches: Sequence[tuple[int, ...]], request_id: str = ""
) -> list[PreparedRequest]:
    """As `prepared`, but the pictures of each request alone, for a client that builds its body itself.

    Bodies that nobody sends would cost time and memory: 200 MB, and seconds, where tensors are JSON.
    """
    # Whether its requests have a place for an id, one picture tells.
    id_at = codec.prepare(images, (0,), request_id).id_at if request_id else -1
    images.prepare(codec.endpoint.contract)
    return [PreparedRequest(b"", indices, id_at=id_at) for indices in batches]


def settled(pool: list[PreparedRequest]) -> list[PreparedRequest]:
    """The same requests, their bodies read-only views of one mapping, for which huge pages are asked.

    A tensor of 602 KB lies on 147 pages of 4 KB, each of which the processor must look up. Where the kernel
    has no huge pages, or gives none, bodies are as they were, only elsewhere. Source: Linux's
    Documentation/admin-guide/mm/transhuge.rst.
    """
    sizes = [-(-len(prepared.body) // LINE_BYTES) * LINE_BYTES for prepared in pool]
    if not sum(sizes):
        return pool
    mapping = mmap.mmap(-1, sum(sizes), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if HUGE_PAGES is not None:
        with suppress(OSError):  # a kernel built without them
            mapping.madvise(HUGE_PAGES)
    view, at = memoryview(mapping), 0
    for number, (prepared, size) in enumerate(zip(pool, sizes, strict=True)):
        place = view[at : at + len(prepared.body)]
        place[:] = prepared.body
        pool[number] = replace(prepared, body=place.toreadonly())
        at += size
        give_way()  # megabytes each
    return pool
