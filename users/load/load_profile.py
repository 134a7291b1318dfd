"""A load profile: open-loop load whose rate rises to a peak, holds, and falls back. Pure arithmetic."""

import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

BASE_SHARE = 0.1
"""Share of the peak: the rate at which a ramp begins, and of the cool-down and the warm-up."""
MOST_S = 604_800
"""The longest stage: a week."""
NAMES = ("ramp", "hold", "cool")
TITLES = {"cool": "cool-down"}
GIVE = "give seconds of ramp, hold and cool in that order, each once at most, e.g. ramp:20,hold:40,cool:20"


@dataclass(frozen=True)
class LoadStage:
    """A stretch of so many seconds, whose rate goes in a straight line from one to another, in 1/s."""

    name: str
    seconds: float
    first_per_s: float
    last_per_s: float

    @property
    def arrivals(self) -> float:
        """The integral of its rate."""
        return self.seconds * (self.first_per_s + self.last_per_s) / 2

    def when(self, count: float) -> float:
        """Seconds from its beginning until the integral of its rate is `count`.

        The root of first·t + slope·t²/2 = count in the form that loses no digits where the slope is small.
        """
        slope = (self.last_per_s - self.first_per_s) / self.seconds
        root = math.sqrt(max(0.0, self.first_per_s**2 + 2 * slope * count))
        return 2 * count / (self.first_per_s + root)


@dataclass(frozen=True)
class LoadProfile:
    """Stages one after the other; a rate is never 0."""

    stages: tuple[LoadStage, ...]

    @property
    def seconds(self) -> float:
        """How long all of it takes."""
        return math.fsum(stage.seconds for stage in self.stages)

    @property
    def arrivals(self) -> int:
        """How many requests are due: those before its end, the first at its beginning."""
        return math.ceil(math.fsum(stage.arrivals for stage in self.stages) - 1e-9)

    def times_ns(self, counts: Iterable[float]) -> Iterator[int]:
        """Nanoseconds until the integral of the rate has come to each of some rising `counts`, to its end.

        It is inverted and not added up, so that nothing drifts.
        """
        ends = list(itertools.accumulate(stage.arrivals for stage in self.stages))
        begins_s = list(itertools.accumulate((stage.seconds for stage in self.stages), initial=0.0))
        at = 0
        for count in counts:
            while count >= ends[at] - 1e-9:
                at += 1
                if at == len(ends):
                    return
            stage = self.stages[at]
            before = ends[at] - stage.arrivals
            yield round((begins_s[at] + stage.when(max(0.0, count - before))) * 1e9)


def base_per_s(peak_per_s: float) -> float:
    """The rate beside the peak."""
    return BASE_SHARE * peak_per_s


def seconds_of(text: str) -> dict[str, float]:
    """`ramp:20,hold:40` as seconds by name. Raises ValueError with a sentence that says what to give."""
    try:
        found = [(name.strip(), float(value)) for name, value in (p.split(":") for p in text.split(","))]
    except ValueError:
        raise ValueError(GIVE) from None
    places = [NAMES.index(name) if name in NAMES else -1 for name, _ in found]
    rising = all(before < after for before, after in itertools.pairwise([-1, *places]))
    if not rising or not all(0 < seconds <= MOST_S for _, seconds in found):
        raise ValueError(GIVE)
    return dict(found)


def parse(text: str, peak_per_s: float) -> LoadProfile:
    """The profile of that text at a peak. Raises ValueError with a sentence that says what to give.

    A ramp climbs from the base to the peak, a hold stays there, a cool-down is at the base rate from its
    beginning: long enough, it shows an autoscaler going down again.

    >>> [(stage.name, stage.first_per_s, stage.last_per_s) for stage in parse("ramp:20,cool:9", 50).stages]
    [('ramp', 5.0, 50), ('cool-down', 5.0, 5.0)]
    """
    base = base_per_s(peak_per_s)
    ends = {"ramp": (base, peak_per_s), "hold": (peak_per_s, peak_per_s), "cool": (base, base)}
    return LoadProfile(
        tuple(
            LoadStage(TITLES.get(name, name), seconds, *ends[name])
            for name, seconds in seconds_of(text).items()
        )
    )
