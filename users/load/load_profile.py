"""A load profile: load that goes along straight lines, up to a peak and back. Pure arithmetic."""

import itertools
import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from users.load.profile_text import BASE_SHARE, shares


@dataclass(frozen=True)
class LoadStage:
    """A stretch of so many seconds that goes in a straight line: requests a second, or users."""

    name: str
    seconds: float
    first: float
    last: float

    @property
    def arrivals(self) -> float:
        """The integral of its rate."""
        return self.seconds * (self.first + self.last) / 2

    @property
    def slope(self) -> float:
        """What it gains in a second."""
        return (self.last - self.first) / self.seconds

    def when(self, count: float) -> float:
        """Seconds from its beginning until the integral of its rate is `count`.

        The root of first·t + slope·t²/2 = count in the form that loses no digits where the slope is small. A
        rate may begin or end at 0: where it ends there, time is exact to 1e-8 of the stage.
        """
        root = math.sqrt(max(0.0, self.first**2 + 2 * self.slope * count))
        return 2 * count / (self.first + root) if count else 0.0

    def crosses(self, level: float, after_s: float) -> float | None:
        """The first second of its own, from `after_s` on, at or right after which it is above a level."""
        if self.first + self.slope * after_s > level:
            return after_s
        return (level - self.first) / self.slope if self.last > level else None

    def below_s(self, level: float) -> tuple[float, float]:
        """For how long it is below a level at its beginning, and at its end."""
        if max(self.first, self.last) < level:
            return self.seconds, self.seconds
        cut_s = abs((level - self.first) / self.slope) if self.slope else 0.0
        return (cut_s if self.first < level else 0.0), (self.seconds - cut_s if self.last < level else 0.0)


@dataclass(frozen=True)
class LoadProfile:
    """Stages one after the other, some of which are above 0."""

    stages: tuple[LoadStage, ...]

    @cached_property
    def begins_s(self) -> list[float]:
        """When each stage begins, and the last one ends."""
        return list(itertools.accumulate((stage.seconds for stage in self.stages), initial=0.0))

    @property
    def seconds(self) -> float:
        """How long all of it takes."""
        return math.fsum(stage.seconds for stage in self.stages)

    @property
    def arrivals(self) -> int:
        """How many requests are due: those before its end, the first where its rate is first above 0."""
        return math.ceil(math.fsum(stage.arrivals for stage in self.stages) - 1e-9)

    def times_ns(self, counts: Iterable[float]) -> Iterator[int]:
        """Nanoseconds until the integral of the rate has come to each of some rising `counts`, to its end.

        It is inverted and not added up, so that nothing drifts.
        """
        ends = list(itertools.accumulate(stage.arrivals for stage in self.stages))
        at = 0
        for count in counts:
            while count >= ends[at] - 1e-9:
                at += 1
                if at == len(ends):
                    return
            stage = self.stages[at]
            before = ends[at] - stage.arrivals
            yield round((self.begins_s[at] + stage.when(max(0.0, count - before))) * 1e9)

    def above_from(self, level: float, s: float) -> float | None:
        """The first second, from `s` on, at or right after which it is above a level; None if it never is.

        Of users numbered from 0, as many as it says, rounded up, are those that it is above the numbers of.
        """
        s = max(0.0, s)
        first = bisect_right(self.begins_s, s) - 1
        for at in range(first, len(self.stages)):
            begin_s = self.begins_s[at]
            found = self.stages[at].crosses(level, max(0.0, s - begin_s))
            if found is not None:
                return begin_s + found
        return None

    def longest_below_s(self, level: float) -> float:
        """The longest time on end for which it is below a level."""
        longest_s = lasts_s = 0.0
        for stage in self.stages:
            at_first_s, at_last_s = stage.below_s(level)
            longest_s = max(longest_s, lasts_s + at_first_s)
            lasts_s = lasts_s + stage.seconds if at_first_s >= stage.seconds else at_last_s
        return max(longest_s, lasts_s)


def base_of(peak: float) -> float:
    """The load of a warm-up: at the peak, it would trigger an autoscaler before the measurement."""
    return BASE_SHARE * peak


def parse(text: str, peak: float) -> LoadProfile:
    """The profile of that text at a peak. Raises ValueError with a sentence that says what to give.

    >>> [(stage.name, stage.first, stage.last) for stage in parse("ramp:20,cool:9", 50).stages]
    [('ramp', 5.0, 50.0), ('cool-down', 5.0, 5.0)]
    """
    return LoadProfile(
        tuple(
            LoadStage(name, seconds, first * peak, last * peak) for name, seconds, first, last in shares(text)
        )
    )
