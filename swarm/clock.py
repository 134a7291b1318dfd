"""This process's time of day: read once, then steady, as setting it would break a timeline."""

import time
from datetime import UTC, datetime

NS_PER_S = 1_000_000_000
_ANCHOR_NS = time.time_ns() - time.perf_counter_ns()


def wall_ns() -> int:
    """Nanoseconds since the epoch."""
    return _ANCHOR_NS + time.perf_counter_ns()


def wall_s() -> float:
    """Seconds since the epoch."""
    return wall_ns() / NS_PER_S


def utc_now() -> str:
    """ISO 8601 with a Z."""
    now = datetime.fromtimestamp(wall_s(), UTC)
    return now.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def step_s() -> float:
    """By how many seconds the machine's clock has been set forward since this process began."""
    return (time.time_ns() - wall_ns()) / NS_PER_S
