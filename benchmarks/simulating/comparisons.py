"""Comparisons of cells and of studies: equal ones told apart, and differences of 10 and 20 % found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from benchmarks.bounds import Bounds
from benchmarks.simulating.truths import Floats, Random, a_row, a_side
from reports.cells_csv.sides import Side
from reports.compare.matching import NONE_SHOWN, matches
from reports.stats.log_ratio import log_ratio
from reports.stats.paired import apart_from_best, paired_ratio, told_apart, with_least_error
from reports.topics.published.hypotheses import PARTLY, TRUE, judge, looked_at

STUDIES, OF_SIDES, SEED = 800, 150, 5
"""Simulated for a figure: the chance error of 5 % is 0.8 and 1.8 points."""
REPEATS = (3, 5, 10)
UNEQUAL = ((2, 10), (3, 10))
"""Repeats of two sides: the few of one may be alike by luck."""
CELLS, WAYS, PLACES = 20, 5, 4
RUN, TURN = 0.03, 0.05
"""Standard deviations of logarithms: of runs, and of what the runs of a repeat have in common."""
REGIME, SWITCHES = 1.3, 0.5
"""How much slower every second run is, by chance, where the machine has two speeds."""
FALSE = 5.0
"""Percent: what may be told wrongly, over all comparisons that are looked at together."""
CHANCE = 1.5
"""Percentage points by which chance alone may exceed it, two standard errors of STUDIES."""
Noise = Literal["normal", "outliers", "regimes"]


def promises(bounds: Bounds) -> None:
    """False calls of each kind of comparison, then the power of three, five and ten repeats."""
    random = np.random.default_rng(SEED)
    for noise in ("normal", "outliers", "regimes"):
        maps(bounds, noise, random)
        ranking(bounds, noise, random)
        claims(bounds, noise, random)
        studies_compared(bounds, noise, random)
        unequal_sides(bounds, noise, random)
    power(bounds, random)


def rates(cells: int, repeats: int, noise: Noise, random: Random) -> Floats:
    """Images per second of equal cells, a row each; repeats are interleaved, and share what the turn has."""
    logs = RUN * random.standard_normal((cells, repeats)) + TURN * random.standard_normal(repeats)
    if noise == "outliers":
        logs -= np.where(random.random((cells, repeats)) < 0.05, 5 * RUN, 0.0)
    if noise == "regimes":
        logs -= np.where(random.random((cells, repeats)) < SWITCHES, np.log(REGIME), 0.0)
    found: Floats = 100 * np.exp(logs)
    return found


def by_repeat(values: Floats) -> dict[int, float]:
    """As a study has them."""
    return dict(enumerate(values.tolist(), 1))


def in_percent(hits: Sequence[bool]) -> float:
    """How many of some came out."""
    return 100 * sum(hits) / len(hits)


def maps(bounds: Bounds, noise: Noise, random: Random) -> None:
    """Equal ways in a map of ratios: is any marked?"""
    for repeats in REPEATS:
        hits = []
        for _ in range(STUDIES):
            sides = rates(2 * WAYS, repeats, noise, random)
            found = [paired_ratio(by_repeat(sides[at]), by_repeat(sides[at + WAYS])) for at in range(WAYS)]
            hits.append(any(told_apart(with_least_error(found))))
        name = f"▲▼, {WAYS} equal pairs, {repeats} repeats, {noise}: any marked"
        bounds.at_most(name, in_percent(hits), FALSE + CHANCE, "%")


def ranking(bounds: Bounds, noise: Noise, random: Random) -> None:
    """Equal endpoints: is any told from the one that came out best?"""
    for repeats in REPEATS:
        hits = []
        for _ in range(STUDIES):
            sides = sorted(rates(WAYS, repeats, noise, random), key=np.mean, reverse=True)
            best, *others = map(by_repeat, sides)
            hits.append(any(apart_from_best(best, others)))
        name = f"best of {WAYS} equal, {repeats} repeats, {noise}: any slower"
        bounds.at_most(name, in_percent(hits), FALSE + CHANCE, "%")


def claims(bounds: Bounds, noise: Noise, random: Random) -> None:
    """A hypothesis on equal cells in four places: is it called true, or partly so?"""
    for repeats in REPEATS:
        said = [verdict(rates(2 * PLACES, repeats, noise, random)) for _ in range(STUDIES)]
        wrong = [found in (TRUE, PARTLY) for found in said]
        name = f"H1, {PLACES} equal places, {repeats} repeats, {noise}: true or partly"
        bounds.at_most(name, in_percent(wrong), FALSE, "%")


def verdict(sides: Floats) -> str:
    """Of H1 by the first half of some rows over the second."""
    half = len(sides) // 2
    places = [(str(at), [paired_ratio(*map(by_repeat, (sides[at], sides[at + half])))]) for at in range(half)]
    return judge("H1", "", looked_at(places), lambda it: it.below).verdict


def studies_compared(bounds: Bounds, noise: Noise, random: Random) -> None:
    """The same study twice: does compare show any difference, of rates and p50 of all cells?"""
    for repeats in (3, 5):
        hits = []
        for _ in range(OF_SIDES):
            base, other = (a_study(rates(CELLS, repeats, noise, random), random) for _ in range(2))
            hits.append(any(it.verdict != NONE_SHOWN for it in matches(base, other)))
        name = f"compare A A, {CELLS} cells, {repeats} repeats, {noise}: any difference"
        bounds.at_most(name, in_percent(hits), FALSE + CHANCE, "%")


def unequal_sides(bounds: Bounds, noise: Noise, random: Random) -> None:
    """Equal sides that are no pairs, one of which has more repeats: does any of many ratios differ from 1?"""
    for few, many in UNEQUAL:
        hits = []
        for _ in range(STUDIES // 2):
            sides = (rates(CELLS, count, noise, random).tolist() for count in (few, many))
            found = [log_ratio(*both) for both in zip(*sides, strict=True)]
            hits.append(any(told_apart(with_least_error(found))))
        name = f"{CELLS} equal ratios, {few} v {many} repeats, {noise}: any differs"
        bounds.at_most(name, in_percent(hits), FALSE + CHANCE, "%")


def a_study(values: Floats, random: Random) -> Side:
    """A study of cells with one user or more, whose p50 goes with the rate but for a percent."""
    return a_side(
        a_row(f"endpoint/b1/c{at + 1}", repeat, numbers_of(rate, 0.01 * random.standard_normal()))
        for at, of_cell in enumerate(values.tolist())
        for repeat, rate in enumerate(of_cell, 1)
    )


def numbers_of(rate: float, noise: float) -> dict[str, float]:
    """What cells.csv would have of a run."""
    return {"images_per_s": rate, "latency_p50_ms": 1_000 / rate * float(np.exp(noise)), "requests": 1_000.0}


def power(bounds: Bounds, random: Random) -> None:
    """How often a difference is marked, alone and as one of ten comparisons of equal ways."""
    for times in (1.1, 1.2):
        for repeats in REPEATS:
            for others in (0, 9):
                hits = [marked(times, repeats, others, random) for _ in range(STUDIES)]
                among = f" among {others + 1} comparisons" if others else ""
                name = f"{100 * (times - 1):.0f} % faster, {repeats} repeats{among}: marked"
                bounds.beside(name, in_percent(hits), "%")


def marked(times: float, repeats: int, others: int, random: Random) -> bool:
    """Whether a ratio is marked, that is so many times 1, beside some of equal ways."""
    sides = rates(2 * (others + 1), repeats, "normal", random)
    sides[0] *= times
    pairs = zip(sides[::2], sides[1::2], strict=True)
    found = [paired_ratio(by_repeat(over), by_repeat(under)) for over, under in pairs]
    return told_apart(with_least_error(found))[0]
