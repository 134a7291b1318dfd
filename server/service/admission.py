"""Which requests are taken: those that are computed at once, and a bounded number that wait."""

from __future__ import annotations

import math

from server.errors import Refusal

SHED = 429
MAX_RETRY_S = 60
WEIGHT = 0.1
"""Of the latest request in the running mean of what one takes."""


class Admission:
    """Counts requests from before their body is read until they are answered.

    So no more than `at_once + max_queue` bodies are in memory, each of at most `max_body_bytes`, and those
    that decoding threads still hold though their clients have gone.
    """

    def __init__(self, at_once: int, max_queue: int) -> None:
        self._room = at_once + max_queue
        self._taken = 0
        self._each_s = 0.0

    def take(self) -> None:
        """Take a place; Refusal 429 where all are taken."""
        if self._taken >= self._room:
            wait_s = retry_after_s(self._taken, self._each_s)
            raise Refusal(
                SHED,
                f"as many requests are under way as may be ({self._taken}): try again in {wait_s} s",
                {"Retry-After": str(wait_s)},
            )
        self._taken += 1

    def leave(self) -> None:
        """Give the place back."""
        self._taken -= 1

    def answered(self, each_s: float) -> None:
        """Take note of how long the slowest part of the service was busy with one request."""
        self._each_s += (each_s - self._each_s) * (WEIGHT if self._each_s else 1)


def retry_after_s(taken: int, each_s: float) -> int:
    """Whole seconds until those who are under way should be answered: at least 1, at most 60."""
    return min(MAX_RETRY_S, max(1, math.ceil(taken * each_s)))
