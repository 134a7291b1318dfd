"""Seconds of the wall clock: from ISO text and back, and rows of them without holes."""

from collections.abc import Iterable
from datetime import UTC, datetime

MOST_SECONDS = 2 * 86_400
"""In a row: a study of a day fits, and a wall clock that jumped must not become millions of empty seconds."""


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

    Only the known ones where there would be more than two days of seconds.
    """
    found = sorted(set(known))
    if not found or found[-1] - found[0] >= MOST_SECONDS * width_s:
        return found
    return list(range(found[0], found[-1] + 1, width_s))
