"""Replayed traces: whether each request was sent, how far from its time, and what came back when."""

from collections.abc import Iterator, Sequence
from typing import Any

from reports.format import MISSING, NS_PER_MS, counted, milliseconds, ms, plural
from reports.histogram.percentiles import LEAST_RESULTS
from reports.page.answer import AnswerRow
from reports.page.page import Chart
from reports.page.question import Question, Theme
from reports.page.study_table import (
    ENDPOINT,
    Columns,
    StudyNotes,
    cell,
    number,
    percentile,
    study_table,
    text,
)
from reports.page.table import Table, TableCell
from reports.stats.percentiles import estimated
from reports.stats.repeats import Runs, by_cell, typical
from reports.study.replay import ReplayedRun, ReplayedSecond
from reports.study.study import Study
from reports.summary.summary import LatencyAt, Summary
from reports.topics.load.open_load import count
from reports.topics.runs.timeline import MOST_POINTS, Line, drawn_panel

TITLE = "Replayed traces"
CAPTION = (
    "Arrival error is the send delay: a request's start minus its time in the trace, of those that came back "
    "right. Late began more than 5 ms after their time; lost were due, and never sent."
)
CHART = "Asked and answered"
CHART_CAPTION = (
    "Requests that the trace has in a second, and those that came back in it, of each cell's first repeat; "
    "time counts from the trace's beginning, and one run follows another."
)
LINES: tuple[Line[ReplayedSecond], ...] = (
    ("asked", lambda second: second.asked_per_s),
    ("answered", lambda second: second.answered_per_s),
    ("failed", lambda second: second.failed_per_s or None),
)


def replayed_cells(study: Study) -> list[Runs]:
    """The repeats of each cell that replays a trace."""
    return list(by_cell(study.ordered(run for run in study.runs if run.replay)).values())


def replayed(study: Study, run: Summary) -> ReplayedRun | None:
    """What its trace asked for; None where it was not begun."""
    return next((one for one in study.replays if (one.cell, one.repeat) == (run.cell, run.repeat)), None)


def asked(study: Study, run: Summary) -> int | None:
    """How many requests its trace has."""
    found = replayed(study, run)
    return found.asked if found else None


def not_due(study: Study, run: Summary) -> int:
    """How many of them the run was stopped before."""
    found, least = replayed(study, run), sent(run)
    return max(0, found.asked - max(found.due, least or 0)) if found else 0


def sent(run: Summary) -> int | None:
    """How many of them were sent: as workers say at the end of a run, or as came back, if one was lost."""
    due, dropped = run.sent.due, run.sent.dropped
    return None if due is None or dropped is None else max(due - dropped, run.counts.requests or 0)


def lost(study: Study, run: Summary) -> int | None:
    """How many were due and were not; a request that was sent as its run ended may count twice."""
    wanted, found = replayed(study, run), sent(run)
    return None if wanted is None or found is None else max(run.sent.dropped or 0, wanted.due - found)


def _error(name: str) -> Columns[Runs]:
    """A percentile of the arrival error, or its maximum."""

    def value(run: Summary) -> float | None:
        found: float | None = getattr(run.send_delay, f"{name}_ns")
        return None if found is None else found / NS_PER_MS

    def made(runs: Runs, notes: StudyNotes) -> TableCell:
        if name in LEAST_RESULTS and typical(runs, value) is None and any(run.succeeded for run in runs):
            return TableCell(MISSING, notes.marks([f"{name} takes {LEAST_RESULTS[name]:,} results"]))
        return number(runs, value, notes, milliseconds)

    return cell(f"error {name} ms", made)


def replay_table(study: Study) -> Table:
    """One row for each cell that replays a trace."""
    columns: Sequence[Columns[Runs]] = (
        ENDPOINT,
        text("trace", lambda runs: runs[0].replay, numeric=False),
        count("asked", lambda run: asked(study, run)),
        count("lost", lambda run: lost(study, run)),
        count("late", lambda run: run.sent.late),
        *map(_error, ("p50", "p90", "p99", "max")),
        *map(percentile, ("p50", "p95", "p99")),
    )
    return study_table(study, TITLE, CAPTION, columns, replayed_cells(study))


def replay_chart(study: Study) -> Chart | None:
    """What was asked and answered, second by second; None where no run replays a trace."""
    shown = [one for one in study.replays if one.repeat == 1 and one.seconds]
    if not shown:
        return None
    width = -(-sum(len(one.seconds) for one in shown) // MOST_POINTS)
    points, times_s, runs = list[Sequence[ReplayedSecond]](), list[float | None](), list[dict[str, Any]]()
    begin_s = 0.0
    for one in shown:
        groups = [one.seconds[at : at + width] for at in range(0, len(one.seconds), width)]
        points += [*groups, ()]
        times_s += [*(begin_s + group[0].s for group in groups), None]
        end_s = begin_s + one.seconds[-1].s + one.seconds[-1].width_s
        runs.append({"name": one.cell, "from": begin_s, "to": end_s, "aside": []})
        begin_s = end_s
    data = {
        "t_s": times_s,
        "panels": [drawn_panel(points, "Requests", "requests/s", LINES)],
        "runs": runs,
        "since": "the trace's beginning",
    }
    return Chart(CHART, CHART_CAPTION, "timeline", data)


def replay_finding(study: Study) -> AnswerRow | None:
    """How well the trace was replayed, over all runs; None where none was begun."""
    runs = [run for run in study.started if run.replay and lost(study, run) is not None]
    if not runs:
        return None
    early = sum(not_due(study, run) for run in runs)
    whole = sum(asked(study, run) or 0 for run in runs) - early
    missing = sum(lost(study, run) or 0 for run in runs)
    found = f"{counted(missing)} of {plural(whole, 'request')} lost" if missing else "nothing lost"
    within = "" if missing else f" of {plural(whole, 'request')}"
    many = f" in {plural(len(runs), 'run')}" if len(runs) > 1 else ""
    valid = [run for run in runs if not run.tainted] or runs
    said = f"trace {runs[0].replay}: {found}{within}{many}, send delay {_worst(valid)}."
    stopped = [f"{plural(early, 'request')} not due: stopped before."] if early else []
    return AnswerRow("Replay", said, " ".join([*stopped, *_detail(study, runs, valid)]))


def _detail(study: Study, runs: Runs, valid: Runs) -> Iterator[str]:
    latencies = ((runs[0].way, estimated(study, runs, LatencyAt("p95"))) for runs in by_cell(valid).values())
    told = [
        f"{study.named(way)} {found.said(milliseconds, ' ms', '95 % CI ')}"
        for way, found in latencies
        if found
    ]
    if told:
        yield f"Latency p95: {'; '.join(told)}."
    if late := sum(run.sent.late or 0 for run in valid):
        yield f"{counted(late)} began more than 5 ms late: see --max-in-flight and the workers' CPU."
    if len(valid) < len(runs):
        yield f"{plural(len(runs) - len(valid), 'invalidated run')} left out, but for losses."


def _worst(runs: Runs) -> str:
    """The highest p99 of the runs; of fewer results than that takes, the maximum."""
    p99s_ns = [run.send_delay.p99_ns for run in runs if run.send_delay.p99_ns is not None]
    if len(p99s_ns) == len(runs):
        return f"p99 {ms(max(p99s_ns))} ms" + (" at most" if len(runs) > 1 else "")
    return f"{ms(max(run.send_delay.max_ns or 0.0 for run in runs))} ms at most"


REPLAY = Question(
    "replay",
    "Results",
    (replay_table, replay_chart),
    replay_finding,
    Theme.SPEED,
    place=-3,
    applies=lambda study: any(run.replay for run in study.runs),
)
