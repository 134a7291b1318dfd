"""Seconds of the wall clock: from ISO text and back, and rows of them without holes."""

from collections.abc import Iterable
from datetime import UTC, datetime

HOLES, MOST_HOLES = 4, 60
"""Seconds that nobody tells of: so many for each one that is told, and these.

A clock that jumped, or somebody else's ledger, must not become millions of empty seconds.
"""


def epoch_s(utc: str) -> float:
    """Seconds since 1970 of an ISO 8601 time; ValueError where it is none."""
    return datetime.fromisoformat(utc).timestamp()


def iso(second: int) -> str:
    """ISO 8601 with a Z: 2026-11-21T11:00:00Z; ValueError or OverflowError where no calendar has it."""
    try:
        return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except OSError as error:
        raise ValueError(f"second {second} is in no calendar") from error


def every_second(known: Iterable[int], width_s: int = 1) -> list[int]:
    """All seconds from the first to the last known one, or every `width_s`-th of them.

    Only the known ones where most of them would be empty.
    """
    found = sorted(set(known))
    if not found or (found[-1] - found[0]) // width_s > HOLES * len(found) + MOST_HOLES:
        return found
    return list(range(found[0], found[-1] + 1, width_s))
