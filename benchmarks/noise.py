"""A machine whose noise is declared: the p95 of each run of studies, in turns or not, simulated."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, sqrt

import numpy as np
import numpy.typing as npt

PERCENT = 95
AT_ONCE = 20
Figures = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Noise:
    """What disturbs latencies, as standard deviations of their logarithms.

    `request` is of the requests of one second. `second` is of a factor that all of them share, and `kept` how
    much of it is left a second later (AR(1)), so neighbours are alike. `run` is of a factor that a run keeps
    to its end, as the layout of memory is. `walk` and `slope` are what the whole session comes to: a random
    walk and a straight line, which all cells share.
    """

    request: float = 0.25
    second: float = 0.05
    kept: float = 0.7
    run: float = 0.03
    walk: float = 0.10
    slope: float = 0.05

    def times(self, factor: float) -> Noise:
        """All of it but the spread of the requests, which is the server's own, so many times as large."""
        return replace(
            self,
            **{name: factor * getattr(self, name) for name in ("second", "run", "walk", "slope")},
        )


@dataclass(frozen=True)
class Session:
    """Studies of some cells, one after the other for so many turns; a run has requests in seconds."""

    turns: int = 10
    studies: int = 2
    cells: int = 10
    seconds: int = 10
    per_second: int = 100

    @property
    def requests(self) -> int:
        """Of one run."""
        return self.seconds * self.per_second


def p95s(noise: Noise, session: Session, count: int, seed: int, in_turns: bool = True) -> Figures:
    """Of so many sessions: by session, turn, study and cell, around 1 but for the spread of requests.

    All studies are the same. Where they are not made `in_turns`, each is made all through before the next.
    """
    random = np.random.default_rng(seed)
    parts = [
        _some(noise, session, min(AT_ONCE, count - begun), random, in_turns)
        for begun in range(0, count, AT_ONCE)
    ]
    return np.concatenate(parts)


def _some(noise: Noise, session: Session, count: int, random: np.random.Generator, in_turns: bool) -> Figures:
    shape = (count, session.turns, session.studies, session.cells)
    runs = _drift(noise, shape, random, in_turns) + noise.run * random.standard_normal(shape)
    logs = noise.request * random.standard_normal((*shape, session.seconds, session.per_second), np.float32)
    logs += seconds_of(noise, (*shape, session.seconds), random)[..., np.newaxis]
    flat = logs.reshape(*shape, session.requests)
    last = ceil(PERCENT / 100 * session.requests) - 1
    found: Figures = np.exp(np.partition(flat, last, axis=-1)[..., last] + runs).astype(np.float32)
    return found


def _drift(
    noise: Noise, shape: tuple[int, ...], random: np.random.Generator, in_turns: bool
) -> npt.NDArray[np.float64]:
    """Of each run, by when it was made: turn by turn, in each study by study, in that cell by cell."""
    count, turns, studies, cells = shape
    steps = turns * studies * cells
    walk = random.standard_normal((count, steps)).cumsum(axis=1) * noise.walk / sqrt(steps)
    slope = noise.slope * random.standard_normal((count, 1)) * np.linspace(0, 1, steps)
    made: npt.NDArray[np.float64] = walk + slope
    if in_turns:
        return made.reshape(shape)
    return made.reshape(count, studies, turns, cells).swapaxes(1, 2)


def seconds_of(noise: Noise, shape: tuple[int, ...], random: np.random.Generator) -> Figures:
    """The factor of each second of each run, which keeps a part of the second before."""
    found = noise.second * random.standard_normal(shape, np.float32)
    fresh = sqrt(1 - noise.kept**2)
    for second in range(1, shape[-1]):
        found[..., second] = noise.kept * found[..., second - 1] + fresh * found[..., second]
    return found
