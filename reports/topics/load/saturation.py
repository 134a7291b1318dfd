"""Where more users bring no more throughput: the curve of each way and batch, its law and its knee."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from reports.format import digits, milliseconds, plural, sentence
from reports.page.answer import AnswerRow
from reports.page.page import Chart, rounded
from reports.page.study_table import few_samples
from reports.stats.figures import images_per_s
from reports.stats.repeats import Runs, Spread, by_batch, grouped, resting_on, spread_of
from reports.stats.usl import Fit, NoFit, fit_usl
from reports.study.study import Study
from reports.summary.summary import Way, percentile_ms

KNEE_SHARE = 0.95
"""Of the highest median: from there on, more users gain at most 5 %."""
LEAST_LEVELS, EXPLORED = 2, 3
MOST_SAID = 3
SINGLE = "one run at a level: a few percent may be chance; rerun with --repeats 5 to confirm"
STEPS = 40
TITLE = "Throughput and p95 against users"
CAPTION = (
    "Medians of the repeats, with a line from the lowest to the highest. The ring is the knee: the fewest "
    "users that reach 95 % of the highest throughput. Dotted: the Universal Scalability Law, where the data "
    "carry it."
)
HOLLOW = "Hollow points rest on invalidated runs; neither knee nor law rests on them."
PANELS = ({"key": "rate", "title": "Throughput, images/s"}, {"key": "p95", "title": "p95 latency, ms"})


@dataclass(frozen=True)
class Point:
    """One level: images per second and p95 latency in ms over the repeats they rest on.

    `tainted`: each of those is invalidated, so that neither knee nor fit rests on it.
    """

    users: float
    rate: Spread
    p95_ms: Spread | None
    tainted: bool
    runs: Runs


@dataclass(frozen=True)
class Knee:
    """The level with the fewest users that reaches 95 % of the highest median.

    `before` are the users of the level below, between which and `at` the rise ends, None where there is none;
    `after` is the level above, whose p95 tells what more users cost. `doubts` are sentences without a stop.
    """

    at: Point
    before: float | None
    after: Point
    doubts: tuple[str, ...] = ()


@dataclass(frozen=True)
class NoKnee:
    """Why there is no saturation point; `rising` where it is known to lie above the levels tested."""

    reason: str
    rising: bool = False


@dataclass(frozen=True)
class Curve:
    """A way and batch: `points` by users, `lost` the levels that were run and had no success."""

    way: Way
    name: str
    batch: int
    points: tuple[Point, ...]
    lost: tuple[float, ...]
    knee: Knee | NoKnee
    fit: Fit | NoFit

    @property
    def highest(self) -> Point:
        """The point with the highest median, of those that are not invalidated where there are any."""
        return max(sound(self.points) or self.points, key=lambda point: point.rate.median)


def curves(study: Study) -> tuple[Curve, ...]:
    """Each way and batch, floors left out, that has successes at two or more levels of closed-loop load."""
    runs = [run for run in study.started if run.load == "closed" and not run.is_floor]
    found = by_batch(study, runs).items()
    every = (curve(study.named(way), way, batch, of) for (way, batch), of in found)
    return tuple(curve for curve in every if len(curve.points) >= LEAST_LEVELS)


def explores_load(study: Study) -> bool:
    """Whether some way has three levels or more: with two there is a slope, and no saturation to look for."""
    return any(len(curve.points) >= EXPLORED for curve in curves(study))


def saturation(study: Study) -> AnswerRow | None:
    """Where the fastest ways saturate, with the rate and p95 there; None where no load was explored."""
    if not explores_load(study):
        return None
    every = curves(study)
    fastest = sorted(every, key=lambda one: (not sound(one.points), -one.highest.rate.median))
    several = len({one.batch for one in every}) > 1
    told = [_saturates(one, _name(one) if several else one.name) for one in fastest[:MOST_SAID]]
    left = len(fastest) - MOST_SAID
    more = [f"{plural(left, 'other')} in the table under Load and cost."] if left > 0 else []
    rest = [*(f"{text}." for text in told[1:]), *more, *_unsure(fastest[:MOST_SAID])]
    return AnswerRow("Saturation", f"{told[0]}.", " ".join(rest))


def _saturates(curve: Curve, name: str) -> str:
    """onnx-grpc saturates between 4 and 8 users: 24.1 images/s, p95 412 ms at 8."""
    if isinstance(curve.knee, NoKnee):
        users, rate = f"{curve.highest.users:g} users", f"{digits(curve.highest.rate.median)} images/s"
        rising = f"{name} is not saturated at {users}: {rate} and rising"
        return rising if curve.knee.rising else f"{name}: {curve.knee.reason}"
    at, before = curve.knee.at, curve.knee.before
    few = few_samples("p95", min(run.succeeded for run in at.runs))
    p95 = f", p95 {milliseconds(at.p95_ms.median)}{few} ms" if at.p95_ms else ""
    where = f"between {before:g} and {at.users:g} users" if before else f"at or below {_users([at.users])}"
    return f"{name} saturates {where}: {digits(at.rate.median)} images/s{p95} at {at.users:g}"


def _unsure(found: Iterable[Curve]) -> Iterator[str]:
    """What is doubted of these knees, each once; how few runs there are is said under Confidence."""
    doubts = dict.fromkeys(doubt for one in found if isinstance(one.knee, Knee) for doubt in one.knee.doubts)
    return (f"{sentence(doubt)}." for doubt in doubts if doubt != SINGLE)


def curve(name: str, way: Way, batch: int, runs: Runs) -> Curve:
    """The curve of some runs of one way and batch."""
    levels = sorted({run.level for run in runs})
    points = tuple(_points(levels, runs))
    lost = tuple(level for level in levels if level not in {point.users for point in points})
    behind = ((point.users, run) for point in sound(points) for run in point.runs)
    fit = fit_usl((users, rate) for users, run in behind if (rate := images_per_s(run)))
    return Curve(way, name, batch, points, lost, knee(points, lost), fit)


def sound(points: Iterable[Point]) -> list[Point]:
    """Those that a conclusion may rest on."""
    return [point for point in points if not point.tainted]


def _points(levels: Iterable[float], runs: Runs) -> Iterator[Point]:
    for level in levels:
        behind = resting_on([run for run in runs if run.level == level], images_per_s)
        rate = spread_of(behind, images_per_s)
        if rate is not None and rate.low > 0 and level >= 1:
            p95 = spread_of(behind, lambda run: percentile_ms(run, "p95"))
            yield Point(level, rate, p95, any(run.tainted for run in behind), behind)


def knee(points: Sequence[Point], lost: Sequence[float] = ()) -> Knee | NoKnee:
    """The saturation point of some points by users, `lost` being levels without a success; or why none."""
    usable = sound(points)
    if len(usable) < EXPLORED:
        return NoKnee(f"unknown: {len(usable)} of {len(points)} levels valid, {EXPLORED} needed")
    enough = KNEE_SHARE * max(point.rate.median for point in usable)
    place = next(at for at, point in enumerate(usable) if point.rate.median >= enough)
    doubts = tuple(_doubts(usable, place, points, lost))
    if place == len(usable) - 1:
        said = "; ".join((f"not reached: still rising at {usable[place].users:g} users", *doubts))
        return NoKnee(said, rising=True)
    return Knee(usable[place], usable[place - 1].users if place else None, usable[place + 1], doubts)


def _doubts(
    usable: Sequence[Point], place: int, points: Sequence[Point], lost: Sequence[float]
) -> Iterator[str]:
    """What may be otherwise about a knee at that place."""
    if not place and usable[0].users > 1:
        yield f"there is no lower level than {usable[0].users:g} users: it may lie below"
    if min(len(point.runs) for point in usable) == 1:
        yield SINGLE
    if out := [point.users for point in points if point.tainted]:
        yield f"invalidated, and so left out: {_users(out)}"
    if lost:
        yield f"no request succeeded at {_users(lost)}"


def _users(levels: Sequence[float]) -> str:
    return f"{', '.join(f'{level:g}' for level in levels)} user{'' if levels == [1] else 's'}"


def curves_chart(study: Study) -> Chart | None:
    """The chart; None where no way was measured at two levels."""
    found = curves(study)
    if not found:
        return None
    doubted = any(point.tainted for curve in found for point in curve.points)
    by_knee = grouped(found, _knee_said).items()
    knees = (f"Knee of {'; '.join(map(_name, those))}: {said}." for said, those in by_knee)
    notes = (*([HOLLOW] if doubted else []), *knees)
    data = {"panels": PANELS, "series": [_series(curve) for curve in found]}
    return Chart(TITLE, CAPTION, "curves", data, notes=notes)


def _name(curve: Curve) -> str:
    return f"{curve.name}, batch {curve.batch}"


def _knee_said(curve: Curve) -> str:
    """Where a curve's knee lies, or why it has none."""
    if not isinstance(curve.knee, Knee):
        return curve.knee.reason
    between = "" if curve.knee.before is None else f", somewhere above {curve.knee.before:g}"
    return "; ".join((f"{plural(round(curve.knee.at.users), 'user')}{between}", *curve.knee.doubts))


def _series(curve: Curve) -> dict[str, Any]:
    return {
        "name": _name(curve),
        "batch": curve.batch,
        "points": [_point(point) for point in curve.points],
        "knee": curve.knee.at.users if isinstance(curve.knee, Knee) else None,
        "fit": _law(curve.fit) if isinstance(curve.fit, Fit) else None,
    }


def _point(point: Point) -> dict[str, Any]:
    spreads = spread_data("rate", point.rate) | spread_data("p95", point.p95_ms)
    return {"users": point.users, "doubted": point.tainted, **spreads}


def spread_data(key: str, spread: Spread | None) -> dict[str, float | None]:
    """Its median, lowest and highest as a drawing has them."""
    names = (key, f"{key}_low", f"{key}_high")
    values = (spread.median, spread.low, spread.high) if spread else (None, None, None)
    return {name: rounded(value) for name, value in zip(names, values, strict=True)}


def _law(fit: Fit) -> list[tuple[float | None, float | None]]:
    """The fitted curve between the lowest and the highest level, evenly on the axis of doublings."""
    low, high = fit.levels
    users = (low * (high / low) ** (step / STEPS) for step in range(STEPS + 1))
    return [(rounded(at), rounded(fit.rate_at(at))) for at in users]
