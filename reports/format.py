"""Numbers and foreign text as a reader sees them: the only place where units are turned into words."""

from collections.abc import Callable, Sequence
from datetime import datetime
from math import floor, log10

NS_PER_MS = 1e6
FINEST_MS = 0.1
"""Of a latency: finer digits are noise, and cells.csv has them."""
LONGEST = 400
"""Characters of a sentence that quotes what somebody gave."""
MISSING = "–"
COARSE = 0.1
"""Of a figure: where its interval reaches so far, a third digit says nothing. With three runs it does where
their standard deviation is 4 %, so that the lowest and the highest differ by some 7 %.
"""
TENTH, HUNDREDTH = 0.1, 0.01
Form = Callable[[float, int], str]
"""A value to so many significant digits."""


def digits(value: float, significant: int = 3) -> str:
    """Three significant digits, or as many as are asked for: 5266.9 → 5,270; 0.04136 → 0.0414."""
    rounded = float(f"{value:.{significant - 1}e}")
    decimals = max(0, significant - 1 - floor(log10(abs(rounded)))) if rounded else 0
    return f"{rounded:,.{decimals}f}"


def with_interval(
    value: float, low: float | None, high: float | None, form: Form = digits, unit: str = "", what: str = ""
) -> str:
    """30.5 (29.8–31.4); 31 (27–34) where the interval reaches COARSE to either side; 30.5 without one.

    `unit` comes behind the value, `what` before the interval: 30.5 ms (95 % CI 29.8–31.4).
    """
    shown = f"{form(value, told_digits(value, low, high))}{unit}"
    return shown if low is None or high is None else f"{shown} ({what}{ends(value, low, high, form)})"


def ends(value: float, low: float, high: float, form: Form = digits) -> str:
    """29.8–31.4, the interval of a value, with as many digits as the value has beside it."""
    return "–".join(form(end, told_digits(value, low, high)) for end in (low, high))


def told_digits(value: float, low: float | None, high: float | None) -> int:
    """Two significant digits of a value whose interval reaches COARSE to either side, else three."""
    return 2 if low is not None and high is not None and (high - low) / 2 >= COARSE * abs(value) else 3


def multiple(ratio: float, low: float | None = None, high: float | None = None) -> str:
    """A ratio without its ×, to hundredths, so that 1.05 and 0.95 say as much: 0.95; 1.05; 27.3; 0.0346.

    From 10 on, and below 0.1, to three significant digits. One more where its interval reaches less than a
    hundredth of it to either side.
    """
    return _as_multiple(ratio, ratio, low, high)


def multiples(ratio: float, low: float, high: float) -> str:
    """0.95–1.16, the interval of a ratio, with as many decimals as the ratio has beside it."""
    return "–".join(_as_multiple(end, ratio, low, high) for end in (low, high))


def _as_multiple(value: float, ratio: float, low: float | None, high: float | None) -> str:
    narrow = low is not None and high is not None and (high - low) / 2 < HUNDREDTH * ratio
    if TENTH <= value < 10:
        return f"{value:.{3 if narrow else 2}f}"
    return digits(value, 4 if narrow else told_digits(ratio, low, high))


def known(value: float | None, unit: float = 1) -> str:
    """A value in a unit of so many, to three digits; a dash for None."""
    return MISSING if value is None else digits(value / unit)


def counted(count: int | None) -> str:
    """A count with its thousands told apart; a dash for None."""
    return MISSING if count is None else f"{count:,}"


def milliseconds(value_ms: float, significant: int = 3) -> str:
    """Three significant digits, or as many as are asked for, no finer than 0.1: 5,270; 41.9; 0.4; <0.1."""
    if 0 < abs(value_ms) < FINEST_MS / 2:
        return f"<{FINEST_MS}"
    rounded = float(f"{value_ms:.{significant - 1}e}")
    return f"{rounded:,.0f}" if abs(rounded) >= 10 ** (significant - 1) else f"{rounded:,.1f}"


def ms(value_ns: float | None) -> str:
    """Nanoseconds as milliseconds, without the unit; a dash for None."""
    return MISSING if value_ns is None else milliseconds(value_ns / NS_PER_MS)


def duration(seconds: float) -> str:
    """As people write it: 45 s, 4 min 20 s, 2 h 5 min."""
    whole = round(seconds)
    hours, minutes, rest = whole // 3600, whole // 60 % 60, whole % 60
    if hours:
        return f"{hours} h {minutes} min"
    if minutes >= 10 or (minutes and not rest):
        return f"{minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def moment(utc: str) -> str:
    """2026-11-25T09:04:20.384Z as 25 Nov 2026, 09:04 UTC; what is no such time stays as it is."""
    try:
        return f"{datetime.fromisoformat(utc):%-d %b %Y, %H:%M} UTC"
    except ValueError:
        return utc


def plain(text: object) -> str:
    """Text on one line: what a terminal obeys, or what turns its direction, is escaped; any blank is one."""
    return "".join(
        char if char.isprintable() else " " if char.isspace() else escape(char) for char in str(text)
    )


def escape(char: str) -> str:
    """A character as Python writes it: `\\x1b`."""
    return repr(char)[1:-1]


def plain_lines(text: object) -> str:
    """The same of a text that may have several lines, which it keeps."""
    return "\n".join(map(plain, str(text).split("\n")))


def one_line(sentence: str, most: int = LONGEST) -> str:
    """A sentence on what somebody gave, whatever that is: its end, which says the fix, stays.

    What no terminal should be told is escaped, and the middle left out of more than `most` characters.
    """
    shown = "".join(char if char.isprintable() else escape(char) for char in _middle_out(sentence, most))
    return _middle_out(shown, most)


def _middle_out(text: str, most: int) -> str:
    half = most // 2 - 2
    return text if len(text) <= most else f"{text[:half]} … {text[-half:]}"


def listed(names: Sequence[str]) -> str:
    """a, b and c."""
    *some, last = names
    return f"{', '.join(some)} and {last}" if some else last


def sentence(text: str) -> str:
    """The same with a capital at its start."""
    return text[:1].upper() + text[1:]


def plural(count: int, noun: str) -> str:
    """1 run, 2 runs."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
