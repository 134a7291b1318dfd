"""Which way to the model is best, and the two charts that show it: rates, and rates against latency."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from reports.format import digits, listed, milliseconds, plural
from reports.histogram.percentiles import LEAST_RESULTS
from reports.page.answer import AnswerRow
from reports.page.page import Chart, rounded
from reports.page.question import Question, Theme
from reports.page.study_table import few_samples
from reports.stats.failures import rankable, say_no_success, unranked
from reports.stats.figures import images_per_s, mean_ms, p50_ms, p95_ms, told_from_best
from reports.stats.paired import LEAST_REPEATS
from reports.stats.percentiles import CellFigure, behind, estimated, pooled
from reports.stats.repeats import Runs, by_batch, by_way, grouped, values
from reports.study.study import Study
from reports.summary.batch import batch_of
from reports.topics.answer.contenders import Contender, closed, contenders
from reports.topics.load.saturation import Knee, curves, drawn

MOST_NAMED, MOST_ROWS, MOST_LINES = 3, 16, 8
LEAST_POINTS = 3
RATE = "images/s"
NONE_SOUND = "No endpoint can be called best: every run under closed-loop load is invalidated"
NONE_RANKED = "No endpoint can be called best: every cell under closed-loop load is invalidated or not ranked"
DOTS, TRADEOFF = "Images per second", "Throughput and latency"
SINGLE = "The fastest cell of each, one run: a difference may be chance."
REPEATED = "The fastest cell of each: geometric mean of its repeats, with the 95 % CI as a line."
BETTER = "To the right and down is better."
BY_P95 = (
    f"{BETTER} Images/s are means of the repeats, p95 is of all their requests. Lines are 95 % CIs; that of "
    "a p95 with one run is within this run."
)
BY_MEAN = (
    f"{BETTER} Images/s and mean latencies are means of the repeats, with 95 % CIs as lines. Latency is the "
    f"mean, since some cells have too few requests for p95 (it needs {LEAST_RESULTS['p95']})."
)
HOLLOW = "Hollow: invalidated, see the caveats."


def best(study: Study) -> AnswerRow | None:
    """The row; None without closed-loop load, where a rate that was asked for is nobody's speed."""
    if not any(run.succeeded for run in study.started):
        return AnswerRow("Best", f"{say_no_success(study.started)}.")
    every = contenders(study)
    sound = [one for one in every if not one.tainted]
    failing = unranked(closed(study))
    if not sound:
        none = f"{NONE_RANKED if failing else NONE_SOUND}."
        return AnswerRow("Best", none, failing) if every or failing else None
    links = grouped(sound, lambda one: one.runs[0].link)
    several = len({one.runs[0].link for one in every}) > 1
    said = [_name_best(study, of, _over(link) if several else "") for link, of in links.items()]
    detail = [*(_next(of) for of in links.values()), _lowest_latency(study), failing]
    return AnswerRow("Best", " ".join(said), " ".join(text for text in detail if text))


def _over(link: str) -> str:
    return f" over {link}" if link else " without an emulated link"


def _name_best(study: Study, sound: Sequence[Contender], where: str) -> str:
    """onnx-grpc: 24.1 images/s (95 % CI 23.7–24.6), p50 41.0 ms at batch 8, where all others are slower.

    Or: No clear winner between onnx-grpc and onnx-http. onnx-grpc measured highest: 24.1 images/s at batch 8.
    """
    first, *others = sound
    latencies = () if first.varies else _latencies(study, first.runs)
    figures = ", ".join([_rate(first), *latencies]) + f" at {first.load}"
    rivals = [one for one in others if one.slower is False]
    if rivals:
        winners = _list_rivals([first, *rivals], len(sound))
        return (
            f"No clear winner {winners}{where}. {first.name} measured highest: {figures}; "
            "none is significantly slower."
        )
    fewest = min((one.against(first).runs for one in others if one.slower is None), default=LEAST_REPEATS)
    if fewest >= LEAST_REPEATS:
        return f"{first.name}{where}: {figures}."
    few = "1 run" if fewest <= 1 else f"{plural(fewest, 'repeat')} in common, {LEAST_REPEATS} are needed"
    return f"{first.name}{where} (unconfirmed: {few}): {figures}."


def _list_rivals(rivals: Sequence[Contender], of: int) -> str:
    """between a and b; among a, b and c; among 5, where that is all; among the 5 fastest."""
    if len(rivals) <= MOST_NAMED:
        return f"{'among' if rivals[2:] else 'between'} {listed([one.name for one in rivals])}"
    return f"among {len(rivals)}" if len(rivals) == of else f"among the {len(rivals)} fastest"


def _rate(one: Contender) -> str:
    """24.1 images/s (95 % CI 23.7–24.6); or each repeat's, where a mean of them says nothing."""
    if one.varies:
        rates = listed([digits(rate) for rate in values(one.runs, images_per_s)])
        return f"{rates} {RATE} (its repeats differ)"
    return one.rate.said(digits, f" {RATE}", "95 % CI ")


def _latencies(study: Study, runs: Runs) -> Iterator[str]:
    """p50 41.0 ms (40.2–41.9): those that the requests of a cell tell, marked where these are few."""
    for name in ("p50", "p95"):
        if found := pooled(study, runs, name):
            yield f"{name} {found.said(milliseconds, f'{few_samples(name, found.results)} ms')}"


def _next(sound: Sequence[Contender]) -> str:
    """What the next ones have of the first's images per second; of repeats that differ there is no ratio."""
    first, *others = sound
    alike = [one for one in others if not (one.varies or first.varies)]
    told = ", ".join(f"{one.name} {one.over(first)}" for one in alike[:MOST_NAMED])
    return f"Next: {told} of its images/s." if told else ""


def _lowest_latency(study: Study) -> str:
    """Of single images that one user asks for; empty where they are all there is, or where there are none."""
    valid = [run for run in rankable(closed(study)) if not run.tainted]
    single = [run for run in valid if run.serial and run.batch == 1]
    ways = by_way(study, single)
    figures = {way: p50 for way, runs in ways.items() if (p50 := pooled(study, runs, "p50"))}
    if len(figures) < 2 or len(single) == len(valid):
        return ""
    lowest, *others = sorted(figures, key=lambda way: figures[way].value)
    apart = told_from_best(ways[lowest], [ways[way] for way in others], p50_ms)
    alike = [study.named(way) for way, shown in zip(others, apart, strict=True) if shown is False]
    also = f"; not significantly higher: {listed(alike)}" if alike else ""
    name = f"{study.named(lowest)}{' (unconfirmed)' if None in apart and not alike else ''}"
    return f"Lowest p50 of single images: {name}, {figures[lowest].alone(milliseconds)} ms{also}."


def dots(study: Study) -> Chart | None:
    """The fastest cell of each way with its interval; None where there are fewer than two ways."""
    every = contenders(study)
    if len(every) < 2:
        return None
    sound = [one for one in every if not one.tainted]
    alone = all(len(one.runs) == 1 for one in every)
    rows = [
        {
            "name": one.name,
            "value": rounded(one.rate.value),
            "low": rounded(one.rate.low),
            "high": rounded(one.rate.high),
            "note": one.load,
            "best": one in sound and (one is sound[0] or one.slower is False),
            "doubted": one.tainted,
        }
        for one in every[:MOST_ROWS]
    ]
    left = len(every) - MOST_ROWS
    failing = unranked(closed(study))
    notes = [HOLLOW] if any(row["doubted"] for row in rows) else []
    notes += [failing] if failing else []
    notes += [f"{left} others are in the tables only."] if left > 0 else []
    caption = SINGLE if alone else REPEATED
    return Chart(DOTS, caption, "dots", {"unit": "images/s", "rows": rows}, tuple(notes))


def tradeoff(study: Study) -> Chart | None:
    """Throughput against latency: by users, by rate, or by batch, whichever the study has most of; or None.

    The latency is p95 where each cell drawn has results enough for it, else the mean.
    """
    lines = [(name, points) for name, points in _lines(study) if len(points) > 1]
    if not lines:
        return None
    shown = sorted(lines, key=lambda line: -max(point.rate.value for point in line[1]))[:MOST_LINES]
    kept = [line for line in lines if line in shown]
    by_p95 = all(point.p95_ms for _, points in kept for point in points)
    series = [{"name": name, "points": [point.drawn(by_p95) for point in points]} for name, points in kept]
    left = len(lines) - len(shown)
    notes = (f"{left} others are not drawn.",) if left else ()
    data = {"x": "images/s", "y": "p95 ms" if by_p95 else "mean ms", "series": series}
    return Chart(TRADEOFF, BY_P95 if by_p95 else BY_MEAN, "tradeoff", data, notes)


@dataclass(frozen=True)
class CellPoint:
    """A cell as the chart draws it, by its rate and one of its latencies; no p95 of too few results."""

    label: str
    knee: bool
    doubted: bool
    rate: CellFigure
    p95_ms: CellFigure | None
    mean_ms: CellFigure

    def drawn(self, by_p95: bool) -> dict[str, Any]:
        """With its p95 or its mean latency."""
        about = {"label": self.label, "knee": self.knee, "doubted": self.doubted}
        latency = self.p95_ms if by_p95 else self.mean_ms
        return about | drawn("rate", self.rate) | drawn("latency", latency)


Line = tuple[str, list[CellPoint]]


def _lines(study: Study) -> list[Line]:
    """Lines of users where one has three levels or more, else of rates, of batches, or of two levels."""
    users, rates, batches = (list(of(study)) for of in (_by_users, _by_rate, _by_batch))
    for found in (users, rates, batches):
        if any(len(points) >= LEAST_POINTS for _, points in found):
            return found
    return users or rates or batches


def _by_users(study: Study) -> Iterator[Line]:
    """Each way at the batch that has the most levels, with its knee."""
    for found in grouped(curves(study), lambda curve: curve.way).values():
        curve = max(found, key=lambda one: len(one.points))
        knee = curve.knee.at.users if isinstance(curve.knee, Knee) else None
        runs = [
            (plural(round(point.users), "user"), point.runs, point.users == knee) for point in curve.points
        ]
        yield f"{study.named(curve.way)}, batch {curve.batch}", list(_points(study, runs))


def _by_rate(study: Study) -> Iterator[Line]:
    """Each way and batch by the rate that was asked for."""
    runs = [run for run in study.started if run.load == "open" and not run.is_floor and not run.profile]
    for (way, batch), of in by_batch(study, runs).items():
        levels = sorted(grouped(of, lambda run: run.level).items())
        cells = ((f"{level:g}/s", runs, False) for level, runs in levels)
        yield f"{study.named(way)}, batch {batch}", list(_points(study, cells))


def _by_batch(study: Study) -> Iterator[Line]:
    """Each way with one user, by batch."""
    runs = [run for run in study.started if run.serial and not run.is_floor]
    for way, of in by_way(study, runs).items():
        batches = sorted(grouped(of, batch_of).items())
        cells = ((f"batch {batch}", runs, False) for batch, runs in batches)
        yield study.named(way), list(_points(study, cells))


def _points(study: Study, cells: Iterable[tuple[str, Runs, bool]]) -> Iterator[CellPoint]:
    """A point for each cell with a success."""
    for label, runs, knee in cells:
        figures = (estimated(study, runs, value) for value in (images_per_s, p95_ms, mean_ms))
        rate, p95, mean = figures
        if rate and mean:
            doubted = all(run.tainted for run in behind(runs, images_per_s))
            yield CellPoint(label, knee, doubted, rate, p95, mean)


def ran_alone(study: Study) -> bool:
    """Whether no two cells of it ran at the same time: else their questions are asked."""
    return not any(run.together for run in study.runs)


BEST = Question("best", "", (dots, tradeoff), best, Theme.SPEED, applies=ran_alone)
