"""The fields of `struct tcp_info`, as many as a kernel tells."""

from __future__ import annotations

import socket
import struct

import pytest

from swarm.distributed.tcp_stats import ESTABLISHED, parse_tcp_info, read_tcp_info

FULL = struct.pack("=8B24I4Q2I4I4Q2I2Q", *[1] + [0] * 7, *range(100, 142))
"""Every field that is read, in the order of `struct tcp_info`: 100 for the first of 32 bits, and so on."""


def test_the_fields_of_tcp_info() -> None:
    info = parse_tcp_info(FULL + bytes(64))
    assert len(info) == 43
    assert info["state"] == 1
    expected = {
        "rto": 100, "snd_mss": 102, "rtt": 115, "snd_cwnd": 118, "total_retrans": 123, "bytes_received": 127,
        "segs_out": 128, "segs_in": 129, "notsent_bytes": 130, "min_rtt": 131, "delivery_rate": 134,
        "busy_time": 135, "rwnd_limited": 136, "sndbuf_limited": 137, "bytes_sent": 140, "bytes_retrans": 141,
    }  # fmt: skip
    assert {name: info[name] for name in expected} == expected


@pytest.mark.skipif(not hasattr(socket, "TCP_INFO"), reason="only Linux tells of its connections")
def test_the_fields_of_a_real_connection() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        with socket.socket() as client:
            client.connect(listener.getsockname())
            info = read_tcp_info(client)
    assert info["state"] == ESTABLISHED
    assert info["snd_cwnd"] > 0
    assert info["snd_mss"] > 0


def test_an_older_kernel_tells_less() -> None:
    since_2_6 = parse_tcp_info(FULL[:104])
    assert list(since_2_6)[-1] == "total_retrans"
    assert list(parse_tcp_info(FULL[:107]))[-1] == "total_retrans", "a field cut in two is not told"
    assert parse_tcp_info(FULL[:8]) == {"state": 1}
