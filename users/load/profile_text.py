"""What the text of a load profile means: stretches that are shares of the peak."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

BASE_SHARE = 0.1
"""Share of the peak: where a ramp begins, of the cool-down and the warm-up; beside spikes, unless given."""
MOST_S, LEAST_S = 604_800, 1
"""The longest profile is a week."""
MOST_STRETCHES = 2_000
NAMES = ("ramp", "hold", "cool")
GIVE = (
    "give seconds of ramp, hold and cool in that order, each once at most, e.g. ramp:20,hold:40,cool:20; or"
    " steps:4x30, spikes:every=30,width=5,times=4, sine:every=60,times=3, or a TOML file with points"
)
GIVE_STEPS = "give how many equal steps up to the peak, from 2, and the seconds of each, e.g. steps:4x30"
GIVE_SPIKES = (
    "give every= and width= in seconds, width below every, times=, and base= if it is not 0.1 of the peak,"
    " e.g. spikes:every=30,width=5,times=4,base=0.2"
)
GIVE_SINE = (
    "give every= in seconds, times=, and base= if it is not 0.1 of the peak, e.g. sine:every=60,times=3"
)
GIVE_POINTS = "give two or more pairs of seconds and share of the peak, e.g. points = [[0, 0.1], [20, 1.0]]"
PIECES = 32
"""Of a period of a sine."""
PHASES = ("low", "rise", "high", "fall")


class Stretch(NamedTuple):
    """So many seconds in a straight line from one share of the peak to another."""

    name: str
    seconds: float
    first: float
    last: float


def shares(text: str) -> list[Stretch]:
    """The stretches of a text. Raises ValueError with a sentence that says what to give.

    A ramp climbs from the base to the peak, a hold stays there, a cool-down is at the base from its
    beginning: long enough, it shows an autoscaler going down again.
    """
    kind, _, rest = text.strip().partition(":")
    found = list(KINDS[kind](rest) if kind in KINDS else _ramp(text))
    seconds = math.fsum(one.seconds for one in found)
    if not LEAST_S <= seconds <= MOST_S:
        raise ValueError(
            f"takes {seconds:,.6g} s: a load profile may take {LEAST_S} s to a week ({MOST_S:,} s)"
        )
    if len(found) > MOST_STRETCHES:
        raise ValueError(f"has {len(found):,} stages, and may have {MOST_STRETCHES:,}: give fewer of them")
    return found


def _ramp(text: str) -> Iterator[Stretch]:
    try:
        found = [(name.strip(), float(value)) for name, value in (p.split(":") for p in text.split(","))]
    except ValueError:
        raise ValueError(GIVE) from None
    places = [NAMES.index(name) if name in NAMES else -1 for name, _ in found]
    rising = all(before < after for before, after in pairwise([-1, *places]))
    if not rising or not all(0 < seconds < math.inf for _, seconds in found):
        raise ValueError(GIVE)
    for name, seconds in found:
        first, last = (BASE_SHARE if name != "hold" else 1.0), (BASE_SHARE if name == "cool" else 1.0)
        yield Stretch("cool-down" if name == "cool" else name, seconds, first, last)


def _steps(text: str) -> Iterator[Stretch]:
    """`4x30`: a quarter of the peak, a half, three quarters, all of it, for 30 s each."""
    count, _, each = text.partition("x")
    steps, seconds = (_number(part, GIVE_STEPS) for part in (count, each))
    if not 2 <= steps <= MOST_STRETCHES or steps != int(steps) or not seconds:
        raise ValueError(GIVE_STEPS)
    for step in range(1, int(steps) + 1):
        yield Stretch(f"step {step}", seconds, step / steps, step / steps)


def _spikes(text: str) -> Iterator[Stretch]:
    """A spike in the middle of each period, so that its end is followed by the time in which it is felt."""
    given = _fields(text, ("every", "width", "times"), GIVE_SPIKES)
    aside_s = (given["every"] - given["width"]) / 2
    if aside_s <= 0 or not given["width"]:
        raise ValueError(GIVE_SPIKES)
    for _ in range(int(given["times"])):
        yield Stretch("base", aside_s, given["base"], given["base"])
        yield Stretch("spike", given["width"], 1.0, 1.0)
        yield Stretch("base", aside_s, given["base"], given["base"])


def _sine(text: str) -> Iterator[Stretch]:
    """From the base to the peak and back, in straight lines that are off by 0.25 % of the peak at most.

    Between points h apart, that is h²/8 of the greatest second derivative: (2π/32)²/8·(1 - base)/2.
    """
    given = _fields(text, ("every", "times"), GIVE_SINE)
    base, piece_s = given["base"], given["every"] / PIECES
    if not piece_s:
        raise ValueError(GIVE_SINE)
    height = [base + (1 - base) * (1 - math.cos(2 * math.pi * at / PIECES)) / 2 for at in range(PIECES + 1)]
    for piece in range(PIECES * int(given["times"])):
        at = piece % PIECES
        name = PHASES[(at + PIECES // 8) % PIECES * len(PHASES) // PIECES]
        yield Stretch(name, piece_s, height[at], height[at + 1])


def _points(text: str) -> Iterator[Stretch]:
    """`0=0.1,20=1 rise,60=1`: what is made of a TOML file; a name is that of the stretch before."""
    points, names = [], []
    for part in text.split(","):
        place, _, name = part.strip().partition(" ")
        s, _, share = place.partition("=")
        points.append((_number(s, GIVE_POINTS), _number(share, GIVE_POINTS)))
        names.append(name)
    return iter(stretches(points, names[1:]))


def stretches(points: Sequence[tuple[float, float]], names: Sequence[str]) -> list[Stretch]:
    """Between points of seconds and share; a name for each stretch, or "" to call it by its seconds.

    Two points at one time are a jump, whose name is not looked at. Raises ValueError.
    """
    times = [s for s, _ in points]
    if len(points) < 2:
        raise ValueError(GIVE_POINTS)
    if times[0] != 0:
        raise ValueError(f"points: the first is at {times[0]:g} s; begin at 0")
    if wrong := next((after for before, after in pairwise(times) if after < before), None):
        raise ValueError(f"points: {wrong:g} s comes after a later one; give them in order")
    if wrong := next((share for _, share in points if not 0 <= share <= 1), None):
        raise ValueError(f"points: {wrong:g} is no share of the peak; give 0 to 1")
    if (highest := max(share for _, share in points)) != 1:
        raise ValueError(f"points: the highest share is {highest:g}; let it be 1, the peak")
    return [
        Stretch(name or f"{begin_s:g}-{end_s:g} s", end_s - begin_s, first, last)
        for ((begin_s, first), (end_s, last)), name in zip(pairwise(points), names, strict=True)
        if end_s > begin_s
    ]


KINDS: Mapping[str, Callable[[str], Iterator[Stretch]]] = {
    "steps": _steps,
    "spikes": _spikes,
    "sine": _sine,
    "points": _points,
}


def _number(text: str, give: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < math.inf:
        raise ValueError(give)
    return value


def _fields(text: str, needed: Sequence[str], give: str) -> Mapping[str, float]:
    """`every=30,times=4` by name, with the base. Raises ValueError."""
    parts = [part.strip().partition("=") for part in text.split(",")]
    given = {name: _number(value, give) for name, _, value in parts}
    if len(given) < len(parts) or not set(needed) <= given.keys() <= {*needed, "base"}:
        raise ValueError(give)
    times = given["times"]
    if not 1 <= times <= MOST_STRETCHES or times != int(times) or given.get("base", 0) >= 1:
        raise ValueError(give)
    return {"base": BASE_SHARE, **given}
