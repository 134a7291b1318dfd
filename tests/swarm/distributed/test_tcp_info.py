"""The fields of `struct tcp_info`, as many as a kernel tells."""

import socket
import struct

import pytest

from swarm.distributed.tcp_stats import ESTABLISHED, congestion_of, parse_tcp_info, read_tcp_info

FULL = struct.pack("=8B24I4Q2I4I4Q2I2Q4I", *[1] + [0] * 7, *range(100, 146))
"""Every field that is read, in the order of `struct tcp_info`: 100 for the first of 32 bits, and so on."""


def test_the_fields_of_tcp_info() -> None:
    info = parse_tcp_info(FULL + bytes(64))
    assert len(info) == 47
    assert info["state"] == 1
    expected = {
        "rto": 100, "snd_mss": 102, "rtt": 115, "snd_cwnd": 118, "total_retrans": 123, "bytes_received": 127,
        "segs_out": 128, "segs_in": 129, "notsent_bytes": 130, "min_rtt": 131, "delivery_rate": 134,
        "busy_time": 135, "rwnd_limited": 136, "sndbuf_limited": 137, "bytes_sent": 140, "bytes_retrans": 141,
        "unacked": 104, "pacing_rate": 124, "snd_wnd": 145,
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
    assert info["snd_wnd"] > 0


@pytest.mark.skipif(not hasattr(socket, "TCP_CONGESTION"), reason="only Linux tells of congestion control")
@pytest.mark.parametrize(("name", "told"), [(b"bbr", {"bbr": 1}), (b"reno", {"bbr": 0})])
def test_the_congestion_control_of_a_real_connection(name: bytes, told: dict[str, int]) -> None:
    with socket.socket() as connection:
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name)
        except OSError:
            pytest.skip(f"this kernel has no {name.decode()}, or does not allow it")
        assert congestion_of(connection) == told


def test_an_older_kernel_tells_less() -> None:
    since_2_6 = parse_tcp_info(FULL[:104])
    assert list(since_2_6)[-1] == "total_retrans"
    assert list(parse_tcp_info(FULL[:107]))[-1] == "total_retrans", "a field cut in two is not told"
    assert parse_tcp_info(FULL[:8]) == {"state": 1}
