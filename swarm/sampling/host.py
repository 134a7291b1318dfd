"""The machine that the master runs on: its processors' load and its network's traffic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psutil


class HostSampler:
    """Read once a second. `times` and `traffic` are psutil's.

    psutil's own `cpu_percent` keeps the last reading by thread, and under gevent every greenlet is one.
    """

    def __init__(
        self,
        times: Callable[[], Any] = psutil.cpu_times,
        traffic: Callable[[], Any] = lambda: psutil.net_io_counters(nowrap=False),
    ) -> None:
        self._times, self._traffic = times, traffic
        self._last = times()

    def read(self) -> dict[str, Any]:
        """`{"host": {cpu_pct since the last reading, tx_bytes and rx_bytes since the machine's start}}`.

        Bytes are of all interfaces, loopback included: local servers are reached over it.
        """
        before, self._last = self._last, self._times()
        found: dict[str, Any] = {}
        share = busy_share(before, self._last)
        if share is not None:
            found["cpu_pct"] = round(100 * share, 1)
        traffic = self._traffic()
        if traffic is not None:
            found.update(tx_bytes=traffic.bytes_sent, rx_bytes=traffic.bytes_recv)
        return {"host": found} if found else {}


def busy_share(before: Any, after: Any) -> float | None:
    """Of all processors' time between two `psutil.cpu_times()`, what was not idle: 0 to 1.

    None where no time has passed. Linux counts a guest's time as the user's too; waiting for a disk is idle.
    """

    def spent(*names: str) -> float:
        return sum(getattr(after, name, 0.0) - getattr(before, name, 0.0) for name in names)

    total = spent(*after._fields) - spent("guest", "guest_nice")
    if total <= 0:
        return None
    return min(max(1 - spent("idle", "iowait") / total, 0.0), 1.0)
