"""Seconds of the wall clock: from ISO text and back, and rows of them without holes."""

from collections.abc import Iterable
from datetime import UTC, datetime

# A wall clock that jumped must not become millions of empty seconds.
LONGEST_RUN_S = 86_400


def epoch_s(utc: str) -> float:
    """Seconds since 1970 of an ISO 8601 time; ValueError where it is none."""
    return datetime.fromisoformat(utc).timestamp()


def iso(second: int) -> str:
    """ISO 8601 with a Z: 2026-11-21T11:00:00Z."""
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def every_second(known: Iterable[int]) -> list[int]:
    """All seconds from the first to the last known one; only the known ones where they span over a day."""
    found = sorted(set(known))
    if not found or found[-1] - found[0] > LONGEST_RUN_S:
        return found
    return list(range(found[0], found[-1] + 1))
