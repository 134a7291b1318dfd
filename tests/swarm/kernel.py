"""A kernel that tells of connections what a test wants."""

from typing import Any

from swarm.distributed.tcp_stats import ESTABLISHED, TcpInfo


def info_of(**values: int) -> TcpInfo:
    """An established connection that has done nothing yet."""
    counts = (
        "segs_out segs_in bytes_sent bytes_retrans total_retrans bytes_received busy_time rwnd_limited "
        "sndbuf_limited notsent_bytes delivery_rate"
    )
    made = {"state": ESTABLISHED, "rtt": 40, "min_rtt": 30, "snd_cwnd": 10, "snd_mss": 1448}
    return {**made, **dict.fromkeys(counts.split(), 0), **values}


class Kernel:
    """What `Connections` reads: set `seen` before each look."""

    def __init__(self) -> None:
        self.seen: dict[Any, TcpInfo] = {}
        self.ports: list[int] = []

    def __call__(self, port: int) -> dict[Any, TcpInfo]:
        self.ports.append(port)
        return dict(self.seen)
