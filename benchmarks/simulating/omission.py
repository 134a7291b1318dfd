"""Coordinated omission: latency of users at a server that stalls, beside that of arrivals."""

from __future__ import annotations

import numpy as np

from benchmarks.bounds import Bounds
from benchmarks.simulating.queues import Requests, Station, arriving, closed
from reports.histogram.percentiles import told_percentiles_ns
from reports.topics.load.closed_load import LOAD_SHARE, UNEVEN, rounded_down

SECONDS, TIMES, SEED = 20, 20, 30
USERS = (1, 4, 8)
ONCE = (1.0,) * 10 + (110.0,) + (1.0,) * (SECONDS - 10)
"""Factors of the seconds: the first execution of the eleventh takes 110 times as long as others."""
OFTEN = tuple(40.0 if second % 2 else 1.0 for second in range(SECONDS))
"""Likewise in every other second, less."""
HIDDEN, SHOWN = 1.05, 5.0
"""Times: what counts as no change, and as one that nobody could overlook."""


def promises(bounds: Bounds) -> None:
    """Prints what one stall of 1.1 s in 20 s does to both p99, and both of a server that stalls often."""
    random = np.random.default_rng(SEED)
    smooth, stalling = (Station(0.01, spread=0.02, slow=slow) for slow in ((1.0,), ONCE))
    for users in USERS:
        before = p50_p99_ms([closed(users, smooth, SECONDS, random) for _ in range(TIMES)])
        runs = [closed(users, stalling, SECONDS, random) for _ in range(TIMES)]
        after, waited = p50_p99_ms(runs), p50_p99_ms(at_advised_rate(runs, stalling, random))
        bounds.at_most(f"{users} users: p99 with a stall over p99 without", after[1] / before[1], HIDDEN, "×")
        bounds.at_least(f"  arrivals' p99 over the {users} users'", waited[1] / after[1], SHOWN, "×")
    often(bounds, random)


def often(bounds: Bounds, random: np.random.Generator) -> None:
    """Where the report prints its command, arrivals wait longer than the users did."""
    station = Station(0.01, spread=0.02, slow=OFTEN)
    runs = [closed(4, station, SECONDS, random) for _ in range(TIMES)]
    seen, waited = p50_p99_ms(runs), p50_p99_ms(at_advised_rate(runs, station, random))
    bounds.at_least("stalls often: p99 over p50 of 4 users", seen[1] / seen[0], UNEVEN, "×")
    bounds.at_least("  arrivals' p99 over the 4 users'", waited[1] / seen[1], 1.0, "×")


def at_advised_rate(runs: list[Requests], station: Station, random: np.random.Generator) -> list[Requests]:
    """Arrivals by chance at the rate of the report's command, as many runs."""
    per_s = float(np.median([len(run.starts_s) / SECONDS for run in runs]))
    return [arriving(rounded_down(LOAD_SHARE * per_s), station, SECONDS, random) for _ in runs]


def p50_p99_ms(runs: list[Requests]) -> tuple[float, float]:
    """Of all runs together, as the report tells them."""
    pairs = ((run.starts_s, run.ends_s) for run in runs)
    starts_s, ends_s = (np.concatenate(times) for times in zip(*pairs, strict=True))
    whole = Requests(starts_s, ends_s).run().whole
    p50_ns, p99_ns = told_percentiles_ns(whole.histogram("latency"), (50.0, 99.0))
    return (p50_ns or np.nan) / 1e6, (p99_ns or np.nan) / 1e6
