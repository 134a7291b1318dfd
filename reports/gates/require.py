"""What one threshold requires, from its text: a bound on a column, on a ratio of ways, or to a baseline."""

import re
from dataclasses import dataclass
from difflib import get_close_matches

from reports.gates.columns import FAILURE_RATIO, GATED, Kind, kind_of
from reports.gates.fields import MOST

BASELINE = "baseline"
MOST_TIMES = 1_000.0
"""As a ratio; nobody means more, nor less than its inverse."""
_BOUND = re.compile(r"(?P<what>.+?)\s*(?P<sign><=|>=)\s*(?P<bound>[0-9.eE+-]+)")
_EXAMPLES = (
    "write 'latency_p99_ms <= 120', 'onnx-grpc / onnx-http >= 0.95' with of = \"images_per_s\", or "
    "'latency_p95_ms / baseline <= 1'"
)


class RequireError(Exception):
    """What one threshold requires makes no sense; it begins with a field's name and ends without a period."""


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
    def kind(self) -> Kind:
        """How it is judged: ratios by repeats, whatever the column is."""
        return kind_of(self.column) if self.absolute else Kind.REPEATED


def parse_require(text: str, of: str = "") -> Require:
    """From `require` and `of` of a threshold; RequireError where it is none."""
    found = _BOUND.fullmatch(text.strip())
    try:
        bound = float(found["bound"]) if found else None
    except ValueError:
        bound = None
    if found is None or bound is None:
        raise RequireError(f"require {text!r:.100}: {_EXAMPLES}")
    over, slash, under = (part.strip() for part in found["what"].partition(" / "))
    at_most = found["sign"] == "<="
    if not slash:
        require = Require(text, _column(over, "require"), at_most, bound)
    elif under == BASELINE:
        require = Require(text, _column(over, "require"), at_most, bound, under=BASELINE)
    else:
        require = Require(text, _column(of, "of", over), at_most, bound, over, under)
        if over.count("*") != under.count("*") or over.count("*") > 1:
            raise RequireError(f"require {text!r:.100}: write one * on both sides of the /, or none")
        if over == under or not (over and under):
            raise RequireError(f"require {text!r:.100}: name two different endpoints or cells")
    if of and not require.over:
        raise RequireError(f"of {of!r:.100}: is for the ratio of two endpoints; leave it out")
    _check_bound(require)
    return require


def _column(name: str, field: str, over: str = "") -> str:
    if name in GATED:
        return name
    if over and not name:
        raise RequireError('of: is missing; say which column the ratio is of, e.g. of = "images_per_s"')
    if not over and "-" in name:
        raise RequireError(f"{field} {name!r:.100}: is no column; for a ratio of two endpoints {_EXAMPLES}")
    near = get_close_matches(name, GATED, 1)
    hint = f"did you mean {near[0]}?" if near else f"they are {', '.join(GATED)}"
    raise RequireError(f"{field} {name!r:.100}: is no column that can be gated; {hint}")


def _check_bound(require: Require) -> None:
    said = f"require {require.text!r:.100}"
    if require.column == FAILURE_RATIO and not require.at_most:
        raise RequireError(f"{said}: failures are bounded from above; write <=")
    if require.absolute:
        if not 0 <= require.bound <= MOST:
            raise RequireError(f"{said}: give a bound of 0 or more, and of {MOST:g} at most")
        if require.bound > 1 and require.column == FAILURE_RATIO:
            raise RequireError(f"{said}: is a share of the requests; give a bound from 0 to 1, e.g. 0.01")
        return
    if not 1 / MOST_TIMES <= require.bound <= MOST_TIMES:
        raise RequireError(f"{said}: give a ratio from {1 / MOST_TIMES:g} to {MOST_TIMES:,g}")
    if kind_of(require.column) is Kind.EVIDENCE or require.column == FAILURE_RATIO:
        raise RequireError(
            f"{said}: {require.column} has no ratio that means something; bound it by itself, e.g. "
            f"'{require.column} <= {require.bound:g}'"
        )
