"""What thresholds may be set on: the numbers of cells.csv and two shares, and how each is judged."""

from enum import Enum
from math import ceil

from reports.caveats.run import ENOUGH
from reports.cells_csv.columns import NUMBERS

FAILURE_RATIO, UNEXPLAINED_SHARE = "failure_ratio", "unexplained_share"


class Kind(Enum):
    """How a column is judged."""

    SHARE = "by the share of requests beyond the bound, in one run or more"
    REPEATED = "by the repeats, whose values vary"
    FACT = "by the worst run: it is known, not estimated"
    EVIDENCE = "by the worst run: without it nothing can be said of the cell"


_FACTS = frozenset(
    [
        "failures",
        "abandoned",
        "latency_max_ms",
        "workers",
        "hosts",
        "tcp_connections",
        "request_bytes",
        "response_bytes",
        "gpu_memory_bytes",
    ]
)
_EVIDENCE = frozenset(
    ["requests", "images", "measure_s", "worker_cpu_pct", "loop_lag_p99_ms", "send_delay_p99_ms"]
)
OF_FAILURES = frozenset({FAILURE_RATIO, "failures", "abandoned"})
"""They are known of a run of which no request succeeded, too."""
OF_THE_RATE = frozenset({"requests_per_s", "images_per_s", "offered_per_s"})
"""With open load they are what was asked for, however slow the server is."""
_UNJUDGED = frozenset({"repeat", "batch", "level"})
PERCENTILES = {
    f"{stem}_{name}_ms": (histogram, percent)
    for stem, histogram, percents in (
        ("latency", "latency", {"p50": 50.0, "p90": 90.0, "p95": 95.0, "p99": 99.0, "p999": 99.9}),
        ("service", "service_time", {"p50": 50.0, "p95": 95.0, "p99": 99.0}),
    )
    for name, percent in percents.items()
}
"""Columns that are percentiles of requests: the histogram of a window that has them, and the percent."""
GATED = (*(name for name in NUMBERS if name not in _UNJUDGED), FAILURE_RATIO, UNEXPLAINED_SHARE)
BEYOND = 50
"""As many results must lie beyond a percentile that is gated on: 5,000 in all for p99."""


def kind_of(column: str) -> Kind:
    """How one of GATED is judged."""
    if column in PERCENTILES or column == FAILURE_RATIO:
        return Kind.SHARE
    if column in _FACTS:
        return Kind.FACT
    return Kind.EVIDENCE if column in _EVIDENCE else Kind.REPEATED


def results_needed(column: str) -> int:
    """Successes that must stand behind a column to gate on it, all runs of a side together; 1 for most."""
    if column not in PERCENTILES:
        return 1
    _, percent = PERCENTILES[column]
    return ceil(round(BEYOND / (1 - percent / 100), 6))


def results_in_a_run(column: str) -> int:
    """Successes that a single run must have for its own figure to count beside others'."""
    if column not in PERCENTILES:
        return 1
    _, percent = PERCENTILES[column]
    return ENOUGH[f"p{percent:g}"]
