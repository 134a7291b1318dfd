"""Steps of replicas that change nothing, by chance or after a slow second, and ones that help."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from benchmarks.bounds import Bounds
from benchmarks.simulating.truths import NS_PER_MS, Floats, Random, ar1, buckets_of
from reports.study.course import CourseRun, CourseStage, Moment
from reports.topics.autoscaling.effect import HELPED, HURT, UNCLEAR, WINDOW_S, effects

RUNS, SEED = 150, 6
"""Of each kind: the chance error of 5 % is 1.8 points."""
OF_STUDIES, REPEATS = 60, 5
RATE, MEDIAN_MS, REQUEST = 20.0, 50.0, 0.25
"""Requests a second; their median, and the standard deviation of the logarithm of a request's own factor."""
SECOND = 0.1
"""Of the seconds'."""
READY_S = 6
"""From asking for replicas until they are ready."""
LOOKS_S, TRIGGER = 15, 0.1
"""An autoscaler that looks at the mean of so many seconds, and asks for more where that is so far above 0."""
SHORT_S, LONG_S = 30, 60
"""Measured on each side: the least that is compared, and blocks of 20 s."""
LASTING = {"independent": 0.0, "ρ 0.8": 0.8, "ρ 0.9": 0.9, "30 s (ρ 0.967)": 0.967}
"""What a second has of the one before it."""
FALSE, CHANCE = 5.0, 2.0
"""Percent of steps without an effect that may be said to have helped, and what chance may add."""
HELP = -0.2


def promises(bounds: Bounds) -> None:
    """Steps without an effect at a time of their own, and triggered ones; then steps that help."""
    random = np.random.default_rng(SEED)
    for side_s in (SHORT_S, LONG_S):
        for name, kept in LASTING.items():
            said = [verdict(a_run(fixed(side_s, kept, random), side_s, random)) for _ in range(RUNS)]
            tell(bounds, f"no effect, {side_s} s a side, {name}", said)
            said = [verdict(a_run(triggered(side_s, kept, random), side_s, random)) for _ in range(RUNS)]
            tell(bounds, f"no effect, triggered, {side_s} s a side, {name}", said)
    for name, kept in LASTING.items():
        said = [verdict(a_run(fixed(LONG_S, kept, random), LONG_S, random, HELP)) for _ in range(RUNS)]
        bounds.beside(f"20 % less latency, {LONG_S} s a side, {name}: helped", share(said, HELPED), "%")
    paired(bounds, random)


def tell(bounds: Bounds, name: str, said: list[str]) -> None:
    """How many were said to have helped, beside those said to be worse."""
    bounds.at_most(f"{name}: helped", share(said, HELPED), FALSE + CHANCE, "%")
    bounds.beside(f"{name}: worse", share(said, HURT), "%")


def share(said: list[str], what: str) -> float:
    """In percent."""
    return 100 * said.count(what) / len(said)


def fixed(side_s: int, kept: float, random: Random) -> Floats:
    """What seconds have in common, in logarithms, around a step at a time of its own."""
    return ar1(2 * side_s + WINDOW_S + READY_S, SECOND, kept, random)


def triggered(side_s: int, kept: float, random: Random) -> Floats:
    """The same around the first moment at which an autoscaler finds a mean too high."""
    before_s, after_s = side_s + WINDOW_S, side_s + READY_S
    while True:
        seconds = ar1(4 * (before_s + after_s), SECOND, kept, random)
        means = np.convolve(seconds, np.full(LOOKS_S, 1 / LOOKS_S), "valid")
        threshold = TRIGGER if kept else TRIGGER / 2
        asked = np.flatnonzero(means > threshold) + LOOKS_S
        allowed = asked[(asked >= before_s) & (asked <= len(seconds) - after_s)]
        if len(allowed):
            return seconds[allowed[0] - before_s : allowed[0] + after_s]


def a_run(logs: Floats, side_s: int, random: Random, effect: float = 0.0, step: bool = True) -> CourseRun:
    """Seconds at one rate, with other replicas asked for after the first side and its window, then ready."""
    asked_s = side_s + WINDOW_S
    moments = []
    for s, log in enumerate(logs):
        ready = step and s + 1 >= asked_s + READY_S
        count = int(random.poisson(RATE))
        noise = REQUEST * random.standard_normal(count) + log + effect * ready
        stated = {
            "ready_replicas": 4 if ready else 2,
            "desired_replicas": 4 if step and s + 1 >= asked_s else 2,
        }
        latency = buckets_of(MEDIAN_MS * NS_PER_MS * np.exp(noise))
        moments.append(Moment(float(s), 1, RATE, count, 0, latency, stated))
    stage = CourseStage("hold", 0.0, float(len(logs)), RATE, RATE)
    return CourseRun("endpoint/b1/r20/profile", 1, "endpoint", (stage,), tuple(moments))


def verdict(run: CourseRun, among: tuple[CourseRun, ...] = ()) -> str:
    """Of its one step."""
    return next((found.verdict for found in effects(run, among)), UNCLEAR)


def paired(bounds: Bounds, random: Random) -> None:
    """Repeats with a step beside as many without one, at the noise that lasts longest."""
    kept = LASTING["30 s (ρ 0.967)"]
    for effect in (0.0, HELP):
        said = []
        for _ in range(OF_STUDIES):
            stepped = [
                a_run(triggered(SHORT_S, kept, random), SHORT_S, random, effect) for _ in range(REPEATS)
            ]
            steady = [
                replace(a_run(fixed(SHORT_S, kept, random), SHORT_S, random, step=False), cell="fixed")
                for _ in range(REPEATS)
            ]
            said.append(verdict(stepped[0], (*stepped, *steady)))
        name = f"{REPEATS} triggered repeats beside as many without a step"
        if effect:
            bounds.beside(f"20 % less latency, {name}: helped", share(said, HELPED), "%")
        else:
            tell(bounds, f"no effect, {name}", said)
