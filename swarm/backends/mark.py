"""A mark on our own questions' connections, so that the users' can be told from them in one process.

The mark is a TCP_USER_TIMEOUT that nobody else asks for: it is the one socket option that gRPC lets one set
(by its keepalive arguments), and so long that it changes nothing.
"""

from __future__ import annotations

import socket

MARK_MS = 3_599_789
NEVER_MS = 2**31 - 2
"""A keepalive time that turns gRPC's user timeout on and its pings as good as off."""
GRPC_MARK = (("grpc.keepalive_time_ms", NEVER_MS), ("grpc.keepalive_timeout_ms", MARK_MS))
_OPTION = getattr(socket, "TCP_USER_TIMEOUT", None)


def mark(connection: socket.socket) -> None:
    """Mark a TCP socket; does nothing on systems without the option."""
    if _OPTION is not None:
        connection.setsockopt(socket.IPPROTO_TCP, _OPTION, MARK_MS)


def is_marked(connection: socket.socket) -> bool:
    """Whether a TCP socket is one of ours. Raises OSError where it is no TCP socket."""
    return _OPTION is not None and connection.getsockopt(socket.IPPROTO_TCP, _OPTION) == MARK_MS
