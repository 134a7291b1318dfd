"""This process's connections to an endpoint as the kernel sees them: Linux's TCP_INFO, by its own names."""

import functools
import os
import socket
import struct
from collections import Counter
from collections.abc import Callable, Mapping
from statistics import fmean
from typing import Any

import gevent
from gevent import monkey

from users.transport.admin_connection import is_marked

LOOKED_AT = 50
BREATH_S = 0.001
"""After this many descriptors, sleep this long so that other greenlets run. A sleep of 0
would queue behind every user who wants to send: with a thousand of them, one look would take seconds.
"""
US = 1_000
GROWING = {
    "segments_out": ("segs_out", 1),
    "segments_in": ("segs_in", 1),
    "bytes_sent": ("bytes_sent", 1),
    "bytes_retransmitted": ("bytes_retrans", 1),
    "retransmits": ("total_retrans", 1),
    "bytes_received": ("bytes_received", 1),
    "busy_ns": ("busy_time", US),
    "rwnd_limited_ns": ("rwnd_limited", US),
    "sndbuf_limited_ns": ("sndbuf_limited", US),
}
"""Our name → the kernel's, and the factor between their units; each counts from a connection's start."""
_FIELDS = """
    I:rto I:ato I:snd_mss I:rcv_mss I:unacked I:sacked I:lost I:retrans I:fackets
    I:last_data_sent I:last_ack_sent I:last_data_recv I:last_ack_recv
    I:pmtu I:rcv_ssthresh I:rtt I:rttvar I:snd_ssthresh I:snd_cwnd I:advmss I:reordering
    I:rcv_rtt I:rcv_space I:total_retrans
    Q:pacing_rate Q:max_pacing_rate Q:bytes_acked Q:bytes_received I:segs_out I:segs_in
    I:notsent_bytes I:min_rtt I:data_segs_in I:data_segs_out
    Q:delivery_rate Q:busy_time Q:rwnd_limited Q:sndbuf_limited I:delivered I:delivered_ce
    Q:bytes_sent Q:bytes_retrans I:dsack_dups I:reord_seen I:rcv_ooopack I:snd_wnd
"""
"""In the order of `include/uapi/linux/tcp.h`: I is 32 bits, Q is 64. Newer fields stand at the end.

The eight before them are a byte each, and apart from the first, `state`, not used here.
"""
ESTABLISHED = 1
HELD_BACK = 2
"""Segments whose acknowledgement a receiver may hold back (RFC 1122, 4.2.3.2): they need not be under way."""
UNLIMITED = 1 << 62
"""A pacing rate from here on stands for none."""
BBR = b"bbr"
TcpInfo = dict[str, Any]
"""Times in microseconds, rates in bytes a second, as the kernel gives them; `state` is 1 when established.

`peer` is the IP address on the other side.
"""
Seen = Mapping[Any, TcpInfo]
"""By the local address of a connection."""


def own_connections(port: int) -> dict[Any, TcpInfo]:
    """Every connection of this process to a peer's `port`, save marked ones; empty without TCP_INFO."""
    if not hasattr(socket, "TCP_INFO"):
        return {}
    found: dict[Any, TcpInfo] = {}
    try:
        descriptors = os.listdir("/proc/self/fd")
    except OSError:
        return {}  # no /proc, or no descriptor left to read it with
    for number, descriptor in enumerate(descriptors, 1):
        if number % LOOKED_AT == 0:
            gevent.sleep(BREATH_S)  # a thousand take 20 ms, and users send meanwhile
        try:
            if os.readlink(f"/proc/self/fd/{descriptor}").startswith("socket:"):
                found |= _looked_at(int(descriptor), port)
        except OSError:
            continue  # closed meanwhile, or no TCP socket with a peer
    return found


def _looked_at(descriptor: int, port: int) -> dict[Any, TcpInfo]:
    # The original class: gevent's would change the mode of a descriptor that grpcio uses.
    with monkey.get_original("socket", "socket")(fileno=os.dup(descriptor)) as twin:
        peer = twin.getpeername()
        if not isinstance(peer, tuple) or peer[1] != port or is_marked(twin):
            return {}
        return {twin.getsockname(): {**read_tcp_info(twin), **congestion_of(twin), "peer": peer[0]}}


class Connections:
    """Readings one after the other; each `take` tells what has come since the last."""

    def __init__(self, read: Callable[[int], Seen] = own_connections) -> None:
        self._read = read
        self._last: Seen = {}
        self._port = 0

    def watch(self, port: int) -> None:
        """Begin with the connections to another port."""
        self._port = port
        self._last = self._read(port)

    def take(self) -> dict[str, Any]:
        """Figures since the last take as the ledger's `path` records name them; empty without any."""
        seen, last = self._read(self._port), self._last
        self._last = seen
        if not seen:
            return {}
        grown = {
            name: factor * sum(_growth(info, last.get(end), field) for end, info in seen.items())
            for name, (field, factor) in GROWING.items()
            if all(field in info for info in seen.values())
        }
        return {**standing(list(seen.values())), **grown}


def _growth(now: TcpInfo, before: TcpInfo | None, field: str) -> int:
    # A port that is used again starts from nothing.
    grown: int = now[field] - before[field] if before else now[field]
    return grown if grown >= 0 else int(now[field])


def standing(infos: list[TcpInfo]) -> dict[str, Any]:
    """What holds now, of all connections."""
    measured = [info for info in infos if info["rtt"]]
    values: dict[str, Any] = {
        "connections": sum(info["state"] == ESTABLISHED for info in infos),
        "cwnd_bytes": round(fmean(info["snd_cwnd"] * info["snd_mss"] for info in infos)),
    }
    if all("notsent_bytes" in info for info in infos):
        values["not_sent_bytes"] = sum(info["notsent_bytes"] for info in infos)
    if all("unacked" in info for info in infos):
        values["unacked_bytes"] = sum(max(0, info["unacked"] - HELD_BACK) * info["snd_mss"] for info in infos)
    if all("bbr" in info for info in infos):
        values["bbr_connections"] = sum(info["bbr"] for info in infos)
    if peers := Counter(info["peer"] for info in infos if "peer" in info and info["state"] == ESTABLISHED):
        values["peers"] = dict(peers)
    if windows := [info["snd_wnd"] for info in infos if info.get("snd_wnd")]:
        values["window_bytes"] = round(fmean(windows))
    if paces := [pace for info in infos if 0 < (pace := info.get("pacing_rate", 0)) < UNLIMITED]:
        values["pacing_bytes_per_s"] = round(fmean(paces))
    if measured:
        values["rtt_ns"] = round(US * fmean(info["rtt"] for info in measured))
    if least := [info["min_rtt"] for info in measured if 0 < info.get("min_rtt", 0) < 0xFFFFFFFF]:
        values["min_rtt_ns"] = US * min(least)
    if rates := [info["delivery_rate"] for info in infos if info.get("delivery_rate")]:
        values["delivery_bytes_per_s"] = round(fmean(rates))
    return values


def read_tcp_info(connection: socket.socket) -> TcpInfo:
    """What the kernel tells of a connection; an older kernel tells less. Raises OSError."""
    return parse_tcp_info(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 512))


def congestion_of(connection: socket.socket) -> dict[str, int]:
    """`{"bbr": 1}` where BBR is its congestion control, 0 where another is; empty where it is not told."""
    try:
        name = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
    except OSError:
        return {}
    return {"bbr": int(name.rstrip(b"\0") == BBR)}


def parse_tcp_info(data: bytes) -> TcpInfo:
    """The fields that `data` is long enough for."""
    names, form = _form(len(data))
    return dict(zip(names, form.unpack_from(data), strict=True))


@functools.cache
def _form(size: int) -> tuple[list[str], struct.Struct]:
    """The names and the form of the fields in so many bytes, worked out once for all connections."""
    names, form = ["state"], "=B7x"
    for field in _FIELDS.split():
        kind, _, name = field.partition(":")
        if struct.calcsize(form + kind) > size:
            break
        names.append(name)
        form += kind
    return names, struct.Struct(form)
