"""The objective of --slo: within how many ms a request is good, and which share of requests must be."""

import re
from dataclasses import dataclass
from typing import Self

from reports.format import NS_PER_MS

MOST_MS = 3_600_000.0
"""That a histogram of latencies can tell."""
_BOUND = re.compile(r"(p50|p90|p95|p99|p99\.9)\s*<=\s*(\d+(?:\.\d+)?)\s*(?:ms)?")
_BARE = re.compile(r"(?:<=)?\s*\d+(?:\.\d+)?\s*(?:ms)?")


@dataclass(frozen=True)
class LatencyBound:
    """At most `limit_ms` at a percentile, `p50` to `p99.9`, of latency, counted from the intended start."""

    percentile: str
    limit_ms: float

    @classmethod
    def parse(cls, text: str) -> Self:
        """`p99<=100`: the 99th percentile is at most 100 ms. Raises ValueError."""
        found = _BOUND.fullmatch(text.strip())
        if not found or not 0 < float(found[2]) <= MOST_MS:
            raise ValueError("give p50, p90, p95, p99 or p99.9 and ms, e.g. 'p99<=100'")
        return cls(found[1], float(found[2]))

    def __str__(self) -> str:
        return f"{self.percentile} ≤ {self.limit_ms:g} ms"

    @property
    def share(self) -> float:
        """Of the requests that must keep the limit: 0.99 for p99."""
        return round(float(self.percentile[1:]) / 100, 6)


@dataclass(frozen=True)
class Slo:
    """A service level objective: a bound for all requests, and those of classes that have their own.

    A request is good where it succeeded within the limit of its class. All bounds have one percentile, which
    is the share of all requests that must be good.
    """

    whole: LatencyBound
    of_classes: tuple[tuple[str, LatencyBound], ...] = ()

    @classmethod
    def parse(cls, text: str) -> Self:
        """`p99<=100`, or `p99<=100,b16:p99<=400` where requests of the class b16 may take 400 ms.

        Raises ValueError with a sentence that says what to give.
        """
        parts = [part.strip() for part in text.split(",")]
        if any(_BARE.fullmatch(part.rpartition(":")[2].strip()) for part in parts):
            raise ValueError("name the percentile too, whose share of requests must be good, e.g. 'p99<=100'")
        labelled = [
            (label.strip(), LatencyBound.parse(bound))
            for label, _, bound in (part.rpartition(":") for part in parts)
        ]
        whole = [bound for label, bound in labelled if not label]
        own = tuple((label, bound) for label, bound in labelled if label)
        if len(whole) != 1:
            raise ValueError(
                "give one bound for all requests, then those of classes: 'p99<=100,b16:p99<=400'"
            )
        if len(dict(own)) < len(own):
            raise ValueError("give each class one bound, e.g. 'p99<=100,b16:p99<=400'")
        if len({bound.percentile for _, bound in labelled}) > 1:
            raise ValueError("give all bounds the same percentile, e.g. 'p99<=100,b16:p99<=400'")
        return cls(whole[0], own)

    def __str__(self) -> str:
        return ", ".join([str(self.whole), *(f"{label} {bound}" for label, bound in self.of_classes)])

    @property
    def share(self) -> float:
        """Of all requests that must be good."""
        return self.whole.share

    def bound_of(self, label: str) -> LatencyBound:
        """That of a class, by its whole label or else by a part of it such as `b16` of `b16/640px`."""
        own = dict(self.of_classes)
        if label in own:
            return own[label]
        parts = label.split("/")
        return next((bound for name, bound in self.of_classes if name in parts), self.whole)

    def limit_ns(self, label: str) -> int:
        """How long a request of a class may take to be good."""
        return round(self.bound_of(label).limit_ms * NS_PER_MS)
