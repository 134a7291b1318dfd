"""Linux's TCP_INFO: what the kernel knows of one connection, by the names of `struct tcp_info`."""

from __future__ import annotations

import functools
import socket
import struct

_BYTES = 8
"""The first fields are a byte each and of no use here."""
_FIELDS = """
    I:rto I:ato I:snd_mss I:rcv_mss I:unacked I:sacked I:lost I:retrans I:fackets
    I:last_data_sent I:last_ack_sent I:last_data_recv I:last_ack_recv
    I:pmtu I:rcv_ssthresh I:rtt I:rttvar I:snd_ssthresh I:snd_cwnd I:advmss I:reordering
    I:rcv_rtt I:rcv_space I:total_retrans
    Q:pacing_rate Q:max_pacing_rate Q:bytes_acked Q:bytes_received I:segs_out I:segs_in
    I:notsent_bytes I:min_rtt I:data_segs_in I:data_segs_out
    Q:delivery_rate Q:busy_time Q:rwnd_limited Q:sndbuf_limited I:delivered I:delivered_ce
    Q:bytes_sent Q:bytes_retrans
"""
"""In the order of `include/uapi/linux/tcp.h`: I is 32 bits, Q is 64. Newer fields stand at the end."""
ESTABLISHED = 1

TcpInfo = dict[str, int]
"""Times in microseconds, rates in bytes a second, as the kernel gives them; `state` is 1 when established."""


def read_tcp_info(connection: socket.socket) -> TcpInfo:
    """What the kernel tells of a connection; an older kernel tells less. Raises OSError."""
    return parse_tcp_info(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 512))


def parse_tcp_info(data: bytes) -> TcpInfo:
    """The fields that `data` is long enough for."""
    names, form = _form(len(data))
    return dict(zip(names, form.unpack_from(data), strict=True))


@functools.cache
def _form(size: int) -> tuple[list[str], struct.Struct]:
    """The names and the form of the fields in so many bytes, worked out once for all connections."""
    names, form = ["state"], f"=B{_BYTES - 1}x"
    for field in _FIELDS.split():
        kind, _, name = field.partition(":")
        if struct.calcsize(form + kind) > size:
            break
        names.append(name)
        form += kind
    return names, struct.Struct(form)
