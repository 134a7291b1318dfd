"""What one threshold requires, from its text: a bound on a column, on a ratio of ways, or to a baseline.

Thresholds are set on the numbers of cells.csv and two shares, each written in its unit.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from enum import Enum

from reports.cells_csv.columns import NUMBERS
from reports.format import digits
from reports.histogram.percentiles import BEYOND_GATED, ENOUGH, least_results
from reports.ledger.axes import of_trait

BASELINE = "baseline"
MOST_TIMES = 1_000.0
"""As a ratio; nobody means more, nor less than its inverse."""
_NUMBER = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"
_BOUND = re.compile(rf"(?P<what>.+?)\s*(?P<sign><=|>=)\s*(?P<bound>{_NUMBER})")
_EXAMPLES = (
    "write 'latency_p99_ms <= 120', 'onnx-grpc / onnx-http >= 0.95' with of = \"images_per_s\", or "
    "'latency_p95_ms / baseline <= 1'"
)
FAILURE_RATIO, UNEXPLAINED_SHARE = "failure_ratio", "unexplained_share"
GOODPUT_SHARE, GOODPUT_PER_S = "goodput_share", "goodput_per_s"
MOST = 1e15
"""Numbers beyond that, or not finite, mean nothing here."""
_ENDINGS = {"_ms": " ms", "_pct": " %", "_per_s": "/s", "_bytes": " bytes", "_w": " W"}


class GateError(Exception):
    """Thresholds, or a baseline, that make no sense; one sentence naming the place and the fix."""


class JudgedBy(Enum):
    """How a column is judged."""

    SHARE = "by the share of requests beyond the bound, in one run or more"
    REPEATED = "by the repeats, whose values vary"
    FACT = "by the worst run: it is known, not estimated"
    EVIDENCE = "by the worst run: without it nothing can be said of the cell"


_UNJUDGED = frozenset({"repeat", "batch", "level", *of_trait("column")})
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

JUDGED = {
    **dict.fromkeys(GATED, JudgedBy.REPEATED),
    **dict.fromkeys((*PERCENTILES, FAILURE_RATIO, GOODPUT_SHARE), JudgedBy.SHARE),
    **dict.fromkeys(("failures", "abandoned", "latency_max_ms", "workers", "hosts"), JudgedBy.FACT),
    **dict.fromkeys(
        ("tcp_connections", "request_bytes", "response_bytes", "gpu_memory_bytes"), JudgedBy.FACT
    ),
    **dict.fromkeys(("requests", "images", "measure_s"), JudgedBy.EVIDENCE),
    **dict.fromkeys(("worker_cpu_pct", "loop_lag_p99_ms", "send_delay_p99_ms"), JudgedBy.EVIDENCE),
}
COMPARABLE = tuple(name for name in GATED if name != FAILURE_RATIO and JUDGED[name] is not JudgedBy.EVIDENCE)
"""Columns of which a ratio means something."""


def results_needed(column: str) -> int:
    """Successes that must stand behind a column to gate on it, all runs of a side together; 1 for most."""
    _, percent = PERCENTILES.get(column, ("", 0.0))
    return least_results(percent, BEYOND_GATED) if percent else 1


def results_in_a_run(column: str) -> int:
    """Successes that a single run must have for its own figure to count beside others'."""
    _, percent = PERCENTILES.get(column, ("", 0.0))
    return ENOUGH[f"p{percent:g}"] if percent else 1


@dataclass(frozen=True)
class Require:
    """`column` is bounded itself, or the ratio of `over`'s to `under`'s, which may be the baseline."""

    text: str
    column: str
    at_most: bool
    bound: float
    over: str = ""
    under: str = ""

    @property
    def absolute(self) -> bool:
        """Whether the column itself is bounded, and no ratio of two."""
        return not self.under

    @property
    def to_baseline(self) -> bool:
        """Whether it is a ratio to the baseline."""
        return self.under == BASELINE and not self.over

    @property
    def kind(self) -> JudgedBy:
        """How it is judged: ratios by repeats, whatever the column is."""
        return JUDGED[self.column] if self.absolute else JudgedBy.REPEATED


def parse_require(text: str, of: str = "") -> Require:
    """From `require` and `of` of a threshold; GateError, which lacks place and period, where it is none."""
    found = _BOUND.fullmatch(text.strip())
    if found is None:
        raise GateError(f"require {text!r:.100}: {_EXAMPLES}")
    bound = float(found["bound"])
    over, slash, under = (part.strip() for part in found["what"].partition(" / "))
    at_most = found["sign"] == "<="
    if not slash or under == BASELINE:
        require = Require(text, _column(over, "require"), at_most, bound, under=under)
    else:
        require = Require(text, _column(of, "of", over), at_most, bound, over, under)
        if over.count("*") != under.count("*") or over.count("*") > 1:
            raise GateError(f"require {text!r:.100}: write one * on both sides of the /, or none")
        if over == under or not (over and under):
            raise GateError(f"require {text!r:.100}: name two different endpoints or cells")
    if of and not require.over:
        raise GateError(f"of {of!r:.100}: is for the ratio of two endpoints; leave it out")
    _check_bound(require)
    return require


def _column(name: str, field: str, over: str = "") -> str:
    if name in GATED:
        return name
    if over and not name:
        raise GateError('of: is missing; say which column the ratio is of, e.g. of = "images_per_s"')
    if not over and "-" in name:
        raise GateError(f"{field} {name!r:.100}: is no column; for a ratio of two endpoints {_EXAMPLES}")
    raise GateError(f"{field} {name!r:.100}: is no column that can be gated; {hint(name, GATED)}")


def hint(name: str, known: Sequence[str], otherwise: str = "") -> str:
    """Which known name was meant, where one is near; else what is said `otherwise`, or all of them."""
    near = get_close_matches(name, known, 1)
    return f"did you mean {near[0]}?" if near else otherwise or f"they are {', '.join(known)}"


def _check_bound(require: Require) -> None:
    said = f"require {require.text!r:.100}"
    if require.column == FAILURE_RATIO and not require.at_most:
        raise GateError(f"{said}: failures are bounded from above; write <=")
    if require.column == GOODPUT_SHARE and require.absolute and (require.at_most or not require.bound < 1):
        raise GateError(f"{said}: good requests are bounded from below; write >= and a share below 1")
    if require.absolute:
        if not 0 <= require.bound <= MOST:
            raise GateError(f"{said}: give a bound of 0 or more, and of {MOST:g} at most")
        if require.bound > 1 and require.column == FAILURE_RATIO:
            raise GateError(f"{said}: is a share of the requests; give a bound from 0 to 1, e.g. 0.01")
        return
    if not 1 / MOST_TIMES <= require.bound <= MOST_TIMES:
        raise GateError(f"{said}: give a ratio from {1 / MOST_TIMES:g} to {MOST_TIMES:,g}")
    if require.column not in COMPARABLE:
        raise GateError(
            f"{said}: {require.column} has no ratio that means something; bound it by itself, e.g. "
            f"'{require.column} <= {require.bound:g}'"
        )


@dataclass(frozen=True)
class Unit:
    """What stands behind a number, and what a value is multiplied by to become one."""

    name: str
    factor: float = 1.0

    def number(self, value: float) -> str:
        """To three digits, without the unit."""
        return digits(self.factor * value)

    def text(self, value: float) -> str:
        """With the unit."""
        return f"{self.number(value)}{self.name}"


def unit_of(column: str, ratio: bool) -> Unit:
    """The unit of a column's values, or of ratios of them."""
    if ratio:
        return Unit("×")
    if column in (FAILURE_RATIO, UNEXPLAINED_SHARE, GOODPUT_SHARE):
        return Unit(" %", 100)
    if column == "measure_s":
        return Unit(" s")
    return Unit(next((unit for ending, unit in _ENDINGS.items() if column.endswith(ending)), ""))
