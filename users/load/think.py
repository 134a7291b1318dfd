"""Think times: how long a closed-loop user waits after each answer, before its next request."""

import itertools
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass

CONSTANT, EXPONENTIAL = "constant", "exponential"
MOST_S = 600.0
GIVE = f"give seconds up to {MOST_S:g}, e.g. 0.5, or exponential:0.5, whose mean they are"


@dataclass(frozen=True)
class ThinkTime:
    """A mean of so many seconds: always the same, or exponentially distributed."""

    mean_s: float = 0.0
    random: bool = False

    def __str__(self) -> str:
        """`0.5`, `exponential:0.5`; empty where nobody waits."""
        return (f"{EXPONENTIAL}:" if self.random else "") + f"{self.mean_s:.10g}" if self.mean_s else ""

    @property
    def longest_s(self) -> float:
        """No longer than this; one in 22,000 of those that are random is."""
        return self.mean_s * (10 if self.random else 1)

    def times_ns(self, seed: str) -> Iterator[int]:
        """Without end; the same for the same seed."""
        if not self.random:
            return itertools.repeat(round(self.mean_s * 1e9))
        drawn = random.Random(seed).expovariate
        return (round(drawn(1 / self.mean_s) * 1e9) for _ in itertools.count())


def parse(text: str) -> ThinkTime:
    """`0.5` or `constant:0.5`, `exponential:0.5`, in seconds. Raises ValueError with what to give.

    >>> str(parse("constant:0.50")), str(parse("exponential:2")), str(parse("0"))
    ('0.5', 'exponential:2', '')
    """
    kind, _, seconds = text.rpartition(":")
    try:
        mean_s = float(seconds) if seconds.isascii() else math.nan
    except ValueError:
        mean_s = math.nan
    if kind not in ("", CONSTANT, EXPONENTIAL) or text.startswith(":") or not 0 <= mean_s <= MOST_S:
        raise ValueError(GIVE)
    return ThinkTime(mean_s, kind == EXPONENTIAL)
