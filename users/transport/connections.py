"""Channels: whether users of a process have TCP connections of their own, or share them, and how many."""

from __future__ import annotations

import re
from dataclasses import dataclass

PER_USER, SHARED, SAME_ARGS, POOL = "per-user", "shared", "same-args", "pool"
PER_REQUEST = "per-request"
GIVE = "give per-user, per-request, shared, same-args or pool:N with N of 1 or more, e.g. pool:4"


@dataclass(frozen=True, slots=True)
class Channels:
    """One way of having connections, the same words for gRPC and HTTP.

    `per-user`: one each. `shared`: one for all users of a process. `pool:N`: up to N for all of them.
    `same-args`: a gRPC channel each, made with equal arguments, which gRPC itself joins onto one connection:
    what a plain client gets, and the negative control of `shared`. Nothing joins connections of HTTP, nor
    channels over TLS, where it is as `per-user`. `per-request`: a new one for every request, over HTTP alone;
    a load balancer that deals out connections, as a Kubernetes Service does, has something to deal out. Over
    gRPC as `per-user`.

    `size`: how many the users of a process share; 0 where each has his own.
    """

    kind: str
    size: int = 0

    def __str__(self) -> str:
        """As it is typed."""
        return f"{POOL}:{self.size}" if self.kind == POOL else self.kind


def parse(text: str) -> Channels:
    """The channels of that name. Raises ValueError with a sentence that says what to give.

    >>> parse("pool:4")
    Channels(kind='pool', size=4)
    """
    if text in (PER_USER, PER_REQUEST, SAME_ARGS):
        return Channels(text)
    if text == SHARED:
        return Channels(SHARED, 1)
    pool = re.fullmatch(rf"{POOL}:([1-9][0-9]{{0,4}})", text)
    if pool is None:
        raise ValueError(GIVE)
    return Channels(POOL, int(pool[1]))
