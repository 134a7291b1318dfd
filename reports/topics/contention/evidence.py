"""A line of evidence on HTTP against gRPC, and how two arms are compared for it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from reports.stats.spread import Spread
from reports.topics.contention.arms import ArmRuns, Arms, ratio_of

CONNECTIONS, CPU, LOOP = "connections", "client-cpu", "client-loop"
FOR, AGAINST = "for", "against"
SLOWER = 0.8
"""Of HTTP's images/s: a difference that links and machines do not make by themselves between two runs."""
RECOVERED = 0.9
"""Of HTTP's images/s: what is left may be the cost of gRPC's own framing, and chance."""
ALIKE = (0.67, 1.5)
"""Between two ways to use one connection: what one connection gets varies with the losses it meets."""
SAME_COUNT = (0.7, 1.4)
"""Between as many connections from one process and from several."""
TIMES = 1.5
"""More than the arm beside it, with no repeat in common: what chance does not do to several runs."""
LIBRARY = 0.75
"""Of what prepared requests get: building them then takes time that the client does not have."""
CLOSED = (0.25, 0.5)
"""Of the gap between HTTP and gRPC on one connection: closing less is no help, closing more is."""


@dataclass(frozen=True)
class ExperimentAnswer:
    """A question, the figures that answer it, and which causes they speak for or against, if any.

    Where an experiment decides, others only support. Without figures its arms were not run, and where these
    were not what they should be, they are no test.
    """

    question: str
    figures: str = ""
    says: Mapping[str, str] = field(default_factory=dict)
    decides: bool = True
    tests: bool = True

    @property
    def answered(self) -> bool:
        """Whether its arms were run, and were what they should be."""
        return bool(self.figures) and self.tests

    @property
    def verdict(self) -> str:
        """What it says in words."""
        if not self.answered:
            return "no test of it" if self.figures else "not tested"
        told = [f"{word} {cause}" for cause, word in self.says.items()]
        return ", ".join(told) or "tells nothing either way"


def figures(arm: ArmRuns) -> str:
    """An arm's images per second, and the connections that carried them."""
    seen = arm.connections
    count = "TCP connections not counted" if seen is None else f"{seen} TCP connection{'s' * (seen != 1)}"
    return f"{arm.rate} images/s on {count}"


def more(found: Spread) -> bool:
    """Whether one arm carries clearly more than another: by the medians, with no repeat in common."""
    return found.median >= TIMES and found.low > 1


def helps(arms: Arms, code: str) -> bool:
    """Whether an arm carries clearly more than gRPC on one connection: by times, or by the gap it closes."""
    found = ratio_of(arms, code, "R2")
    return found is not None and found.low > 1 and (more(found) or closed(arms, code) >= CLOSED[1])


def helps_not(arms: Arms, code: str) -> bool:
    """Whether an arm carries about as little as gRPC on one connection, where that is less than HTTP."""
    found = ratio_of(arms, code, "R2")
    return found is not None and not more(found) and closed(arms, code) < CLOSED[0]


def closed(arms: Arms, code: str) -> float:
    """How much of the gap between HTTP and gRPC on one connection an arm closes; 0 where there is none."""
    http, one, found = (arms[name].rate for name in ("R0", "R2", code))
    if not http or not one or not found or one.median >= SLOWER * http.median:
        return 0.0
    return (found.median - one.median) / (http.median - one.median)


def within(found: Spread, bounds: tuple[float, float]) -> bool:
    """Whether a ratio of medians lies between two bounds."""
    return bounds[0] <= found.median <= bounds[1]
