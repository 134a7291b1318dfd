"""Where more users bring too little: the curve of each way and batch, its knee, its peak and its law."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reports.format import digits, milliseconds, plural, sentence
from reports.histogram.percentiles import LEAST_RESULTS
from reports.page.answer import AnswerRow
from reports.page.page import Chart, rounded
from reports.page.study_table import few_samples
from reports.stats.failures import ranks
from reports.stats.figures import images_per_s, mean_ms, p95_ms
from reports.stats.knee import Fall, Level, enough, fall, knee_of, still_rising
from reports.stats.percentiles import CellFigure, estimated
from reports.stats.repeats import CONFIRM, Runs, by_batch, grouped, resting_on
from reports.stats.scaling_laws import BestLaw, NoLaw, best_law
from reports.study.study import Study
from reports.summary.batch import Batch
from reports.summary.summary import Way

LEAST_LEVELS, EXPLORED = 2, 3
MOST_SAID = 3
SINGLE = f"one run at a level: a few percent may be chance; {CONFIRM}"
HIGHEST = "it is the highest level tested: it may lie above"
STEPS = 40
TITLE = "Throughput and p95 against users"
CAPTION = (
    "Means of the repeats, and p95 of all their requests, with 95 % CIs as lines. The ring is the knee: the "
    "users with the greatest throughput per p95. Dotted: the law that describes them best."
)
HOLLOW = "Hollow: invalidated, or too many failures; neither knee nor law rests on such points."
NO_P95 = f"p95 is not drawn: each level has too few requests for it (it needs {LEAST_RESULTS['p95']})."
PANELS = ({"key": "rate", "title": "Throughput, images/s"}, {"key": "p95", "title": "p95 latency, ms"})


@dataclass(frozen=True)
class Point:
    """One level: images per second, p95 and mean latency in ms over the `runs` they rest on.

    `tainted`: each of those is invalidated, or too many requests failed: neither knee nor law rests on it.
    """

    users: float
    rate: CellFigure
    p95_ms: CellFigure | None
    mean_ms: CellFigure
    tainted: bool
    runs: Runs

    def latency(self, by_p95: bool) -> CellFigure:
        """The p95 if it is asked for and known, else the mean."""
        return self.p95_ms if by_p95 and self.p95_ms else self.mean_ms

    def level(self, by_p95: bool) -> Level:
        """What a knee is found by."""
        rates = (rate for run in self.runs if (rate := images_per_s(run)))
        return Level(self.users, tuple(rates), self.latency(by_p95).value)


@dataclass(frozen=True)
class Knee:
    """The level `at` the knee, and the fewest users that are `enough` for 95 % of the highest rate.

    `by_p95`: else it is by the mean latency, since some level has too few results for p95. `doubts` are
    sentences without a stop.
    """

    at: Point
    enough: Point
    by_p95: bool
    doubts: tuple[str, ...] = ()


@dataclass(frozen=True)
class NoKnee:
    """Why there is no knee; `rising` where it is known to lie above the levels tested."""

    reason: str
    rising: bool = False


@dataclass(frozen=True)
class Curve:
    """A way and batch: `points` by users, `lost` the levels that were run and had no success."""

    way: Way
    name: str
    batch: Batch
    points: tuple[Point, ...]
    lost: tuple[float, ...]
    knee: Knee | NoKnee
    fall: Fall | None
    law: BestLaw | NoLaw

    @property
    def highest(self) -> Point:
        """The point with the highest rate, of those that a conclusion may rest on where there are any."""
        return max(sound(self.points) or self.points, key=lambda point: point.rate.value)


def curves(study: Study) -> tuple[Curve, ...]:
    """Each way and batch, floors left out, that has successes at two or more levels of closed-loop load."""
    runs = [run for run in study.started if run.closed and not run.is_floor]
    found = by_batch(study, runs).items()
    every = (curve(study, way, batch, of) for (way, batch), of in found)
    return tuple(curve for curve in every if len(curve.points) >= LEAST_LEVELS)


def explores_load(study: Study) -> bool:
    """Whether some way has three levels or more: with two there is a slope, and no saturation to look for."""
    return any(len(curve.points) >= EXPLORED for curve in curves(study))


def saturation(study: Study) -> AnswerRow | None:
    """The knees of the fastest ways, and what their highest rates cost; None where none are known."""
    if not explores_load(study):
        return None
    every = curves(study)
    fastest = sorted(every, key=lambda one: (not sound(one.points), -one.highest.rate.value))
    several = len({one.batch for one in every}) > 1
    told = [_saturates(one, _name(one) if several else one.name) for one in fastest[:MOST_SAID]]
    left = len(fastest) - MOST_SAID
    more = [f"{plural(left, 'other')} in the table under Load and cost."] if left > 0 else []
    rest = [*(f"{text}." for text in told[1:]), *more, *_unsure(fastest[:MOST_SAID])]
    return AnswerRow("Saturation", f"{told[0]}.", " ".join(rest))


def _saturates(curve: Curve, name: str) -> str:
    """onnx-grpc: knee at 16 users (414 images/s, p95 43.0 ms); 480 at 128 users costs 289 ms."""
    highest = curve.highest
    rate = highest.rate.alone()
    if isinstance(curve.knee, NoKnee):
        rising = f"{name} is not saturated at {_users([highest.users])}: {rate} images/s and rising"
        return rising if curve.knee.rising else f"{name}: {curve.knee.reason}"
    at, by_p95 = curve.knee.at, curve.knee.by_p95
    latency = f"{'p95' if by_p95 else 'mean latency'} {_latency(at, by_p95)} ms"
    told = f"{name}: knee at {_users([at.users])} ({at.rate.alone()} images/s, {latency})"
    costs = f"{rate} at {_users([highest.users])} costs {_latency(highest, by_p95)} ms"
    return "; ".join((told, *([] if highest is at else [costs]), *fallen(curve)))


def _latency(point: Point, by_p95: bool) -> str:
    found = point.latency(by_p95)
    return f"{found.alone(milliseconds)}{few_samples('p95', found.results) if by_p95 else ''}"


def fallen(curve: Curve) -> Iterator[str]:
    """Its fall beyond the highest level, where one is shown."""
    if found := curve.fall:
        less, least = (digits(100 * (1 - share)) for share in (found.share, found.most))
        yield f"{_users([found.at.users])} make {less} % less than {found.peak.users:g} (at least {least} %)"


def _unsure(found: Iterable[Curve]) -> Iterator[str]:
    """What is doubted of these knees, each once; how few runs there are is said under Confidence."""
    doubts = dict.fromkeys(doubt for one in found if isinstance(one.knee, Knee) for doubt in one.knee.doubts)
    return (f"{sentence(doubt)}." for doubt in doubts if doubt != SINGLE)


def curve(study: Study, way: Way, batch: Batch, runs: Runs) -> Curve:
    """The curve of some runs of one way and batch."""
    by_level = dict(sorted(grouped(runs, lambda run: run.level).items()))
    points = tuple(_points(study, by_level))
    lost = tuple(level for level in by_level if level not in {point.users for point in points})
    usable = [point.level(False) for point in sound(points)]
    law = best_law((level.users, rate) for level in usable for rate in level.rates)
    return Curve(way, study.named(way), batch, points, lost, knee(points, lost), fall(usable), law)


def sound(points: Iterable[Point]) -> list[Point]:
    """Those that a conclusion may rest on."""
    return [point for point in points if not point.tainted]


def _points(study: Study, by_level: Mapping[float, Runs]) -> Iterator[Point]:
    for users, runs in by_level.items():
        behind = resting_on(runs, images_per_s)
        figures = (estimated(study, runs, value) for value in (images_per_s, p95_ms, mean_ms))
        rate, p95, mean = figures
        if rate and mean and rate.value > 0 and users >= 1:
            doubted = any(run.tainted for run in behind) or not ranks(runs)
            yield Point(users, rate, p95, mean, doubted, behind)


def knee(points: Sequence[Point], lost: Sequence[float] = ()) -> Knee | NoKnee:
    """The knee of some points by users, `lost` being levels without a success; or why there is none."""
    usable = sound(points)
    if len(usable) < EXPLORED:
        return NoKnee(f"unknown: {len(usable)} of {len(points)} levels valid, {EXPLORED} needed")
    by_p95 = all(point.p95_ms for point in usable)
    levels = [point.level(by_p95) for point in usable]
    at, least = (usable[levels.index(find(levels))] for find in (knee_of, enough))
    doubts = tuple(_doubts(usable, at, points, lost))
    if still_rising(levels):
        said = "; ".join((f"not reached: still rising at {usable[-1].users:g} users", *doubts))
        return NoKnee(said, rising=True)
    return Knee(at, least, by_p95, (*([HIGHEST] if at is usable[-1] else []), *doubts))


def _doubts(
    usable: Sequence[Point], at: Point, points: Sequence[Point], lost: Sequence[float]
) -> Iterator[str]:
    """What may be otherwise about a knee."""
    if at is usable[0] and at.users > 1:
        yield f"there is no lower level than {at.users:g} users: it may lie below"
    if min(len(point.runs) for point in usable) == 1:
        yield SINGLE
    if out := [point.users for point in points if point.tainted]:
        yield f"invalidated or failing, and so left out: {_users(out)}"
    if lost:
        yield f"no request succeeded at {_users(lost)}"


def _users(levels: Sequence[float]) -> str:
    return f"{', '.join(f'{level:g}' for level in levels)} user{'' if levels == [1] else 's'}"


def curves_chart(study: Study) -> Chart | None:
    """The chart; None where no way was measured at two levels."""
    found = curves(study)
    if not found:
        return None
    points = [point for curve in found for point in curve.points]
    has_p95 = any(point.p95_ms for point in points)
    by_knee = grouped(found, _knee_said).items()
    knees = (f"Knee of {'; '.join(map(_name, those))}: {said}." for said, those in by_knee)
    hollow = [HOLLOW] if any(point.tainted for point in points) else []
    notes = (*hollow, *([] if has_p95 else [NO_P95]), *knees)
    panels = PANELS if has_p95 else PANELS[:1]
    data = {"panels": panels, "series": [_series(curve) for curve in found]}
    return Chart(TITLE, CAPTION, "curves", data, notes=notes)


def _name(curve: Curve) -> str:
    return f"{curve.name}, batch {curve.batch}"


def _knee_said(curve: Curve) -> str:
    """Where a curve's knee lies, or why it has none."""
    if not isinstance(curve.knee, Knee):
        return curve.knee.reason
    share = f"95 % of the highest images/s from {curve.knee.enough.users:g} on"
    return "; ".join((plural(round(curve.knee.at.users), "user"), share, *fallen(curve), *curve.knee.doubts))


def _series(curve: Curve) -> dict[str, Any]:
    return {
        "name": _name(curve),
        "batch": str(curve.batch),
        "points": [_point(point) for point in curve.points],
        "knee": curve.knee.at.users if isinstance(curve.knee, Knee) else None,
        "fit": _law(curve.law) if isinstance(curve.law, BestLaw) else None,
    }


def _point(point: Point) -> dict[str, Any]:
    figures = drawn("rate", point.rate) | drawn("p95", point.p95_ms)
    return {"users": point.users, "doubted": point.tainted, **figures}


def drawn(key: str, figure: CellFigure | None) -> dict[str, float | None]:
    """A figure and the ends of its interval; the figure itself for ends that are not known."""
    middle = figure.value if figure else None
    low, high = (figure.low, figure.high) if figure else (None, None)
    ends = {f"{key}_low": middle if low is None else low, f"{key}_high": middle if high is None else high}
    return {name: rounded(value) for name, value in {key: middle, **ends}.items()}


def _law(law: BestLaw) -> list[tuple[float | None, float | None]]:
    """The fitted curve between the lowest and the highest level, evenly on the axis of doublings."""
    low, high = law.levels
    users = dict.fromkeys(round(low * (high / low) ** (step / STEPS)) for step in range(STEPS + 1))
    return [(rounded(float(at)), rounded(law.fitted.rate_at(at))) for at in users]
