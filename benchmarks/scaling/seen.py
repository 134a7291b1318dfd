"""What a simulation has seen of its master."""

from __future__ import annotations

from dataclasses import dataclass, field

QUANTILES = (50.0, 99.0, 100.0)


@dataclass
class Span:
    """What a stretch of time cost the master."""

    cores: float = 0.0
    lag_p99_ms: float | None = None
    lag_max_ms: float | None = None
    ledger_bytes_per_s: float = 0.0


@dataclass
class Seen:
    """All that was seen, as `head` prints it."""

    ready_s: float = 0.0
    ready_cpu_s: float = 0.0
    link: Span = field(default_factory=Span)
    warm_up: Span = field(default_factory=Span)
    measure: Span = field(default_factory=Span)
    asks_ms: list[float] = field(default_factory=list)
    spawns_ms: list[float] = field(default_factory=list)
    orders_ms: dict[str, list[float]] = field(default_factory=dict)
    to_ledger_ms: list[float] = field(default_factory=list)
    """Median, 99th percentile and maximum, from a worker's sending to the ledger."""
    windows: int = 0
    lost: int = 0
    caveats: list[str] = field(default_factory=list)
    least_heartbeats: int = 3
    """Of the three that a worker may miss, how many it had left in the worst case."""


def ms(ns: float | None) -> float | None:
    """Milliseconds."""
    return None if ns is None else ns / 1e6


def quantiles(values: list[float]) -> list[float]:
    """Median, 99th percentile, maximum; nothing of nothing.

    >>> quantiles([3.0, 1.0, 2.0])
    [2.0, 3.0, 3.0]
    """
    ordered = sorted(values)
    return [ordered[min(len(ordered) - 1, int(len(ordered) * q / 100))] for q in QUANTILES] if ordered else []
