"""Which way to the model is best, and the two charts that show it: rates with intervals, rate against p95."""

from collections.abc import Iterator, Sequence
from typing import Any

from reports.format import listed, milliseconds, plural
from reports.page.answer import AnswerRow
from reports.page.page import Chart, rounded
from reports.page.question import Question, Theme
from reports.page.study_table import few_samples
from reports.stats.figures import images_per_s, latency_ms
from reports.stats.repeats import (
    COMPARABLE_RUNS,
    Runs,
    by_batch,
    by_way,
    grouped,
    resting_on,
    spread_of,
    typical,
)
from reports.study.study import Study
from reports.summary.summary import Summary, percentile_ms
from reports.topics.answer.contenders import NEAR, Contender, contenders
from reports.topics.load.saturation import Knee, curves, spread_data

MOST_NAMED, MOST_ROWS, MOST_LINES = 3, 16, 8
LEAST_POINTS = 3
RATE = "images/s"
NONE_SOUND = "No endpoint can be called best: every run under closed-loop load is invalidated"
NO_SUCCESS = "No request succeeded, so nothing can be said about speed"
DOTS, TRADEOFF = "Images per second", "Throughput and latency"
SINGLE = "The fastest cell of each, one run: a difference may be chance."
REPEATED = "The fastest cell of each: geometric mean of its repeats, with the 95 % CI as a line."
HOLLOW = "Hollow: invalidated, see the caveats."


def best(study: Study) -> AnswerRow | None:
    """The row; None without closed-loop load, where a rate that was asked for is nobody's speed."""
    if not any(run.succeeded for run in study.started):
        return AnswerRow("Best", f"{NO_SUCCESS}.")
    every = contenders(study)
    sound = [one for one in every if not one.tainted]
    if not sound:
        return AnswerRow("Best", f"{NONE_SOUND}.") if every else None
    links = grouped(sound, lambda one: one.runs[0].link)
    several = len({one.runs[0].link for one in every}) > 1
    said = [_said(of, _over(link) if several else "") for link, of in links.items()]
    detail = [*(_next(of) for of in links.values()), _lowest_latency(study)]
    return AnswerRow("Best", f"{'; '.join(said)}.", " ".join(text for text in detail if text))


def _over(link: str) -> str:
    return f" over {link}" if link else " without an emulated link"


def _said(sound: Sequence[Contender], where: str) -> str:
    """onnx-grpc: 24.1 images/s (95 % CI 23.7–24.6), p50 41.0 ms, p95 44.9 ms at batch 1, 8 users."""
    first, *others = sound
    rivals = [one for one in others if one.rivals(first)]
    near = [one for one in rivals if one.near(first)]
    single = not all(one.repeated for one in (first, *(near or rivals)))
    more = [f"{len(near) - MOST_NAMED} more"] if near[MOST_NAMED:] else []
    figures = f"{first.rate.said(RATE)}, {_latencies(first.runs)} at {first.load}"
    unconfirmed = "unconfirmed: 1 run" if single else "unconfirmed: the repeats overlap"
    if near and single:
        names = listed([first.name, *(one.name for one in near[:MOST_NAMED]), *more])
        return f"{names} within 10 %{where} ({unconfirmed}): {first.name} {figures}"
    if near:
        ties = [f"{one.name} ({one.rate.said(RATE)} at {one.load})" for one in near[:MOST_NAMED]]
        return f"{first.name} ties with {listed([*ties, *more])}{where}: {figures}"
    return f"{first.name}{where}{f' ({unconfirmed})' if rivals else ''}: {figures}"


def _latencies(runs: Runs) -> str:
    """Of a cell's repeats, each with the mark of too few requests."""
    fewest = min(run.succeeded for run in runs)
    told = (
        f"{name} {milliseconds(typical(runs, value) or 0.0)}{few_samples(name, fewest)} ms"
        for name, value in (("p50", latency_ms), ("p95", p95_ms))
    )
    return ", ".join(told)


def p95_ms(run: Summary) -> float | None:
    """The p95 latency in milliseconds."""
    return percentile_ms(run, "p95")


def _next(sound: Sequence[Contender]) -> str:
    """What the next ones have of the first's images per second; those that tie are named already."""
    first, *others = sound
    left = [one for one in others if not one.ties(first)][:MOST_NAMED]
    told = ", ".join(f"{one.name} {one.over(first)}" for one in left)
    return f"Next: {told} of its images/s." if told else ""


def _lowest_latency(study: Study) -> str:
    """Of single images that one user asks for; empty where they are all there is, or where there are none."""
    closed = [run for run in study.started if run.load == "closed" and not run.is_floor and not run.tainted]
    single = [run for run in closed if run.serial and run.batch == 1 and run.latency.p50_ns]
    ways = {study.named(way): typical(runs, latency_ms) or 0.0 for way, runs in by_way(study, single).items()}
    if len(ways) < 2 or len(single) == len(closed):
        return ""
    lowest = min(ways.values())
    near = sorted((way for way in ways if NEAR * ways[way] <= lowest), key=lambda way: ways[way])
    return f"Lowest p50 of single images: {listed(near)}, {milliseconds(lowest)} ms."


def dots(study: Study) -> Chart | None:
    """The fastest cell of each way with its interval; None where there are fewer than two ways."""
    every = contenders(study)
    if len(every) < 2:
        return None
    sound = [one for one in every if not one.tainted]
    alone = all(len(one.runs) < COMPARABLE_RUNS for one in every)
    rows = [
        {
            "name": one.name,
            "value": rounded(one.rate.value),
            "low": rounded(one.rate.low),
            "high": rounded(one.rate.high),
            "note": one.load,
            "best": one in sound and (one is sound[0] or (one.near(sound[0]) and one.rivals(sound[0]))),
            "doubted": one.tainted,
        }
        for one in every[:MOST_ROWS]
    ]
    left = len(every) - MOST_ROWS
    notes = [HOLLOW] if any(row["doubted"] for row in rows) else []
    notes += [f"{left} others are in the tables only."] if left > 0 else []
    caption = SINGLE if alone else REPEATED
    return Chart(DOTS, caption, "dots", {"unit": "images/s", "rows": rows}, tuple(notes))


def tradeoff(study: Study) -> Chart | None:
    """Throughput against p95: by users, by rate, or by batch, whichever the study has most of; or None."""
    lines = [(name, points) for name, points in _lines(study) if len(points) > 1]
    if not lines:
        return None
    shown = sorted(lines, key=lambda line: -max(point["rate"] for point in line[1]))[:MOST_LINES]
    series = [{"name": name, "points": points} for name, points in lines if (name, points) in shown]
    left = len(lines) - len(shown)
    notes = (f"{left} others are not drawn.",) if left else ()
    caption = "To the right and down is better. Medians of each cell, with the range of its repeats."
    return Chart(TRADEOFF, caption, "tradeoff", {"x": "images/s", "y": "p95 ms", "series": series}, notes)


Line = tuple[str, list[dict[str, Any]]]


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
        yield f"{study.named(curve.way)}, batch {curve.batch}", list(_points(runs))


def _by_rate(study: Study) -> Iterator[Line]:
    """Each way and batch by the rate that was asked for."""
    runs = [run for run in study.started if run.load == "open" and not run.is_floor and not run.profile]
    for (way, batch), of in by_batch(study, runs).items():
        levels = sorted(grouped(of, lambda run: run.level).items())
        points = list(_points((f"{level:g}/s", runs, False) for level, runs in levels))
        yield f"{study.named(way)}, batch {batch}", points


def _by_batch(study: Study) -> Iterator[Line]:
    """Each way with one user, by batch."""
    runs = [run for run in study.started if run.serial and run.load == "closed" and not run.is_floor]
    for way, of in by_way(study, runs).items():
        batches = sorted(grouped(of, lambda run: run.batch).items())
        yield study.named(way), list(_points((f"batch {batch}", runs, False) for batch, runs in batches))


def _points(cells: Any) -> Iterator[dict[str, Any]]:
    """A point for each cell that has both figures."""
    for label, runs, knee in cells:
        behind = resting_on(runs, images_per_s)
        rate, p95 = spread_of(behind, images_per_s), spread_of(behind, p95_ms)
        if rate and p95:
            doubted = all(run.tainted for run in behind)
            yield {
                "label": label,
                **spread_data("rate", rate),
                **spread_data("p95", p95),
                "knee": knee,
                "doubted": doubted,
            }


BEST = Question("best", "", (dots, tradeoff), best, Theme.SPEED)
