"""Which way to the model is best, and the two charts that show it: rates with intervals, rate against p95."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from reports.format import listed, milliseconds, plural
from reports.page.answer import AnswerRow
from reports.page.page import Chart, rounded
from reports.page.question import Question, Theme
from reports.page.study_table import few_samples
from reports.stats.failures import rankable, unranked
from reports.stats.figures import images_per_s
from reports.stats.paired import LEAST_PAIRS
from reports.stats.percentiles import behind, estimated, latency_at, pooled
from reports.stats.repeats import (
    COMPARABLE_RUNS,
    Runs,
    by_batch,
    by_way,
    grouped,
)
from reports.study.study import Study
from reports.topics.answer.contenders import NEAR, Contender, closed, contenders
from reports.topics.load.saturation import Knee, curves, drawn

MOST_NAMED, MOST_ROWS, MOST_LINES = 3, 16, 8
LEAST_POINTS = 3
RATE = "images/s"
NONE_SOUND = "No endpoint can be called best: every run under closed-loop load is invalidated"
NONE_RANKED = "No endpoint can be called best: every cell under closed-loop load is invalidated or not ranked"
NO_SUCCESS = "No request succeeded, so nothing can be said about speed"
DOTS, TRADEOFF = "Images per second", "Throughput and latency"
SINGLE = "The fastest cell of each, one run: a difference may be chance."
REPEATED = "The fastest cell of each: geometric mean of its repeats, with the 95 % CI as a line."
OVERLAP = "unconfirmed: the repeats do not tell which is faster"
BETTER = (
    "To the right and down is better. Images/s are means of the repeats, p95 is of all their requests. Lines "
    "are 95 % CIs; that of a p95 with one run is within this run."
)
HOLLOW = "Hollow: invalidated, see the caveats."


def best(study: Study) -> AnswerRow | None:
    """The row; None without closed-loop load, where a rate that was asked for is nobody's speed."""
    if not any(run.succeeded for run in study.started):
        return AnswerRow("Best", f"{NO_SUCCESS}.")
    every = contenders(study)
    sound = [one for one in every if not one.tainted]
    failing = unranked(closed(study))
    if not sound:
        none = f"{NONE_RANKED if failing else NONE_SOUND}."
        return AnswerRow("Best", none, failing) if every or failing else None
    links = grouped(sound, lambda one: one.runs[0].link)
    several = len({one.runs[0].link for one in every}) > 1
    said = [_said(study, of, _over(link) if several else "") for link, of in links.items()]
    detail = [*(_next(of) for of in links.values()), _lowest_latency(study), failing]
    return AnswerRow("Best", f"{'; '.join(said)}.", " ".join(text for text in detail if text))


def _over(link: str) -> str:
    return f" over {link}" if link else " without an emulated link"


def _said(study: Study, sound: Sequence[Contender], where: str) -> str:
    """onnx-grpc: 24.1 images/s (95 % CI 23.7–24.6), p50 41.0 ms, p95 44.9 ms at batch 1, 8 users."""
    first, *others = sound
    rivals = [one for one in others if not one.slower]
    near = [one for one in rivals if one.near(first)]
    fewest = min((one.against(first).runs for one in near or rivals), default=LEAST_PAIRS)
    single = fewest < LEAST_PAIRS
    more = [f"{len(near) - MOST_NAMED} more"] if near[MOST_NAMED:] else []
    figures = ", ".join([first.rate.said(RATE), *_latencies(study, first.runs)]) + f" at {first.load}"
    few = f"{plural(fewest, 'repeat')} in common of the {LEAST_PAIRS} that it takes"
    unconfirmed = f"unconfirmed: {few if fewest > 1 else '1 run'}" if single else OVERLAP
    if near and single:
        names = listed([first.name, *(one.name for one in near[:MOST_NAMED]), *more])
        return f"{names} within 10 %{where} ({unconfirmed}): {first.name} {figures}"
    if near:
        ties = [f"{one.name} ({one.rate.said(RATE)} at {one.load})" for one in near[:MOST_NAMED]]
        return f"{first.name} ties with {listed([*ties, *more])}{where}: {figures}"
    return f"{first.name}{where}{f' ({unconfirmed})' if rivals else ''}: {figures}"


def _latencies(study: Study, runs: Runs) -> Iterator[str]:
    """p50 41.0 ms (40.2–41.9): those that the requests of a cell tell, marked where these are few."""
    for name in ("p50", "p95"):
        if found := pooled(study, runs, name):
            yield f"{name} {found.said(milliseconds, f'{few_samples(name, found.results)} ms')}"


def _next(sound: Sequence[Contender]) -> str:
    """What the next ones have of the first's images per second; those that tie are named already."""
    first, *others = sound
    left = [one for one in others if not one.ties(first)][:MOST_NAMED]
    told = ", ".join(f"{one.name} {one.over(first)}" for one in left)
    return f"Next: {told} of its images/s." if told else ""


def _lowest_latency(study: Study) -> str:
    """Of single images that one user asks for; empty where they are all there is, or where there are none."""
    valid = [run for run in rankable(closed(study)) if not run.tainted]
    single = [run for run in valid if run.serial and run.batch == 1]
    told = ((way, pooled(study, runs, "p50")) for way, runs in by_way(study, single).items())
    ways = {study.named(way): found.value for way, found in told if found}
    if len(ways) < 2 or len(single) == len(valid):
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
            "best": one in sound and (one is sound[0] or (one.near(sound[0]) and not one.slower)),
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
    """Throughput against p95: by users, by rate, or by batch, whichever the study has most of; or None."""
    lines = [(name, points) for name, points in _lines(study) if len(points) > 1]
    if not lines:
        return None
    shown = sorted(lines, key=lambda line: -max(point["rate"] for point in line[1]))[:MOST_LINES]
    series = [{"name": name, "points": points} for name, points in lines if (name, points) in shown]
    left = len(lines) - len(shown)
    notes = (f"{left} others are not drawn.",) if left else ()
    return Chart(TRADEOFF, BETTER, "tradeoff", {"x": "images/s", "y": "p95 ms", "series": series}, notes)


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
    runs = [run for run in study.started if run.serial and run.load == "closed" and not run.is_floor]
    for way, of in by_way(study, runs).items():
        batches = sorted(grouped(of, lambda run: run.batch).items())
        cells = ((f"batch {batch}", runs, False) for batch, runs in batches)
        yield study.named(way), list(_points(study, cells))


def _points(study: Study, cells: Iterable[tuple[str, Runs, bool]]) -> Iterator[dict[str, Any]]:
    """A point for each cell that has both figures."""
    for label, runs, knee in cells:
        rate, p95 = (estimated(study, runs, value) for value in (images_per_s, latency_at("p95")))
        if rate and p95:
            doubted = all(run.tainted for run in behind(runs, images_per_s))
            about = {"label": label, "knee": knee, "doubted": doubted}
            yield about | drawn("rate", rate) | drawn("p95", p95)


BEST = Question("best", "", (dots, tradeoff), best, Theme.SPEED)
