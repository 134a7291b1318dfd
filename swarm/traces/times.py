"""The times of a trace: in which unit they are, and how exact; found, or asked where that is doubtful."""

import math
import re
from collections.abc import Collection
from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Times = NDArray[np.float64]
UNITS = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}
"""How many of each are a second."""
NUMBERS, ISO, ZONED = "numbers", "ISO 8601", "ISO 8601 with a zone"
UNIT_FLAG, RESOLUTION_FLAG = "--replay-unit", "--replay-resolution"
MOST_S, HOUR_S = 604_800, 3_600
"""The longest trace, a week; and the coarsest resolution that may be given."""
SPARSE = ((HOUR_S, 0.1), (3 * HOUR_S, 1.0))
"""Whole numbers in a column `time` may be milliseconds where they span more, with fewer rows for each."""
SINCE_1970_S = 1e9
"""Numbers from here to ten times this are seconds since 1970, of 2001 to 2286; and so in smaller units."""
MOST_PER_S = 10_000
"""More requests a second than a trace has on average, in a unit that was not told."""
KNOWN_FORMS: tuple[tuple[frozenset[str], str], ...] = (
    (frozenset({"hash_ids", "chat_id"}), "s"),
    (frozenset({"hash_ids"}), "ms"),
    (frozenset({"request tokens"}), "s"),
)
"""Units by the columns beside the time: of Alibaba's Bailian, of Mooncake and AIPerf, and of BurstGPT."""
CLOCKS_S = (60.0, 1.0, 0.1, 0.01)
"""Resolutions at which requests of one time did not come together; of a finer one that is left as it is."""
LEAST_TIMES, ENOUGH_TIMES = 3, 10
"""Different times that show a clock's resolution, and any other."""
GIVE_TIME = "give seconds from 0, or an ISO 8601 time such as 2026-11-26T09:00:00.250Z"
_SUFFIXES = {
    "s": ("s", "sec", "secs", "second", "seconds"),
    "ms": ("ms", "msec", "millis", "milliseconds"),
    "us": ("us", "µs", "μs", "usec", "micros", "microseconds"),
    "ns": ("ns", "nsec", "nanos", "nanoseconds"),
}
_UNIT_OF = {suffix: unit for unit, suffixes in _SUFFIXES.items() for suffix in suffixes}
_NAMED = re.compile(
    r"(?:(?:relative|arrival|request|start)_)?(?:time(?:stamp)?|ts?|offset|arrival|start)"
    rf"(?:_start)?(?:_unix|_epoch)?[ _]*[ _(\[](?P<unit>{'|'.join(_UNIT_OF)})[)\]]?"
)


class TimeValue(NamedTuple):
    """A time as a file has it, of one of three kinds: a number in a unit, or seconds since 1970."""

    value: float
    kind: str = NUMBERS
    is_whole: bool = False


def named_unit(column: str) -> str:
    """The unit that a column of times has in its name, such as `timestamp_ms`; empty without one."""
    named = _NAMED.fullmatch(column)
    return _UNIT_OF[named["unit"]] if named else ""


def read_time(value: Any) -> TimeValue:
    """A number or an ISO 8601 time, which without a zone is UTC. Raises ValueError."""
    if isinstance(value, datetime):
        return _of_stamp(value)
    text = value.strip() if isinstance(value, str) else value
    try:
        number = math.nan if isinstance(text, bool) or text is None else float(text)
    except OverflowError:
        number = math.inf
    except (TypeError, ValueError):
        return _of_text(text)
    if not 0 <= number < math.inf:
        raise ValueError(f"time is {value!r:.40}; {GIVE_TIME}")
    return TimeValue(number, is_whole=number.is_integer())


def _of_text(text: Any) -> TimeValue:
    try:
        moment = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        raise ValueError(f"time is {text!r:.40}; {GIVE_TIME}") from None
    return _of_stamp(moment)


def _of_stamp(moment: datetime) -> TimeValue:
    since_s = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    if since_s <= SINCE_1970_S / 10:
        raise ValueError(f"time is {moment.isoformat()}; give one after 1973")
    return TimeValue(since_s, ZONED if moment.tzinfo else ISO)


def unix_unit(first: float, last: float) -> str:
    """The unit in which both are times since 1970, no more than a week apart; empty if there is none."""
    fit = (
        unit
        for unit, per_s in UNITS.items()
        if SINCE_1970_S <= first / per_s <= last / per_s < 10 * SINCE_1970_S
        and last - first <= MOST_S * per_s
    )
    return next(fit, "")


def find_unit(times: Times, column: str, others: Collection[str] = (), is_whole: bool = False) -> str:
    """The unit of the numbers in a column, beside others. Raises ValueError where it may be another.

    A smaller unit than seconds is possible where the trace then takes a second, and has no more than
    MOST_PER_S requests in it. A column `time` has seconds, unless it is SPARSE.
    """
    first, last = float(times.min()), float(times.max())
    if unit := named_unit(column) or unix_unit(first, last):
        return unit
    span = last - first
    possible = [
        "s",
        *(unit for unit, per_s in UNITS.items() if per_s > 1 and _fits(len(times), span / per_s)),
    ]
    for columns, unit in KNOWN_FORMS:
        # A few rows of whole numbers may be less than a second.
        is_short = is_whole and _fits(len(times), span / UNITS[unit], 0)
        if columns <= set(others) and (unit in possible or is_short):
            return unit
    sparse = is_whole and any(span > longest and len(times) < share * span for longest, share in SPARSE)
    if possible == ["s"] or (column == "time" and not sparse):
        return "s"
    readings = ", or ".join(f"{span / UNITS[unit]:,.6g} s if it is in {unit}" for unit in possible)
    raise ValueError(f"{column} has no unit: its rows span {readings}; give {UNIT_FLAG}")


def _fits(rows: int, span_s: float, least_s: float = 1) -> bool:
    return least_s <= span_s <= MOST_S and rows <= MOST_PER_S * span_s


def find_resolution(times_s: Times) -> float:
    """The coarsest seconds of which all times are multiples, from the first on; 0 of times without a clock's.

    Rising times. Raises ValueError where most rows come together, but not at a clock's resolution: that may
    be how they were written, or how they came.
    """
    different = np.unique(np.rint((times_s - times_s[0]) * 1e6).astype(np.int64))
    if len(different) < LEAST_TIMES:
        return 0.0
    step_s = int(np.gcd.reduce(different)) / 1e6
    clock_s = next((one for one in CLOCKS_S if round(step_s / one, 6) % 1 == 0), 0.0)
    if len(different) < ENOUGH_TIMES or step_s == clock_s:
        return clock_s
    if step_s <= 1:
        return step_s if step_s >= CLOCKS_S[-1] else 0.0
    if len(times_s) >= 2 * len(different):
        raise ValueError(
            f"rows come together every {step_s:g} s, as written or as they came; give {RESOLUTION_FLAG}"
            f" {step_s:g} to spread them, or 0 to keep them together"
        )
    return clock_s


def spread(times_s: Times, resolution_s: float, seed: int = 0) -> tuple[Times, int]:
    """Rows of one time at random over the resolution from it on, in their order; and how many these are.

    Rising times. Independent requests come so, while even gaps would leave none of them waiting for another.
    """
    _, place, counts = np.unique(times_s, return_inverse=True, return_counts=True)
    together = counts[place] > 1
    draws = np.random.default_rng(seed).random(len(times_s))
    parts = draws[np.lexsort((draws, place))]
    return times_s + np.where(together, parts, 0.0) * resolution_s, int(together.sum()) if resolution_s else 0
