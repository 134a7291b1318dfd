"""What every arm shares: its options, its clock, and the one line of JSON that it tells at the end."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NoReturn

WARM_UP_S = 1.0
LISTEN_S = 0.5


@dataclass
class Span:
    """A measured time: seconds of the wall's clock, and of processors over all threads of this process."""

    wall_s: float = 0.0
    cpu_s: float = 0.0


@dataclass(frozen=True)
class Told:
    """What an arm found: `p50_ms` is None where it was not measured, `own_per_s` is a peer's own figure."""

    requests: int
    wall_s: float
    cpu_s: float
    p50_ms: float | None
    failures: int
    own_per_s: float | None = None

    @classmethod
    def of(cls, span: Span, requests: int, took_s: Sequence[float], failures: int) -> Told:
        """From the seconds that requests took, not necessarily those of the span."""
        p50_ms = statistics.median(took_s) * 1e3 if took_s else None
        return cls(requests, span.wall_s, span.cpu_s, p50_ms, failures)


@contextmanager
def measured() -> Iterator[Span]:
    """A Span, filled in at the end of the block."""
    span = Span()
    wall_s, cpu_s = time.perf_counter(), time.process_time()
    try:
        yield span
    finally:
        span.cpu_s = time.process_time() - cpu_s
        span.wall_s = time.perf_counter() - wall_s


def arm_options(what: str | None) -> argparse.ArgumentParser:
    """The options of every arm."""
    parser = argparse.ArgumentParser(description=what)
    parser.add_argument("kind", help="kind of request, as in benchmarks.generating.kinds")
    parser.add_argument("users", type=int)
    parser.add_argument("port", type=int, help="of the null server on this host")
    parser.add_argument("bodies", type=Path, help="the folder that benchmarks.generating.bodies wrote")
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--warm-up", type=float, default=WARM_UP_S)
    parser.add_argument("--listen", type=float, default=LISTEN_S, help="seconds off the clock, for the p50")
    return parser


def told(figures: Told) -> None:
    """Print the one line."""
    print(json.dumps(asdict(figures)), flush=True)


def ended() -> NoReturn:
    """Leave at once, without the ends of users and of gRPC's threads, which nobody waits for."""
    sys.stdout.flush()
    os._exit(0)


def read_told(text: str) -> Told:
    """The line, from all that the arm printed. Raises ValueError where it has none."""
    lines = [line for line in text.splitlines() if line.startswith('{"requests"')]
    if not lines:
        raise ValueError("it told no figures")
    return Told(**json.loads(lines[-1]))
