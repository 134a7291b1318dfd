"""Occasions: changes of several figures that may have come at once, and what else changed then."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from reports.compare.matching import MEASURES
from reports.history.changes import ChangePoint
from reports.history.reading import PastStudy
from reports.history.series import CellSeries

KINDS = (
    *("endpoints.*.weights", "endpoints.*", "workers", "hosts", "link*", "host*"),
    *("packages.*", "python", "driver*", "gpu*", "system", "git_commit", "*"),
)
"""Of two facts that changed equally seldom and at the same study, the one named here first is told first."""


UNSTATED = "not stated"


class Coincidence(NamedTuple):
    """A fact that changed where a figure did: so many studies later, and so often in all of the history."""

    what: str
    before: str
    after: str
    later: int
    times: int

    @property
    def text(self) -> str:
        """packages.onnxruntime 1.30 → 1.31; and if it is often so, how often."""
        told = f"{self.what} {self.before} → {self.after}"
        near = f", {abs(self.later)} {'later' if self.later > 0 else 'before'}" if self.later else ""
        often = f"changed {self.times} times" if self.times > 1 else ""
        noted = "; ".join(filter(None, (often, near.lstrip(", "))))
        return f"{told} ({noted})" if noted else told


@dataclass(frozen=True)
class Occasion:
    """Changes of one study's figures whose ranges overlap that of the surest, which is the first."""

    changes: tuple[tuple[CellSeries, ChangePoint], ...]

    @property
    def chief(self) -> tuple[CellSeries, ChangePoint]:
        """The surest change of what clients see, or of all where there is none of that."""
        return next((it for it in self.changes if it[0].measure in MEASURES), self.changes[0])

    @property
    def study(self) -> PastStudy:
        """The first on the new level, by its chief change."""
        one, change = self.chief
        return one.studies[change.at]

    @cached_property
    def coincided(self) -> tuple[Coincidence, ...]:
        """What else changed where the chief change may have come, as to the endpoints of all changes."""
        return tuple(coincidences(*self.chief, {one.endpoint: None for one, _ in self.changes}))


def occasions(every: Sequence[CellSeries]) -> list[Occasion]:
    """All of them, the newest first."""
    changes = [(one, change) for one in every for change in one.course.changes]
    joined: list[list[tuple[CellSeries, ChangePoint]]] = []
    for one, change in sorted(changes, key=lambda it: (it[1].p, -abs(it[1].ratio.ratio - 1))):
        home = next((of for of in joined if _holds(one, change, *of[0])), None)
        if home is None:
            joined.append([(one, change)])
        else:
            home.append((one, change))
    found = [Occasion(tuple(of)) for of in joined]
    return sorted(found, key=lambda it: it.study.began, reverse=True)


def _holds(one: CellSeries, change: ChangePoint, first: CellSeries, surest: ChangePoint) -> bool:
    """Whether a change may have come at a study where the surest may have, too."""
    begins = max(one.studies[change.first].began, first.studies[surest.first].began)
    ends = min(one.studies[change.last].began, first.studies[surest.last].began)
    return one.study == first.study and begins <= ends


def coincidences(one: CellSeries, change: ChangePoint, endpoints: Iterable[str] = ()) -> list[Coincidence]:
    """Each fact that changed between two studies that follow each other, anywhere in the range of a change.

    Of some endpoints, or of the figure's own. Those that changed least often in the series come first: what
    changes every time says little.
    """
    asked = list(endpoints) or [one.endpoint]
    facts = [{k: v for name in asked for k, v in study.facts(name).items()} for study in one.studies]
    found: dict[str, Coincidence] = {}
    for at in range(change.first, change.last + 1):
        for what, before, after in _differing(facts[at - 1], facts[at]):
            times = sum(a.get(what) != b.get(what) for a, b in pairwise(facts))
            told = Coincidence(what, before, after, at - change.at, times)
            if what not in found or abs(told.later) < abs(found[what].later):
                found[what] = told
    return sorted(found.values(), key=likely_first)


def _differing(before: Mapping[str, str], after: Mapping[str, str]) -> list[tuple[str, str, str]]:
    names = dict.fromkeys((*before, *after))
    pairs = ((name, before.get(name, UNSTATED), after.get(name, UNSTATED)) for name in names)
    return [it for it in pairs if it[1] != it[2]]


def likely_first(it: Coincidence) -> tuple[int, bool, int, int, str]:
    """What coincidences are sorted by; a fact that one side does not state need not have changed at all."""
    kind = next(at for at, name in enumerate(KINDS) if fnmatchcase(it.what, name))
    return it.times, UNSTATED in (it.before, it.after), abs(it.later), kind, it.what
