"""The parts of its time that a server states with an answer: in `Server-Timing`, or in headers of its own."""

import re
from collections.abc import Callable, Mapping

HEADER = "server-timing"
TIMING = re.compile(
    r"\b(decode|preprocess|queue|compute|upstream)\s*;\s*dur=([0-9]{1,9}(?:\.[0-9]{1,30})?)(?![\w.])"
)
"""The parts that a service reports, as named in server/settings.py; a ledger has no fields for others."""
PARTS = ("decode", "preprocess", "queue", "input", "compute", "output", "upstream")
"""The units that have one."""
NS: Mapping[str, float] = {"s": 1e9, "ms": 1e6, "us": 1e3, "ns": 1.0}
"""By the units that a file may use."""
NUMBER = re.compile(r"[0-9]{1,18}(?:\.[0-9]{1,30})?")


def server_timing(headers: Mapping[str, str], name: str = HEADER) -> dict[str, int]:
    """The parts in nanoseconds; empty where there is no such header. Source: W3C's Server Timing.

    >>> server_timing({"server-timing": "decode;dur=1.5, compute;dur=40"})
    {'decode': 1500000, 'compute': 40000000}
    """
    header = headers.get(name, "")
    return {part: round(float(value) * 1e6) for part, value in TIMING.findall(header)}


def declared_times(told: Mapping[str, str]) -> Callable[[Mapping[str, str]], dict[str, int]] | None:
    """What reads the parts out of headers, each a number; None where none are told.

    `told`: by a header's name the part and its unit, such as `queue ms`.

    >>> declared_times({"x-queue-time": "queue ms"})({"x-queue-time": "1.5"})
    {'queue': 1500000}
    """
    if not told:
        return None
    split = {name.lower(): text.split() for name, text in told.items()}
    places = [(name, part, NS[unit]) for name, (part, unit) in split.items()]

    def read(headers: Mapping[str, str]) -> dict[str, int]:
        found: dict[str, int] = {}
        for name, part, factor in places:
            if NUMBER.fullmatch(value := headers.get(name, "")):
                found[part] = found.get(part, 0) + round(float(value) * factor)
        return found

    return read
